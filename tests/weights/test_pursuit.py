"""Orthogonal pursuit against brute force and nonnegative least squares."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import nnls

from corebayes.types import Block
from corebayes.weights.pursuit import Pursuit, orthogonal_pursuit


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


@pytest.mark.parametrize("seed", range(6))
def test_left_to_run_it_is_nonnegative_least_squares(seed):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(40, 15)) * rng.lognormal(sigma=2.0, size=(40, 1))
    # Duplicates, multiples and zeros change nothing.
    vectors = np.vstack([vectors, vectors[:5], 3.0 * vectors[5:9], np.zeros((2, 15))])
    total = 4.0 * rng.normal(size=15)
    ((taken, weights),) = orthogonal_pursuit(Plain(), Block({"X": vectors}), total, [51])
    reached = distance(vectors, total, taken, weights)
    assert reached <= nnls(vectors.T, total)[1] + 1e-8 * np.linalg.norm(total)


def test_all_sizes_come_from_one_path():
    vectors, total = problem(3, num_vectors=60, dim=20)
    pool, sizes = Block({"X": vectors}), [2, 5, 11]
    together = orthogonal_pursuit(Plain(), pool, total, sizes)
    for size, choice in zip(sizes, together, strict=True):
        (alone,) = orthogonal_pursuit(Plain(), pool, total, [size])
        assert np.array_equal(choice.taken, alone.taken)
        np.testing.assert_allclose(choice.weights, alone.weights, rtol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_overshooting_and_coming_back_is_never_worse(seed):
    vectors, total = problem(seed, num_vectors=200, dim=40)
    pool = Block({"X": vectors})
    for size in (5, 10, 20):
        (once,) = orthogonal_pursuit(Plain(), pool, total, [size])
        (back,) = orthogonal_pursuit(Plain(), pool, total, [size], overshoot=2.0)
        assert back.taken.size <= size and np.all(back.weights > 0.0)
        assert distance(vectors, total, *back) <= distance(vectors, total, *once) + 1e-9


def test_a_decoy_leaves_on_the_way_back():
    # The third vector is best aligned with the sum of the first two, and useless beside them.
    vectors = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.3]])
    pool, total = Block({"X": vectors}), np.array([1.0, 1.0, 0.0])
    (once,) = orthogonal_pursuit(Plain(), pool, total, [2])
    (back,) = orthogonal_pursuit(Plain(), pool, total, [2], overshoot=2.0)
    assert 2 in once.taken and distance(vectors, total, *once) > 0.05
    assert set(back.taken.tolist()) == {0, 1} and distance(vectors, total, *back) < 1e-12


def test_near_dependent_vectors_keep_their_digits():
    rng = np.random.default_rng(0)
    base = rng.normal(size=(6, 12))
    vectors = np.vstack([base, base + 1e-4 * rng.normal(size=(6, 12))])
    total = np.linspace(0.5, 2.0, 12) @ vectors
    ((taken, weights),) = orthogonal_pursuit(Plain(), Block({"X": vectors}), total, [12])
    assert distance(vectors, total, taken, weights) < 1e-8 * np.linalg.norm(total)


def test_vectors_that_only_round_off_lets_in_are_not_all_tried():
    rng = np.random.default_rng(4)
    # Copies of six but for the last digits: with the six taken none brings the sum closer.
    originals = rng.normal(size=(6, 8))
    vectors = originals[rng.integers(6, size=400)] + 1e-8 * rng.normal(size=(400, 8))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    total = originals.sum(axis=0) + 0.3 * rng.normal(size=8)
    asked = []

    def column(number):
        asked.append(number)
        return unit @ unit[number]

    pursuit = Pursuit(column, unit @ total)
    while pursuit.advance():
        pass
    assert pursuit.taken.size == 6 and len(asked) < 40
