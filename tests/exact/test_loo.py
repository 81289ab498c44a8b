"""Cross-validation of all rows, against ArviZ on the whole matrix."""

import warnings

import numpy as np
import pytest

import corebayes as cb
from corebayes.rows import open_rows
from tests.exact.rows import chain_draws, everything, poisson_coreset, poisson_rows, spoilt


@pytest.fixture(scope="module")
def arviz():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz

    return arviz


def by_arviz(arviz, coreset, data, **options):
    """`arviz.loo` at the very same draws."""
    draws = cb.correct(coreset, data, **options)
    theta = chain_draws(draws)
    full = everything(cb.PoissonRegression(link="log", prior=cb.Normal()), data)
    values = full.model.potentials(theta.reshape(-1, theta.shape[-1]), full.rows)
    values = (values + full.model.log_base(full.rows)[:, None]).T.reshape(*theta.shape[:2], -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = {name: v.values for name, v in draws.posterior.data_vars.items()}
        both = arviz.from_dict(posterior=posterior, log_likelihood={"y": values})
        return arviz.loo(both, pointwise=True)


def test_as_arviz_on_the_whole_matrix(arviz):
    data = poisson_rows(120, 3, seed=1)
    coreset = spoilt(poisson_coreset(data, 9), 1.3, 0.2)
    options = {"draws": 250, "chains": 4, "seed": 6}
    expected = by_arviz(arviz, coreset, data, **options)
    found = cb.loo(coreset, data, **options)
    assert type(found) is type(expected)
    for name in ("elpd_loo", "se", "p_loo"):
        assert found[name] == pytest.approx(expected[name], rel=1e-4, abs=2e-3)
    np.testing.assert_allclose(found.loo_i.values, expected.loo_i.values, atol=2e-3)
    np.testing.assert_allclose(found.pareto_k.values, expected.pareto_k.values, atol=0.08)
    assert found.n_data_points == 120
    assert found.n_samples == 1000


def test_compared_by_arviz(arviz):
    data = poisson_rows(200, 3, seed=2)
    fewer = data[0][:, 1:], data[1]
    ours = cb.loo(poisson_coreset(data, 9), data, draws=100)
    theirs = cb.loo(poisson_coreset(fewer, 6), fewer, draws=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = arviz.compare({"three": ours, "two": theirs})
    assert list(table.index) == ["three", "two"]
    assert table.loc["two", "elpd_diff"] == pytest.approx(ours.elpd_loo - theirs.elpd_loo)
    assert "elpd_loo" in str(ours)


def test_blocks_do_not_matter_and_sums_do_without_rows():
    data = poisson_rows(6000, 2, seed=3)
    coreset = poisson_coreset(data)
    whole = cb.loo(coreset, data, draws=100)
    sums = cb.loo(coreset, data, draws=100, pointwise=False)
    assert "loo_i" not in sums
    assert sums.elpd_loo == pytest.approx(whole.loo_i.values.sum())
    assert sums.se == pytest.approx(np.sqrt(6000 * np.var(whole.loo_i.values)))


def test_never_as_many_numbers_as_rows_times_draws(monkeypatch):
    data = poisson_rows(20_000, 2, seed=4)
    coreset = poisson_coreset(data)
    seen = []
    own = type(coreset.model).potentials

    def potentials(self, draws, block, out=None):
        seen.append(len(block) * len(draws))
        return own(self, draws, block, out)

    monkeypatch.setattr(type(coreset.model), "potentials", potentials)
    cb.loo(coreset, open_rows(data), draws=100, pointwise=False)
    assert max(seen) <= 420_000


def test_rows_that_count_twice_count_twice():
    data = poisson_rows(100, 2, seed=5)
    model = cb.PoissonRegression(link="log", prior=cb.Normal())
    twice = tuple(np.concatenate([part, part[:40]]) for part in data)
    counts = np.r_[np.full(40, 2.0), np.ones(60)]
    expected = cb.loo(cb.build(model, twice, size=6, seed=0), twice, draws=1000, seed=1)
    coreset = cb.build(model, cb.open(data, counts=counts), size=6, seed=0)
    found = cb.loo(coreset, data, counts=counts, draws=1000, seed=1)
    assert found.n_data_points == 140
    assert found.elpd_loo == pytest.approx(expected.elpd_loo, abs=0.3)
    assert found.se == pytest.approx(expected.se, rel=0.02)
    assert found.loo_i.values.sum() == pytest.approx(found.elpd_loo)


def test_influential_rows_are_told():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60, 2))
    y = X @ [0.5, 1.0] + 0.1 * rng.normal(size=60)
    y[7] += 8.0
    coreset = cb.build(cb.LinearRegression(noise_sd=0.5, prior=cb.Normal()), (X, y), size=5, seed=0)
    with pytest.warns(UserWarning, match=r"of 60 rows have a Pareto k̂ above 0.67"):
        found = cb.loo(coreset, (X, y))
    assert found.warning
    assert int(np.argmax(found.pareto_k.values)) == 7


@pytest.mark.parametrize("arguments", [{"draws": 5}, {"chains": 0}, {"reff": -1.0}])
def test_bad_arguments_are_refused(arguments):
    data = poisson_rows(50)
    with pytest.raises(ValueError, match=next(iter(arguments))):
        cb.loo(poisson_coreset(data), data, **arguments)
