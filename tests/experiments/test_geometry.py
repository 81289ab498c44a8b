"""The manifold of figure 1 against finite differences and the closed form of a Gaussian."""

from itertools import pairwise

import numpy as np
import pytest

from corebayes.diagnostics import gaussian_kl
from corebayes.experiments.geometry import (
    Manifold,
    fixed_plane,
    logistic_manifold,
    minimise,
    moving_plane,
)
from corebayes.types import Gaussian


@pytest.fixture(scope="module")
def logistic():
    return logistic_manifold(num_rows=6, seed=1)


def gaussian_manifold(x):
    """Rows x_n ~ N(θ, 1) with a standard normal prior: π_w = N(Σwx/(1 + Σw), 1/(1 + Σw))."""
    grid = np.linspace(-9.0, 9.0, 4001)
    prior = np.exp(-0.5 * grid**2)
    return Manifold(-0.5 * (x[:, None] - grid) ** 2, prior / prior.sum())


def test_metric_is_the_hessian_of_the_log_partition_function(logistic):
    def log_partition(w):
        return np.log(np.exp(w @ logistic.potentials) @ logistic.prior)

    weights, step = np.array([2.0, 0.5, 1.0, 0.0, 3.0, 0.7]), 1e-3
    units = step * np.eye(6)
    for n in range(6):
        for m in range(6):
            corners = [
                s * t * log_partition(weights + s * units[n] + t * units[m])
                for s in (-1, 1)
                for t in (-1, 1)
            ]
            expected = sum(corners) / (4 * step**2)
            assert logistic.metric(weights)[n, m] == pytest.approx(expected, rel=1e-4, abs=1e-7)


def test_kl_is_that_of_the_gaussians():
    x, weights = np.array([-1.0, 0.4, 2.0]), np.array([0.3, 2.0, 0.0])

    def posterior(w):
        precision = 1.0 + w.sum()
        return Gaussian(np.array([w @ x / precision]), np.array([[precision**-0.5]]))

    expected = gaussian_kl(posterior(weights), posterior(np.ones(3)))
    assert gaussian_manifold(x).kl(weights) == pytest.approx(expected, rel=1e-8)


def test_geodesics_of_gaussians_are_half_circles():
    """The Fisher metric of N(μ, σ²) is hyperbolic: geodesics are half circles in (μ, √2 σ)."""
    x = np.array([-1.0, 2.0])
    path = gaussian_manifold(x).geodesic(
        np.array([1.0, 1.0]), np.array([0.0, 1.0]), 1.0, np.arange(2), points=9
    )
    precision = 1.0 + path.sum(axis=1)
    mean, sd = path @ x / precision, np.sqrt(2.0 / precision)
    # mean² + sd² = a·mean + b on a circle around a point of the axis
    design = np.column_stack([mean, np.ones_like(mean)])
    left, *_ = np.linalg.lstsq(design, mean**2 + sd**2, rcond=None)
    assert np.allclose(design @ left, mean**2 + sd**2, rtol=1e-5)
    # and it is no straight line in the weights
    straight = np.linalg.lstsq(path[:, :1] - path[0, 0], path[:, 1] - path[0, 1], rcond=None)
    assert float(straight[1][0]) > 1e-4


def test_geodesics_have_the_length_asked_for(logistic):
    start, direction = np.array([2.0, 0.5, 0.0, 0.0, 0.0, 0.0]), np.eye(6)[1]
    path = logistic.geodesic(start, direction, 0.3, np.array([0, 1]), points=400)
    pieces, middles = np.diff(path, axis=0), 0.5 * (path[1:] + path[:-1])
    metric = [logistic.metric(w) for w in middles]
    length = sum(np.sqrt(p @ G @ p) for p, G in zip(pieces, metric, strict=True))
    assert length == pytest.approx(0.3, rel=1e-4)


def test_solution_in_a_plane_is_the_lowest_error_there(logistic):
    at, active = np.array([0.0, 1.0, 0.0, 2.0, 0.0, 0.0]), np.array([1, 4])
    metric = logistic.metric(at)

    def error(weights):
        missing = 1.0 - weights
        return missing @ metric @ missing

    best = logistic.solution(at, active)
    assert np.all(best >= 0) and np.all(np.delete(best, active) == 0)
    rng = np.random.default_rng(0)
    for _ in range(200):
        other = np.zeros(6)
        other[active] = rng.exponential(3.0, size=2)
        assert error(best) <= error(other) + 1e-12


def test_best_row_is_the_best_correlated_with_what_is_missing(logistic):
    at, weights = np.array([0.5, 0.0, 2.0, 0.0, 1.0, 0.0]), np.array([9.0, 0.0, 0.0, 4.0, 0.0, 0.0])
    density = logistic.density(at)
    missing = (1.0 - weights) @ logistic.potentials

    def correlation(values):
        covariance = np.cov(values, missing, aweights=density, ddof=0)
        return covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])

    scores = [correlation(row) for row in logistic.potentials]
    scores[0] = scores[3] = -np.inf
    assert logistic.best_row(at, weights, np.array([0, 3])) == int(np.argmax(scores))


def test_minimise_finds_the_lowest_kl_on_the_face(logistic):
    active = np.array([0, 3])
    path = minimise(logistic, np.zeros(6), active)
    kls = [logistic.kl(weights) for weights in path]
    assert all(later < earlier for earlier, later in pairwise(kls))
    for nearby in np.random.default_rng(0).normal(size=(50, 2)):
        other = path[-1].copy()
        other[active] = np.maximum(other[active] + 0.1 * nearby, 0.0)
        assert kls[-1] <= logistic.kl(other) + 1e-9


def test_a_moving_plane_beats_a_fixed_one_at_every_size():
    manifold = logistic_manifold()
    moving, rows = moving_plane(manifold, 4)
    fixed = fixed_plane(manifold, 0.1 * moving[2], 4)
    assert len(set(rows.tolist())) == 4
    for number in range(1, 5):
        assert np.count_nonzero(moving[number]) <= number
        assert manifold.kl(moving[number]) < manifold.kl(fixed[number])
