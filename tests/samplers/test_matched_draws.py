"""Draws that have the moments of the Gaussian they come from."""

from __future__ import annotations

import numpy as np
import pytest

import corebayes as cb
from corebayes.problem import Problem
from corebayes.rows import open_rows
from corebayes.tangent import default_geometry
from corebayes.types import Gaussian

SKEWED = Gaussian(np.array([3.0, -1.0, 0.5]), np.array([[2.0, 0, 0], [-1.0, 0.3, 0], [0.2, 1, 5]]))


@pytest.mark.parametrize("num_draws", [4, 7, 100])
def test_mean_and_covariance_are_exact(num_draws):
    draws = SKEWED.draw_matched(np.random.default_rng(0), num_draws)
    assert draws.shape == (num_draws, 3)
    np.testing.assert_allclose(draws.mean(axis=0), SKEWED.mean, rtol=1e-12)
    covariance = np.cov(draws, rowvar=False, bias=True)
    np.testing.assert_allclose(covariance, SKEWED.factor @ SKEWED.factor.T, atol=1e-10)


@pytest.mark.parametrize("num_draws", [1, 2, 3])
def test_few_draws_have_the_mean_at_least(num_draws):
    draws = SKEWED.draw_matched(np.random.default_rng(0), num_draws)
    np.testing.assert_allclose(draws.mean(axis=0), SKEWED.mean, rtol=1e-12)


def test_higher_moments_are_those_of_a_gaussian():
    standard = Gaussian(np.zeros(2), np.eye(2))
    draws = standard.draw_matched(np.random.default_rng(1), 200_000)
    np.testing.assert_allclose((draws**4).mean(axis=0), 3.0, atol=0.05)
    np.testing.assert_allclose((draws**3).mean(axis=0), 0.0, atol=0.05)
    assert abs((draws[:, 0] ** 2 * draws[:, 1] ** 2).mean() - 1.0) < 0.03


def test_covariances_on_the_way_are_nearer_with_them():
    """With a potential that is linear in θ the covariance is exact, whatever the draws are."""
    rows = np.array([[1.0], [4.0], [-2.0]])
    model = cb.CustomModel(
        log_likelihood=lambda draws, block: block["x"][:, 0:1] * draws[None, :, 0],
        log_prior=lambda draws: -0.5 * (draws**2).sum(axis=1),
        dim=1,
    )
    data = open_rows({"x": rows})
    problem = Problem(model.bind(data), data)
    geometry = default_geometry(problem)
    while not isinstance(geometry, cb.MonteCarlo):
        geometry = geometry.geometry
    space = geometry.space(np.random.default_rng(2), problem, problem.no_points())
    gram = space.gram(space.embed(data.take(np.arange(3))))
    np.testing.assert_allclose(gram, rows @ rows.T, rtol=1e-6)
