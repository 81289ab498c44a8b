"""The evidence against closed forms, a grid and a bridge on all rows."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import corebayes as cb
from corebayes.exact.bridge import bridge, log_normaliser
from corebayes.exact.cover import modes_of
from corebayes.samplers.posterior import Posterior
from tests.exact.rows import Grid, everything, poisson_coreset, poisson_rows, spoilt


def test_linear_regression_in_closed_form():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.7 * rng.normal(size=200)
    model = cb.LinearRegression(noise_sd=0.7, prior=cb.Normal(0.5, 2.0))
    coreset = cb.build(model, (X, y), size=6, seed=0)
    truth = stats.multivariate_normal(X @ np.full(3, 0.5), 0.49 * np.eye(200) + 4.0 * X @ X.T)
    assert cb.log_evidence(coreset, (X, y)) == (pytest.approx(truth.logpdf(y), abs=1e-7), 0.0)


def test_gaussian_mean_in_closed_form():
    rng = np.random.default_rng(2)
    noise = np.array([[1.0, 0.3], [0.3, 2.0]])
    X = rng.normal([1.0, 2.0], size=(40, 2))
    coreset = cb.build(cb.GaussianMean(cov=noise), X, size=4, seed=0)
    covariance = np.kron(np.eye(40), noise) + np.kron(np.ones((40, 40)), np.eye(2))
    truth = stats.multivariate_normal(np.zeros(80), covariance).logpdf(X.ravel())
    spoilt_weights = replace(coreset, weights=3.0 * coreset.weights)
    assert cb.log_evidence(spoilt_weights, X).value == pytest.approx(truth, abs=1e-8)


@pytest.mark.parametrize(
    "factor, noise",
    [
        (0.4, 0.3),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((1.0, 0.0), (3.0, 0.6))),
    ],
)
def test_against_a_grid_with_errors_that_hold(factor, noise):
    data = poisson_rows()
    coreset = spoilt(poisson_coreset(data), factor, noise)
    truth = Grid(coreset.model, data).log_evidence
    found = [cb.log_evidence(coreset, data, draws=800, seed=seed) for seed in range(12)]
    z = np.array([(value - truth) / error for value, error in found])
    assert np.all(np.abs(z) < 4.0)
    assert np.sqrt(np.mean(np.square(z))) < 1.8
    assert max(error for _, error in found) < 0.15


def test_against_a_bridge_on_all_rows():
    data = poisson_rows(200, 4, seed=3)
    coreset = poisson_coreset(data, 15)
    full = everything(cb.PoissonRegression(link="log", prior=cb.Normal()), data)
    rng, posterior = np.random.default_rng(0), Posterior.of(full)
    expected = log_normaliser(rng, posterior, modes_of(rng, posterior))
    found = cb.log_evidence(coreset, data, seed=1)
    error = np.hypot(found.standard_error, expected.standard_error)
    assert abs(found.value - expected.value - posterior.log_base) < 4.0 * error


def test_the_bridge_between_gaussians():
    rng = np.random.default_rng(4)
    of_p, of_q = rng.normal(0.5, 1.2, size=(4, 1000)), rng.normal(size=4000)

    def log_ratio(x):
        return 3.0 - 0.5 * ((x - 0.5) / 1.2) ** 2 + 0.5 * x**2

    # Z_p = e³ · 1.2 √(2π), Z_q = √(2π)
    value, error = bridge(log_ratio(of_p), log_ratio(of_q))
    assert abs(value - 3.0 - np.log(1.2)) < 4.0 * error < 0.1


def test_too_few_draws_are_refused():
    data = poisson_rows(50)
    with pytest.raises(ValueError, match="draws"):
        cb.log_evidence(poisson_coreset(data), data, draws=10)
