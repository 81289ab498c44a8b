"""What `sample` hands over to ArviZ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corebayes
from corebayes.models import CustomModel, LinearRegression, Normal
from corebayes.rows import open_rows
from corebayes.sample import sample
from corebayes.samplers.exact import Exact
from corebayes.samplers.posterior import Posterior
from tests.contract.cases import Mixture
from tests.coresets import linear, logistic, near, weighted


@pytest.fixture(scope="module")
def coreset() -> Any:
    model, data = linear()
    return weighted(
        model,
        data,
        [3, 14, 15, 65],
        [2.0, 7.0, 1.0, 8.0],
        reason="size",
        provenance={"seed": 7, "method": "SparseVI", "options": {"num_draws": 100}},
    )


@pytest.fixture(scope="module")
def trace(coreset: Any) -> Any:
    return sample(coreset, draws=250, chains=3, tune=200, seed=5)


def test_posterior_has_a_named_vector(trace: Any, coreset: Any) -> None:
    assert coreset.model.parameter_names == ("beta[0]", "beta[1]", "beta[2]")
    beta = trace.posterior["beta"]
    assert beta.dims == ("chain", "draw", "beta_dim")
    assert beta.shape == (3, 250, 3)
    assert list(beta.coords["beta_dim"].values) == [0, 1, 2]
    exact = Exact().fit(Posterior.of(coreset))
    spread = np.sqrt(np.diag(exact.factor @ exact.factor.T))
    assert np.all(np.abs(beta.values.mean(axis=(0, 1)) - exact.mean) < 0.25 * spread)


def test_sample_stats_follow_arviz(trace: Any, coreset: Any) -> None:
    stats = trace.sample_stats
    assert set(stats.data_vars) == {"lp", "diverging"}
    assert stats["diverging"].values.sum() == 0
    # lp is the log density with all its terms that depend on the data.
    model, rows = coreset.model, coreset.rows
    theta = trace.posterior["beta"].values.reshape(-1, 3)
    likelihood = model.potentials(theta, rows) + model.log_base(rows)[:, None]
    expected = model.log_prior(theta) + coreset.weights @ likelihood
    np.testing.assert_allclose(stats["lp"].values.ravel(), expected, rtol=1e-10)


def test_coreset_and_provenance(trace: Any, coreset: Any) -> None:
    assert list(trace["coreset"]["row_id"].values) == [3, 14, 15, 65]
    assert list(trace["coreset"]["weight"].values) == [2.0, 7.0, 1.0, 8.0]
    for holder in (trace, trace["coreset"], trace["posterior"]):
        attributes = holder.attrs
        assert attributes["num_rows"] == 80 and attributes["size"] == 4
        assert attributes["reason"] == "size" and attributes["method"] == "SparseVI"
        assert attributes["seed"] == 7 and attributes["sampling_seed"] == 5
        assert attributes["options"] == '{"num_draws": 100}'
        assert attributes["corebayes_version"] == corebayes.__version__


def test_arviz_can_summarise_and_save_it(trace: Any, tmp_path: Any) -> None:
    import arviz

    summary = arviz.summary(trace)
    assert list(summary.index) == ["beta[0]", "beta[1]", "beta[2]"]
    assert summary["r_hat"].max() < 1.05
    path = str(tmp_path / "trace.nc")
    trace.to_netcdf(path, engine="h5netcdf")
    loaded = arviz.from_netcdf(path, engine="h5netcdf")
    np.testing.assert_array_equal(loaded.posterior["beta"], trace.posterior["beta"])
    assert loaded["coreset"].attrs["reason"] == "size"


def test_same_seed_same_draws() -> None:
    model, data = logistic(num_rows=40)
    coreset = near(model, data)
    first, again, other = (
        sample(coreset, draws=200, chains=2, tune=100, seed=seed).posterior["beta"].values
        for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.any(first == other)


def test_columns_name_the_parameters() -> None:
    import pandas

    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(30, 4)), columns=["age", "km/h", "draw", "y"])
    data = open_rows(frame, target="y")
    model = LinearRegression(noise_sd=1.0, intercept=True, prior=Normal()).bind(data)
    trace = sample(near(model, data), draws=20, chains=1, tune=50)
    assert set(trace.posterior.data_vars) == {"age", "km_h", "draw_", "intercept"}
    assert trace.posterior["km_h"].dims == ("chain", "draw")


def test_names_that_only_look_alike_stay_apart() -> None:
    data = open_rows(np.zeros((4, 1)))
    model = CustomModel(
        lambda draws, block: np.zeros((len(block), len(draws))),
        lambda draws: -0.5 * np.sum(np.square(draws - np.arange(5)), axis=1),
        5,
        names=["a", "a[0]", "b[x]", "b[y]", "c[1]"],
        log_concave=True,
    ).bind(data)
    posterior = sample(weighted(model, data, [], []), draws=400, chains=1, tune=100).posterior
    assert set(posterior.data_vars) == {"a", "a[0]", "b", "c"}
    assert list(posterior["b"].coords["b_dim"].values) == ["x", "y"]
    means = [posterior[name].values.mean() for name in ("a", "a[0]", "c")]
    np.testing.assert_allclose(means, [0.0, 1.0, 4.0], atol=0.4)
    np.testing.assert_allclose(posterior["b"].values.mean(axis=(0, 1)), [2.0, 3.0], atol=0.4)


def test_no_rows_is_the_prior() -> None:
    model, data = logistic(num_rows=20)
    trace = sample(weighted(model, data, [], []), draws=500, chains=2, tune=200)
    beta = trace.posterior["beta"].values
    np.testing.assert_allclose(beta.mean(axis=(0, 1)), 0.0, atol=0.2)
    np.testing.assert_allclose(beta.std(axis=(0, 1)), 1.0, atol=0.15)
    assert trace["coreset"]["weight"].size == 0


def test_chains_that_disagree_are_warned_about() -> None:
    data = open_rows(np.zeros((2, 1)))
    model = CustomModel(
        lambda draws, block: np.zeros((len(block), len(draws))),
        lambda draws: np.logaddexp(
            -50.0 * np.square(draws[:, 0] - 4.0), -50.0 * np.square(draws[:, 0] + 4.0)
        ),
        1,
    ).bind(data)
    coreset = weighted(model, data, [], [])
    with pytest.warns(UserWarning, match="did not converge"):
        for seed in range(4):
            sample(coreset, draws=50, tune=50, seed=seed, sampler="nuts")
    # By default draws are proposed around both modes.
    values = sample(coreset, draws=500, tune=50).posterior["theta"].values.ravel()
    assert np.mean(values > 0.0) == pytest.approx(0.5, abs=0.08)


@pytest.mark.parametrize(
    "argument", [{"draws": 0}, {"draws": 2.5}, {"chains": 0}, {"chains": True}, {"tune": 10}]
)
def test_bad_arguments_are_refused(coreset: Any, argument: dict[str, Any]) -> None:
    with pytest.raises(
        (TypeError, ValueError), match=f"{next(iter(argument))} must be (a whole|at)"
    ):
        sample(coreset, **argument)


@pytest.mark.parametrize(
    ("sampler", "how"),
    [
        (None, "independence Metropolis, 2 chains"),
        ("independence", "independence Metropolis, 2 chains"),
        ("nuts", "NUTS, 2 chains"),
        (corebayes.NUTS(chains=2, num_tune=100), "NUTS, 2 chains"),
        (corebayes.Laplace(), "draws of the Laplace fit, 2 chains"),
        (Mixture(), "weighted draws around 1 modes, 2 chains"),
    ],
)
def test_samplers_by_name_and_as_objects(sampler: Any, how: str) -> None:
    model, data = logistic(num_rows=60)
    trace = sample(near(model, data), draws=300, chains=2, tune=100, sampler=sampler, seed=3)
    for holder in (trace, trace.sample_stats, trace.posterior):
        assert holder.attrs["sampler"] == how and holder.attrs["num_divergences"] == 0
        assert holder.attrs["max_rhat"] < 1.05 and 0.0 < holder.attrs["acceptance"] <= 1.0
        assert holder.attrs["min_ess_tail"] > 50 and holder.attrs["min_ess_bulk"] > 50
    assert trace.posterior["beta"].shape[:2] == (2, 300)
    assert {"lp", "diverging"} <= set(trace.sample_stats.data_vars)
    assert ("n_steps" in trace.sample_stats) == how.startswith("NUTS")
    assert ("acceptance_rate" in trace.sample_stats) == (trace.attrs["acceptance"] < 1.0)


@pytest.mark.parametrize("sampler", ["nope", corebayes.NUTS, 3])
def test_what_is_no_sampler_is_refused(sampler: Any, coreset: Any) -> None:
    with pytest.raises((TypeError, ValueError), match='must be "exact", "independence", "nuts"'):
        sample(coreset, sampler=sampler)
    model, data = logistic()
    with pytest.raises(TypeError, match="not conjugate"):
        sample(near(model, data), sampler="exact")
