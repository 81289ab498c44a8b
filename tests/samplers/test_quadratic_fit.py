"""Gaussian fits from values alone."""

import numpy as np
import pytest

from corebayes.samplers.quadratic_fit import quadratic_fit
from corebayes.types import Gaussian

ROOT = np.array([[2.0, 0.0, 0.0], [0.7, 0.1, 0.0], [-30.0, 5.0, 40.0]])
MEAN = np.array([1.0, -2.0, 300.0])


def log_density(theta):
    z = np.linalg.solve(ROOT, (theta - MEAN).T)
    return -0.5 * np.square(z).sum(axis=0) + 7.0


@pytest.mark.parametrize("width", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("away", [0.0, 10.0])
def test_a_quadratic_is_found_from_afar(width, away):
    start = Gaussian(MEAN + ROOT @ np.full(3, away), width * np.diag(np.diag(ROOT)))
    found = quadratic_fit(np.random.default_rng(0), log_density, start)
    assert found is not None
    np.testing.assert_allclose(found.mean, MEAN, rtol=1e-6)
    np.testing.assert_allclose(found.factor, ROOT, rtol=1e-5, atol=1e-5)


def test_what_has_no_mode_has_no_fit():
    start = Gaussian(np.zeros(2), np.eye(2))
    rng = np.random.default_rng(0)
    assert quadratic_fit(rng, lambda theta: theta[:, 0], start) is None
    assert quadratic_fit(rng, lambda theta: np.square(theta).sum(axis=1), start) is None
    assert quadratic_fit(rng, lambda theta: np.where(theta[:, 0] > 0, 0.0, -np.inf), start) is None
