"""Kernels leave π_w invariant: chains that begin there stay there, others get there."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.problem import Problem
from corebayes.rows import open_rows
from tests.contract.cases import MODELS, some_points

CASES = {case.name: case for case in MODELS}
WEIGHTS = np.array([5.0, 0.0, 9.0, 2.5])


def gaussian_density(scale=1.0):
    """A conjugate π_w, a fit of the wrong size, and its exact moments."""
    problem = CASES["linear"].problem()
    points = some_points(problem, 2, 9, 20, 33)
    posterior = cb.Posterior(problem.model, points.rows, WEIGHTS)
    fit = cb.Exact().fit(posterior)
    return posterior, fit._replace(factor=scale * fit.factor), fit


def whitened(fit, chains):
    return np.linalg.solve(fit.factor, (chains - fit.mean).T)


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_exact_gaussian_moments_stay(scale):
    posterior, wrong, fit = gaussian_density(scale)
    rng = np.random.default_rng(0)
    chains = fit.draw(rng, 4000)
    for _ in range(12):
        chains = cb.HitAndRun()(rng, posterior, wrong, chains)
    z = whitened(fit, chains)
    assert np.all(np.abs(z.mean(axis=1)) < 4 / np.sqrt(4000))
    assert np.allclose(z @ z.T / 4000, np.eye(3), atol=0.1)
    assert np.allclose(np.mean(z**4, axis=1), 3.0, atol=0.5)


def test_chains_from_elsewhere_arrive():
    posterior, wrong, fit = gaussian_density()
    rng = np.random.default_rng(1)
    chains = np.full((2000, 3), 20.0)
    for _ in range(100):
        chains = cb.HitAndRun()(rng, posterior, wrong, chains)
    z = whitened(fit, chains)
    assert np.all(np.abs(z.mean(axis=1)) < 5 / np.sqrt(2000))
    assert np.allclose(z @ z.T / 2000, np.eye(3), atol=0.15)


@pytest.mark.parametrize(
    ("scale", "kernel"),
    [
        (1.0, cb.HitAndRun()),
        pytest.param(4.0, cb.HitAndRun(), marks=pytest.mark.slow),
        pytest.param(0.5, cb.HitAndRun(width=1.0, max_steps_out=2), marks=pytest.mark.slow),
        (0.5, cb.HitAndRun(width=2.0, max_steps_out=3)),
    ],
    ids=["fitted", "too-wide", "two-steps-out", "three-steps-out"],
)
def test_a_skewed_density_by_integration(scale, kernel):
    """Two rows of a logistic regression under a wide prior: a long tail on one side."""
    data = open_rows((np.array([[1.0], [0.4]]), np.array([1.0, 1.0])))
    problem = Problem(cb.LogisticRegression(prior=cb.Normal(0.0, 5.0)).bind(data), data)
    rows, weights = data.take(np.arange(2)), np.array([6.0, 3.0])
    posterior = cb.Posterior(problem.model, rows, weights)
    fit = cb.Laplace().fit(posterior)
    fit = fit._replace(factor=scale * fit.factor)
    grid = np.linspace(-15.0, 45.0, 40_001)
    heights = posterior.log_density(grid[:, None])
    shares = np.exp(heights - heights.max())
    shares /= shares.sum()
    mean = shares @ grid
    sd = np.sqrt(shares @ (grid - mean) ** 2)
    skewness = shares @ ((grid - mean) / sd) ** 3
    rng = np.random.default_rng(2)
    # From exact draws, so that whatever moves away is the kernel's doing.
    chains = rng.choice(grid, p=shares, size=(20_000, 1))
    for _ in range(25):
        chains = kernel(rng, posterior, fit, chains)
    z = (chains[:, 0] - mean) / sd
    assert skewness > 0.3
    assert abs(z.mean()) < 4 / np.sqrt(20_000)
    assert z.std() == pytest.approx(1.0, abs=0.025)
    assert np.mean(z**3) == pytest.approx(skewness, abs=0.08)


def test_densities_that_are_not_numbers_are_never_entered():
    def log_likelihood(draws, block):
        inside = draws[:, 0] > 0.0
        return np.where(inside, np.log(np.where(inside, draws[:, 0], 1.0)), np.nan)[None, :]

    model = cb.CustomModel(log_likelihood, lambda draws: -draws[:, 0], 1)
    data = open_rows(np.zeros((1, 1)))
    fit = cb.types.Gaussian(np.array([1.0]), np.array([[1.0]]))
    posterior = cb.Posterior(model, data.take(np.arange(1)), np.ones(1))
    rng = np.random.default_rng(4)
    chains = rng.gamma(2.0, size=(3000, 1))
    for _ in range(10):
        chains = cb.HitAndRun()(rng, posterior, fit, chains)
    # x e^{−x} is Gamma(2).
    assert np.all(chains > 0.0)
    assert chains.mean() == pytest.approx(2.0, abs=0.12)
    assert chains.var() == pytest.approx(2.0, abs=0.3)
