"""Exchanges against a search of all subsets, and what they keep to."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import nnls

from corebayes.weights.exchange import GivenProducts, searched
from corebayes.weights.pursuit import Choice

NOTHING = Choice(np.empty(0, dtype=np.int64), np.empty(0))


def _of(vectors, weights):
    total = weights @ vectors
    return GivenProducts.of(vectors @ vectors.T, vectors @ total, total @ total)


def _candidates(seed, number=12, dim=7):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(number, dim)) + 0.5
    weights = rng.exponential(size=number)
    return vectors, weights, *_of(vectors, weights)


def _search(candidates, size, starts=30, flops=1e9, start=NOTHING):
    rng = np.random.default_rng(0)
    return searched(candidates, start, size, rng, starts=starts, most_flops=flops)


@pytest.mark.parametrize("seed", range(8))
def test_the_search_finds_the_best_of_all_subsets(seed):
    vectors, weights, candidates, lengths = _candidates(seed)
    total = weights @ vectors
    best = min(
        nnls(vectors[list(some)].T, total)[1] ** 2 for some in combinations(range(len(vectors)), 4)
    )
    found = _search(candidates, 4)
    values = found.weights / lengths[found.taken]
    missing = np.sum(np.square(total - values @ vectors[found.taken]))
    assert missing == pytest.approx(candidates.missing(found)) and missing <= 1.05 * best
    assert found.taken.size <= 4 and values.min() > 0.0


def test_a_greedy_path_alone_does_not():
    worse = 0
    for seed in range(8):
        _, _, candidates, _ = _candidates(seed)
        once, often = (_search(candidates, 4, starts=starts) for starts in (0, 30))
        worse += candidates.missing(once) > 1.05 * candidates.missing(often)
    assert worse > 0


def test_it_never_ends_above_its_start_and_keeps_to_its_flops():
    _, _, candidates, _ = _candidates(3)
    start = candidates.solved(np.array([0, 5, 7]))
    assert candidates.missing(_search(candidates, 3, start=start)) <= candidates.missing(start)
    left = _search(candidates, 3, flops=0.0, start=start)
    assert np.array_equal(left.taken, start.taken)


def test_equal_vectors_and_such_of_no_length_are_no_trouble():
    vectors, weights, _, _ = _candidates(1)
    vectors = np.vstack([vectors, vectors, np.zeros((2, vectors.shape[1]))])
    weights = np.concatenate([weights, weights, [1.0, 1.0]])
    candidates, _ = _of(vectors, weights)
    found = _search(candidates, 5)
    assert np.isfinite(found.weights).all() and found.weights.min() > 0.0
    assert found.taken.max() < 24 and np.unique(found.taken % 12).size == found.taken.size


def test_as_many_as_there_are_miss_nothing():
    _, weights, candidates, lengths = _candidates(2, number=6, dim=9)
    found = _search(candidates, 6)
    order = np.argsort(found.taken)
    assert (found.weights / lengths[found.taken])[order] == pytest.approx(weights)
