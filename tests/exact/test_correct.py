"""Draws of the posterior of all rows, against grids, closed forms and other samplers."""

import importlib
import warnings
from dataclasses import replace

import numpy as np
import pytest

import corebayes as cb
from corebayes.coreset import nearer
from corebayes.exact import chains as exact_chains
from corebayes.exact.chains import draw_exactly
from corebayes.rows import open_rows
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.worth import Worth, worth
from tests.exact.rows import (
    Grid,
    chain_draws,
    everything,
    flat_draws,
    poisson_coreset,
    poisson_rows,
    spoilt,
)


@pytest.fixture(scope="module")
def case():
    data = poisson_rows()
    coreset = poisson_coreset(data)
    return data, coreset, Grid(coreset.model, data)


def agrees(found, grid):
    """Means and covariances within four standard errors."""
    values = chain_draws(found)
    flat, ess = values.reshape(-1, 2), worth(values).min_ess_bulk
    deviations = np.sqrt(np.diag(grid.covariance))
    assert np.all(np.abs(flat.mean(axis=0) - grid.mean) < 4.0 * deviations / np.sqrt(ess))
    ratio = flat.var(axis=0) / deviations**2
    assert np.all(np.abs(ratio - 1.0) < 4.0 * np.sqrt(2.0 / ess))


@pytest.mark.parametrize("factor, noise", [(1.0, 0.0), (1.8, 0.3), (0.4, 0.5), (6.0, 1.0)])
def test_draws_are_of_all_rows_however_poor_the_coreset(case, factor, noise):
    data, coreset, grid = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = cb.correct(spoilt(coreset, factor, noise), data, draws=1500, seed=3)
    agrees(found, grid)


def test_what_the_coreset_alone_says_is_visibly_off(case):
    _, coreset, grid = case
    ours = flat_draws(cb.sample(spoilt(coreset), draws=500, seed=3, progress=False))
    assert np.any(np.abs(ours.var(axis=0) / np.diag(grid.covariance) - 1.0) > 0.3)


def test_a_good_coreset_takes_one_pass_and_hardly_more_evaluations_than_draws(case):
    data, coreset, _ = case
    rows = open_rows(data).check()
    found = cb.correct(coreset, rows)
    known = found.posterior.attrs
    assert rows.meter.rows_asked == rows.num_rows
    assert known["num_passes"] == 1
    assert known["evaluations_per_draw"] <= 1.1
    assert known["acceptance"] > 0.9
    assert known["max_rhat"] < 1.01
    assert "correcting" in rows.meter.stages or rows.meter.rows_decoded >= rows.num_rows


def test_log_density_is_that_of_all_rows(case):
    data, coreset, _ = case
    found = cb.correct(coreset, data, draws=50)
    full = everything(cb.PoissonRegression(link="log", prior=cb.Normal()), data)
    theta = flat_draws(found)
    expected = full.model.sum_potentials(theta, full.rows) + full.model.log_prior(theta)
    expected += full.model.log_base(full.rows).sum()
    np.testing.assert_allclose(found.sample_stats["lp"].values.ravel(), expected, rtol=1e-10)


@pytest.mark.slow
def test_the_local_kernel_draws_the_same(case, monkeypatch):
    data, coreset, grid = case
    monkeypatch.setattr(exact_chains, "covering_all", lambda *_: None)
    found = cb.correct(spoilt(coreset, 1.3, 0.1), data, draws=600, chains=4, seed=1)
    assert "hit and run" in found.posterior.attrs["sampler"]
    agrees(found, grid)


def test_conjugate_models_have_independent_draws_in_closed_form():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X @ [1.0, -2.0] + 0.5 * rng.normal(size=300)
    coreset = cb.build(cb.LinearRegression(noise_sd=0.5, prior=cb.Normal()), (X, y), size=4, seed=0)
    found = cb.correct(replace(coreset, weights=0.1 * coreset.weights), (X, y), draws=2000)
    precision = np.eye(2) + X.T @ X / 0.25
    mean = np.linalg.solve(precision, X.T @ y / 0.25)
    flat = flat_draws(found)
    deviations = np.sqrt(np.diag(np.linalg.inv(precision)))
    np.testing.assert_allclose((flat.mean(axis=0) - mean) / deviations, 0.0, atol=0.05)
    np.testing.assert_allclose(flat.std(axis=0) / deviations, 1.0, atol=0.05)
    full = everything(cb.LinearRegression(noise_sd=0.5, prior=cb.Normal()), (X, y))
    expected = full.model.sum_potentials(flat, full.rows) + full.model.log_prior(flat)
    expected += full.model.log_base(full.rows).sum()
    np.testing.assert_allclose(found.sample_stats["lp"].values.ravel(), expected, rtol=1e-9)
    ours = Posterior.of(coreset).model.sum_potentials(flat, coreset.rows, 0.1 * coreset.weights)
    ratio = expected - full.model.log_prior(flat) - ours
    offset = found.sample_stats["log_ratio"].values.ravel() - ratio
    np.testing.assert_allclose(offset, offset[0], atol=1e-6)


def test_counts_are_counted():
    data = poisson_rows(150)
    counts = np.random.default_rng(1).integers(0, 4, size=150).astype(float)
    model = cb.PoissonRegression(link="log", prior=cb.Normal())
    coreset = cb.build(model, cb.open(data, counts=counts), size=6, seed=0)
    grid = Grid(coreset.model, data, counts)
    agrees(cb.correct(coreset, data, counts=counts, draws=1000), grid)


def test_smoothed_weights_agree_and_have_shapes(case):
    data, coreset, grid = case
    found = cb.correct(spoilt(coreset, 0.8, 0.1), data, draws=1500, method="psis", seed=2)
    agrees(found, grid)
    assert found.posterior.attrs["pareto_k"] < 0.7
    assert set(found.pareto_k.data_vars) == set(found.posterior.data_vars)
    weighted = cb.correct(
        spoilt(coreset, 0.8, 0.1), data, draws=1500, method="psis", resample=False, seed=2
    )
    shares = np.exp(weighted.sample_stats["log_weight"].values.ravel())
    assert shares.sum() == pytest.approx(1.0)
    difference = (shares @ flat_draws(weighted) - grid.mean) / np.sqrt(np.diag(grid.covariance))
    np.testing.assert_allclose(difference, 0.0, atol=0.08)


def test_heavy_tails_are_told(case):
    data, coreset, _ = case
    with pytest.warns(UserWarning, match="heavy tail.*size="):
        cb.correct(spoilt(coreset, 8.0, 1.0), data, draws=1000, method="psis")


def test_draws_that_have_not_mixed_are_told(case, monkeypatch):
    data, coreset, _ = case
    module = importlib.import_module("corebayes.exact.correct")
    monkeypatch.setattr(module, "worth", lambda _: Worth(1.3, 50.0, 50.0))
    with pytest.warns(UserWarning, match="have not mixed.*do not use them.*size="):
        cb.correct(coreset, data, draws=20)


def test_the_same_seed_gives_the_same_draws_on_any_executor(case):
    data, coreset, _ = case
    first = flat_draws(cb.correct(coreset, data, draws=30, seed=4))
    other = flat_draws(cb.correct(coreset, data, draws=30, seed=5))
    np.testing.assert_array_equal(first, flat_draws(cb.correct(coreset, data, draws=30, seed=4)))
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"draws": 2}, "draws"),
        ({"chains": 0}, "chains"),
        ({"seed": -1}, "seed"),
        ({"method": "is"}, "surrogate"),
    ],
)
def test_bad_arguments_are_refused(case, arguments, words):
    data, coreset, _ = case
    with pytest.raises((TypeError, ValueError), match=words):
        cb.correct(coreset, data, **arguments)


def test_other_rows_are_refused(case):
    data, coreset, _ = case
    with pytest.raises(ValueError, match="pass the data"):
        cb.correct(coreset, (data[0][:-1], data[1][:-1]), draws=20)


@pytest.mark.slow
def test_calibrated_where_the_coreset_is_not():
    from benchmarks.calibration import CASES, coverage, replicate, uniformity

    for name in ("logistic", "student-t"):
        found = [replicate(CASES[name](), seed) for seed in range(100, 180)]
        ours, exact = (np.stack([one[key] for one in found]) for key in ("sample", "correct"))
        assert uniformity(exact) > 1e-3
        assert 0.84 < coverage(exact) < 0.95
        assert coverage(ours) < 0.84


def test_draw_exactly_gives_what_it_took():
    data = poisson_rows(300, 3, seed=2)
    coreset = poisson_coreset(data, 10)
    rows = open_rows(data).check()
    found = draw_exactly(np.random.default_rng(0), coreset, rows, 100, 2)
    assert found.values.shape == (2, 100, 3)
    assert found.residual.num_passes * rows.num_rows == rows.meter.rows_asked
    assert found.residual.num_evaluations <= 2 * 110 + 2


def test_nobody_is_asked_for_more_rows_than_there_are():
    """Of 20 rows: a coreset of 6 may have more, one of 15 all, one of all none."""
    data = poisson_rows(20)
    model = cb.PoissonRegression(link="log", prior=cb.Normal())
    full = everything(model, data)

    def of(number):
        few = np.arange(number)
        return cb.Coreset(
            few, np.full(number, 9.0), full.rows.take(few), full.model, 20, full.total_count
        )

    assert nearer(of(6), sized=True) == "build with size=12 or more"
    assert nearer(of(15), sized=True) == "build with more rows, up to all 20"
    for sized in (False, True):
        assert "size" not in nearer(of(20), sized=sized)
        assert "has all 20" in nearer(of(20), sized=sized)
    verdict = cb.certify(of(20), data).verdict
    assert verdict.startswith("Not certified") and "size" not in verdict
