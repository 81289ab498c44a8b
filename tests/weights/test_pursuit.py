"""Orthogonal pursuit against brute force and nonnegative least squares."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import nnls

from corebayes.types import Block
from corebayes.weights.pursuit import orthogonal_pursuit


class Plain:
    """A tangent space whose rows are plain vectors."""

    def embed(self, block, *, reuse=False):
        return block.X

    def combine(self, vectors, weights):
        return weights @ vectors

    def project(self, vectors, element):
        return vectors @ element

    def squared_norms(self, vectors):
        return np.sum(vectors**2, axis=1)

    def take(self, vectors, positions):
        return vectors[positions]

    def gram(self, vectors, others=None):
        return vectors @ (vectors if others is None else others).T


def problem(seed, num_vectors=12, dim=4):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(num_vectors, dim)) + 0.5
    return vectors, vectors.sum(axis=0)


def distance(vectors, total, taken, weights):
    return np.linalg.norm(total - weights @ vectors[taken])


@pytest.mark.parametrize("seed", range(10))
def test_weights_are_optimal_and_error_falls_with_size(seed):
    vectors, total = problem(seed)
    errors = []
    for size in range(1, 8):
        taken, weights = orthogonal_pursuit(Plain(), Block({"X": vectors}), total, [size])[0]
        assert taken.size == np.unique(taken).size <= size and np.all(weights > 0.0)
        errors.append(distance(vectors, total, taken, weights))
        assert errors[-1] <= nnls(vectors[taken].T, total)[1] + 1e-8
    assert np.all(np.diff(errors) <= 1e-9)
    assert errors[-1] < 1e-6, "five vectors are enough for four dimensions"


@pytest.mark.parametrize("seed", range(10))
def test_one_vector_is_the_best_one_and_two_are_near_it(seed):
    vectors, total = problem(seed)
    best = {
        size: min(nnls(vectors[list(some)].T, total)[1] for some in combinations(range(12), size))
        for size in (1, 2)
    }
    for size in (1, 2):
        taken, weights = orthogonal_pursuit(Plain(), Block({"X": vectors}), total, [size])[0]
        reached = distance(vectors, total, taken, weights)
        assert reached <= best[1] + 1e-9
        if size == 1:
            assert reached == pytest.approx(best[1])


def test_zero_and_opposed_vectors_are_never_taken():
    vectors = np.array([[0.0, 0.0], [-1.0, -1.0], [1.0, 2.0], [1.0, 2.0]])
    target = np.array([3.0, 6.0])
    ((taken, weights),) = orthogonal_pursuit(Plain(), Block({"X": vectors}), target, [4])
    assert set(taken.tolist()) <= {2, 3} and weights.sum() == pytest.approx(3.0)
