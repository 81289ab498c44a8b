"""Nonnegative least squares against scipy, and on vectors that break naive solvers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from corebayes.weights.nnls import nonnegative_least_squares


def problem(seed, num_vectors, dim):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(num_vectors, dim)) + 0.3
    vectors *= rng.lognormal(sigma=2.0, size=(num_vectors, 1))
    target = 5.0 * rng.normal(size=dim) + 1.0
    return vectors, target


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**32 - 1), st.integers(1, 25), st.integers(1, 30), st.booleans())
def test_equals_scipy(seed, num_vectors, dim, warm):
    vectors, target = problem(seed, num_vectors, dim)
    start = np.abs(np.random.default_rng(seed + 1).normal(size=num_vectors)) if warm else None
    weights = nonnegative_least_squares(vectors @ vectors.T, vectors @ target, start)
    _, distance = nnls(vectors.T, target)
    assert np.all(weights >= 0.0)
    reached = np.linalg.norm(target - weights @ vectors)
    assert reached <= distance + 1e-7 * np.linalg.norm(target)


@pytest.mark.parametrize("seed", range(5))
def test_duplicates_zeros_and_collinear_vectors(seed):
    vectors, target = problem(seed, 8, 5)
    vectors = np.vstack([vectors, vectors[:3], np.zeros((2, 5)), 2.5 * vectors[3:5]])
    weights = nonnegative_least_squares(vectors @ vectors.T, vectors @ target)
    _, distance = nnls(vectors.T, target)
    assert np.all(np.isfinite(weights)) and np.all(weights >= 0.0)
    assert np.all(weights[11:13] == 0.0)
    assert np.linalg.norm(target - weights @ vectors) <= distance + 1e-6 * np.linalg.norm(target)


def test_nothing_to_gain_gives_zero():
    vectors = np.array([[1.0, 0.0], [0.0, 2.0]])
    assert np.array_equal(
        nonnegative_least_squares(vectors @ vectors.T, vectors @ np.array([-1.0, -3.0])), [0.0, 0.0]
    )
