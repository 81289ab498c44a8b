"""NUTS against exact posteriors, under huge weights, and with densities that misbehave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from corebayes.models import CustomModel, LogisticRegression, Normal
from corebayes.rows import open_rows
from corebayes.samplers.exact import Exact
from corebayes.samplers.nuts import NUTS
from corebayes.samplers.posterior import Posterior
from corebayes.types import Block
from tests.coresets import gaussian_mean, linear, logistic, near, weighted


def run(coreset: Any, *, seed: int = 0, num_draws: int = 400, **options: Any) -> Any:
    sampler = NUTS(**{"chains": 4, **options})
    rng = np.random.default_rng(seed)
    return sampler.draw(rng, Posterior.of(coreset), num_draws * sampler.chains).diagnosed()


def assert_moments(draws: np.ndarray, mean: np.ndarray, cov: np.ndarray) -> None:
    """Means and variances within four Monte Carlo errors."""
    from corebayes.samplers.convergence import standard_error

    for k in range(mean.size):
        error = standard_error(draws[:, :, k], independent=False)
        assert abs(draws[:, :, k].mean() - mean[k]) < 4.0 * error
        assert error < 0.1 * np.sqrt(cov[k, k])
        squares = np.square(draws[:, :, k] - mean[k])
        error = standard_error(squares, independent=False)
        assert abs(squares.mean() - cov[k, k]) < 4.0 * error


@pytest.mark.parametrize("make", [gaussian_mean, linear])
def test_moments_equal_the_exact_posterior(make: Any) -> None:
    model, data = make()
    coreset = near(model, data, spread=0.5, share=0.4)
    exact = Exact().fit(Posterior.of(coreset))
    result = run(coreset)
    assert result.values.shape == (4, 400, model.dim)
    assert result.max_rhat < 1.03
    assert_moments(result.values, exact.mean, exact.factor @ exact.factor.T)


def test_prior_only() -> None:
    data = open_rows((np.ones((5, 2)), np.array([0.0, 1.0, 1.0, 0.0, 1.0])))
    prior = Normal([1.0, -2.0], [[2.0, 0.9], [0.9, 0.5]])
    with pytest.warns(UserWarning):
        model = LogisticRegression(prior=prior).bind(data)
    result = run(weighted(model, data, [], []))
    assert_moments(result.values, np.array([1.0, -2.0]), np.array([[2.0, 0.9], [0.9, 0.5]]))


def test_an_asymmetric_posterior_is_not_its_laplace_fit() -> None:
    # One success in logistic regression: π_w ∝ N(0, 3²) σ(θ), skewed to the right.
    data = open_rows((np.ones((2, 1)), np.array([1.0, 0.0])))
    model = LogisticRegression(prior=Normal(0.0, 3.0)).bind(data)
    result = run(weighted(model, data, [0], [1.0]), num_draws=1000)
    grid = np.linspace(-20.0, 25.0, 20_001)
    density = np.exp(-0.5 * (grid / 3.0) ** 2 - np.logaddexp(0.0, -grid))
    density /= density.sum()
    mean = grid @ density
    assert result.location[0] != pytest.approx(mean, abs=0.2)
    assert_moments(result.values, np.array([mean]), np.array([[np.square(grid - mean) @ density]]))


@pytest.mark.parametrize(
    "make", [linear, logistic, pytest.param(gaussian_mean, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("weight", [5e5, 1e-3])
def test_extreme_weights_converge(make: Any, weight: float) -> None:
    """Σw = 1e7 on 20 rows (FAULTS.md), and next to nothing."""
    model, data = make()
    result = run(weighted(model, data, np.arange(20), weight))
    assert result.max_rhat < 1.01
    assert result.num_divergences == 0
    assert result.stats["n_steps"].mean() < 15


def test_uneven_weights_and_correlated_columns_converge() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1)) + 1e-3 * rng.normal(size=(40, 5))
    data = open_rows((X, (rng.random(40) < 0.5).astype(float)))
    model = LogisticRegression(prior=Normal(0.0, 100.0)).bind(data)
    result = run(weighted(model, data, np.arange(40), 10.0 ** rng.uniform(-3, 4, size=40)))
    assert result.max_rhat < 1.02
    assert result.num_divergences == 0


def test_same_seed_same_draws() -> None:
    model, data = logistic()
    coreset = near(model, data)
    first, again, other = (run(coreset, seed=seed, num_draws=50, chains=2) for seed in (0, 0, 1))
    assert np.array_equal(first.values, again.values)
    assert not np.any(first.values == other.values)
    # Chains differ from one another.
    assert not np.any(first.values[0] == first.values[1])


def test_draw_shares_out_the_draws() -> None:
    model, data = linear()
    coreset = near(model, data)
    rng = np.random.default_rng(0)
    draws = NUTS(num_tune=100, chains=3).draw(rng, Posterior.of(coreset), 100)
    assert draws.values.shape == (3, 34, model.dim) and draws.how == "NUTS, 3 chains"
    assert draws.equally_weighted(rng, 100).shape == (100, model.dim)
    exact = Exact().fit(Posterior.of(coreset))
    np.testing.assert_allclose(draws.location, exact.mean, atol=1e-6)


def test_numpys_global_state_is_left_alone() -> None:
    model, data = linear()
    before = np.random.get_state()[1].copy()
    run(near(model, data), num_draws=20, chains=1)
    assert np.array_equal(before, np.random.get_state()[1])


def one_parameter(log_likelihood: Any, **options: Any) -> Any:
    data = open_rows(np.array([[1.0], [2.0]]))
    model = CustomModel(
        log_likelihood, lambda draws: -0.5 * np.square(draws[:, 0] / 3.0), 1, **options
    )
    return weighted(model.bind(data), data, [0, 1], [1.0, 1.0])


def two_modes(draws: np.ndarray, block: Block) -> np.ndarray:
    """Each row has modes at 2, where Newton's method goes from 0, and at −3, of width 0.1."""
    theta = draws[:, 0]
    return (
        np.logaddexp(-50.0 * np.square(theta - 2.0), -50.0 * np.square(theta + 3.0)) + 0 * block.X
    )


@pytest.mark.parametrize("log_concave", [False, True])
def test_two_modes_show_as_disagreement(log_concave: bool) -> None:
    coreset = one_parameter(two_modes, log_concave=log_concave)
    worst = [run(coreset, seed=seed, num_draws=100, num_tune=100).max_rhat for seed in range(4)]
    # Two of four chains start from draws of the prior, unless the model promises one mode: both
    # lead to 2 in one run of three.
    assert np.sum(np.array(worst) > 1.5) >= (0 if log_concave else 2)
    if log_concave:
        assert np.max(worst) < 1.2


def test_a_bounded_support_diverges_and_is_counted() -> None:
    def cut_off(draws: np.ndarray, block: Block) -> np.ndarray:
        inside = np.abs(draws[:, 0]) < 1.0
        return np.where(inside, 0.0, -np.inf) + 0.0 * block.X

    result = run(one_parameter(cut_off), num_draws=100, num_tune=100, chains=2, max_depth=4)
    assert result.num_divergences == int(result.stats["diverging"].sum())
    assert np.all(np.abs(result.values) < 1.0)


def test_divergent_runs_are_repeated_with_smaller_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[float, int]] = []

    def pretend(self: NUTS, *arguments: Any) -> Any:
        draws, stats = run_for_real(self, *arguments)
        asked.append((self.target_accept, self.num_tune))
        stats["diverging"] = np.full(draws.shape[:2], self.target_accept < 0.9)
        return draws, stats

    run_for_real = NUTS._run  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(NUTS, "_run", pretend)
    model, data = linear()
    result = run(near(model, data), num_draws=20, num_tune=50, chains=1)
    assert asked == [(0.8, 50), (0.99, 100)]
    assert result.num_divergences == 0


@pytest.mark.parametrize(
    ("shares", "runs"),
    [
        ({"tolerated": 0.0}, 2),
        ({"tolerated": 0.049}, 2),
        ({"tolerated": 0.05}, 1),
        ({"hopeless": 0.05}, 2),
        ({"hopeless": 0.049}, 1),
    ],
)
def test_few_divergences_may_be_tolerated_and_many_hopeless(
    monkeypatch: pytest.MonkeyPatch, shares: dict[str, float], runs: int
) -> None:
    asked: list[int] = []

    def pretend(self: NUTS, *arguments: Any) -> Any:
        draws, stats = run_for_real(self, *arguments)
        asked.append(self.num_tune)
        stats["diverging"] = np.arange(20)[None, :] == 7
        return draws, stats

    run_for_real = NUTS._run  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(NUTS, "_run", pretend)
    model, data = linear()
    result = run(near(model, data), num_draws=20, num_tune=50, chains=1, **shares)
    assert len(asked) == runs and result.num_divergences == 1


def test_an_error_in_the_model_is_raised_as_it_is() -> None:
    calls = 0

    def fails_later(draws: np.ndarray, block: Block) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls > 200:
            raise KeyError("a column of the user's")
        return -np.square(block.X - draws[:, 0])

    coreset = one_parameter(fails_later, log_concave=True)
    with pytest.raises(KeyError, match="a column of the user's"):
        run(coreset, chains=1)


def test_a_density_that_is_nowhere_finite_is_refused() -> None:
    coreset = one_parameter(lambda draws, block: np.full((len(block), len(draws)), -np.inf))
    with pytest.raises(ValueError, match="not finite near its mode"):
        run(coreset, chains=1)


def test_overflow_far_out_does_not_warn() -> None:
    coreset = one_parameter(
        lambda draws, block: -np.exp(np.square(draws[:, 0])) * 1e3 + 0.0 * block.X
    )
    assert run(coreset, num_draws=100, chains=1).values.shape == (1, 100, 1)
