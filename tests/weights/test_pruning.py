"""Backward elimination against brute force."""

import numpy as np
import pytest

from corebayes.weights.pruning import prune


def problem(seed, number=7, dim=9):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(number, dim)) + 1.0
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    target = rng.gamma(2.0, size=number) @ vectors + 0.05 * rng.normal(size=dim)
    return vectors, target


def solution(vectors, target):
    values = np.linalg.lstsq(vectors.T, target, rcond=None)[0]
    return values, float(np.sum((target - values @ vectors) ** 2))


@pytest.mark.parametrize("seed", range(8))
def test_the_vector_that_leaves_costs_least_and_the_rest_is_optimal(seed):
    vectors, target = problem(seed)
    values, _ = solution(vectors, target)
    if values.min() <= 0.0:
        values, vectors = values[values > 0.0], vectors[values > 0.0]
        values, _ = solution(vectors, target)
    number = len(vectors)
    kept = prune(vectors @ vectors.T, values, [number - 1])[number - 1]
    errors = [solution(np.delete(vectors, out, axis=0), target)[1] for out in range(number)]
    exact, error = solution(vectors[kept.positions], target)
    np.testing.assert_allclose(kept.values, exact, atol=1e-9)
    if kept.positions.size == number - 1:
        assert error == pytest.approx(min(errors))


@pytest.mark.parametrize("seed", range(8))
def test_sizes_are_nested_and_weights_positive(seed):
    vectors, target = problem(seed)
    values, _ = solution(vectors, target)
    kept = prune(vectors @ vectors.T, values, [2, 5, 4])
    last = set(range(7))
    for size in (5, 4, 2):
        now = set(kept[size].positions.tolist())
        assert now <= last and len(now) <= size
        assert np.all(kept[size].values > 0.0)
        last = now
