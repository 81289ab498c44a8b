"""Laplace's fit of all rows with importance weights: moments and evidence against the truth."""

import numpy as np
import pyarrow as pa
import pytest

import corebayes as cb


def gamma_like(num_rows=60, seed=1):
    """Few rows and few ones: a logistic posterior that leans to one side."""
    rng = np.random.default_rng(seed)
    return np.ones((num_rows, 1)), (np.arange(num_rows) < 3).astype(float), rng


def on_a_grid(model, X, y):
    """Mean, sd and log evidence of a posterior of one parameter."""
    bound = model.bind(cb.open((X, y)))
    grid = np.linspace(-12.0, 8.0, 40_001)
    block = cb.open((X, y)).take(np.arange(len(y)))
    heights = bound.sum_potentials(grid[:, None], block, np.ones(len(y)))
    heights += bound.log_prior(grid[:, None]) + bound.log_base(block).sum()
    step = grid[1] - grid[0]
    weights = np.exp(heights - heights.max())
    evidence = heights.max() + np.log(weights.sum() * step)
    mean = weights @ grid / weights.sum()
    return mean, np.sqrt(weights @ (grid - mean) ** 2 / weights.sum()), evidence


def test_a_skewed_posterior_has_the_moments_and_the_evidence_of_a_grid():
    X, y, _ = gamma_like()
    model = cb.LogisticRegression(prior=cb.Normal(0.0, 2.0))
    found = cb.laplace(model, (X, y), draws=20_000, seed=3)
    mean, sd, evidence = on_a_grid(model, X, y)
    (name,) = found.posterior.data_vars
    values = found.posterior[name].values.ravel()
    assert values.mean() == pytest.approx(mean, abs=0.03 * sd)
    assert values.std() == pytest.approx(sd, rel=0.03)
    error = found.attrs["log_evidence_se"]
    assert 0.0 < error < 0.01
    assert found.attrs["log_evidence"] == pytest.approx(evidence, abs=4.0 * error)
    # The mode is elsewhere than the mean, and the weights know it.
    assert 0.5 < found.attrs["effective_draws"] / 20_000 < 1.0


def test_weights_in_place_of_drawing_again():
    X, y, _ = gamma_like()
    model = cb.LogisticRegression(prior=cb.Normal(0.0, 2.0))
    found = cb.laplace(model, (X, y), draws=20_000, resample=False)
    mean, sd, _ = on_a_grid(model, X, y)
    (name,) = found.posterior.data_vars
    weights = np.exp(found.sample_stats["log_weight"].values)
    assert weights.sum() == pytest.approx(1.0)
    weighted = float(weights.ravel() @ found.posterior[name].values.ravel())
    assert weighted == pytest.approx(mean, abs=0.03 * sd)


def test_a_conjugate_model_is_exact():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X @ [1.0, -2.0] + 0.7 * rng.normal(size=300)
    model = cb.LinearRegression(noise_sd=0.7, prior=cb.Normal())
    found = cb.laplace(model, (X, y))
    coreset = cb.build(model, (X, y), size=6)
    assert found.attrs["pareto_k"] == 0.0
    assert found.attrs["effective_draws"] == pytest.approx(1000.0)
    truth = cb.log_evidence(coreset, (X, y)).value
    assert found.attrs["log_evidence"] == pytest.approx(truth, abs=1e-8)


def test_counts_count():
    X, y, _ = gamma_like()
    model = cb.LogisticRegression(prior=cb.Normal(0.0, 2.0))
    doubled = cb.laplace(model, (np.repeat(X, 2, axis=0), np.repeat(y, 2)), draws=4000)
    counted = cb.laplace(model, (X, y), counts=np.full(len(y), 2.0), draws=4000)
    assert counted.attrs["log_evidence"] == pytest.approx(doubled.attrs["log_evidence"], abs=0.02)


def test_two_modes_are_both_there():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 1)) * 0.3 + 2.0

    def likelihood(draws, block):
        return -0.5 * (block["X"][:, :1] - np.abs(draws[:, 0])[None, :]) ** 2

    model = cb.CustomModel(likelihood, lambda draws: -0.5 * draws[:, 0] ** 2 / 9.0, dim=1)
    found = cb.laplace(model, x, draws=2000)
    (name,) = found.posterior.data_vars
    right = float((found.posterior[name].values > 0.0).mean())
    assert right == pytest.approx(0.5, abs=0.05)


def test_models_with_groups_are_told_what_to_do():
    rng = np.random.default_rng(0)
    frame = {"y": rng.integers(0, 2, 60).astype(float), "g": np.arange(60) % 3}
    pandas = pytest.importorskip("pandas")
    model, data = cb.from_formula("y ~ 1 + (1|g)", pandas.DataFrame(frame), family="bernoulli")
    with pytest.raises(ValueError, match="build a coreset"):
        cb.laplace(model, data)


def of_a_family(family: str) -> tuple:
    """A model by formula whose family has constants of its own, and its rows."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=400)
    eta, noise = 0.5 + 0.4 * x, rng.normal(size=400)
    y = {
        "gaussian": eta + noise,
        "gamma": rng.gamma(2.0, np.exp(eta) / 2.0) + 1e-6,
        "negativebinomial": rng.poisson(np.exp(eta) * rng.gamma(1.5, 1.0 / 1.5, 400)),
        "exponential": rng.exponential(np.exp(eta)) + 1e-6,
        "cumulative": np.digitize(eta + rng.logistic(size=400), [-0.5, 1.0]),
    }[family]
    return cb.from_formula("y ~ x", pa.table({"x": x, "y": y}), family=family)


@pytest.mark.parametrize(
    "family",
    [
        "gaussian",
        "exponential",
        "cumulative",
        pytest.param("gamma", marks=pytest.mark.slow),
        pytest.param("negativebinomial", marks=pytest.mark.slow),
    ],
)
def test_families_with_constants_of_their_own(family: str) -> None:
    """They were taken for models with groups, and refused."""
    model, rows = of_a_family(family)
    found = cb.laplace(model, rows, draws=4000, seed=1)
    coreset = cb.build(model, rows, size=60, seed=0, progress=False)
    truth = cb.log_evidence(coreset, rows, seed=2)
    noise = np.hypot(found.attrs["log_evidence_se"], truth.standard_error)
    assert found.attrs["pareto_k"] < 0.7
    assert found.attrs["log_evidence"] == pytest.approx(truth.value, abs=4.0 * noise + 1e-3)


def test_groups_and_scales_of_a_prior_are_refused() -> None:
    rng = np.random.default_rng(0)
    frame = {"y": rng.normal(size=60), "x": rng.normal(size=60), "g": np.arange(60) % 6}
    model, rows = cb.from_formula("y ~ x + (1 | g)", pa.table(frame), family="gaussian")
    with pytest.raises(ValueError, match="with groups"):
        cb.laplace(model, rows)
    shrunk = cb.LinearRegression(prior=cb.Horseshoe())
    with pytest.raises(ValueError, match="scales that only its prior has"):
        cb.laplace(shrunk, (rng.normal(size=(60, 3)), rng.normal(size=60)))
