"""The pursuit in blocks against nonnegative least squares, and on vectors that depend on others."""

import numpy as np
import pytest
from scipy.optimize import nnls

from corebayes.types import Block
from corebayes.weights import pursuit
from corebayes.weights.block_pursuit import BlockSet
from corebayes.weights.nnls import nonnegative_least_squares
from corebayes.weights.pursuit import orthogonal_pursuit
from tests.weights.test_pursuit import Plain, distance


def problem(seed, num_vectors=900, dim=300):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(num_vectors, dim)) * rng.uniform(0.5, 2.0, size=(num_vectors, 1))
    vectors[:, 0] += 3.0
    return vectors, rng.uniform(0.5, 1.5, size=num_vectors) @ vectors


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def chosen(vectors, total, sizes, **options):
    return orthogonal_pursuit(Plain(), Block({"X": vectors}), total, sizes, **options)


def test_as_many_vectors_as_dimensions_match_the_total():
    vectors, total = problem(0)
    taken, weights = chosen(vectors, total, [301])[0]
    assert taken.size <= 301 and np.all(weights > 0.0)
    # Inner products have half of the digits.
    assert distance(vectors, total, taken, weights) < 1e-4 * np.linalg.norm(total)


def test_blocks_are_about_as_good_as_single_vectors(monkeypatch):
    vectors, total = problem(1)
    blocks = chosen(vectors, total, [60, 150], overshoot=2.0)
    monkeypatch.setattr(pursuit, "ONE_BY_ONE", 10_000)
    singles = chosen(vectors, total, [60, 150], overshoot=2.0)
    for block, single in zip(blocks, singles, strict=True):
        ours = distance(vectors, total, *block)
        assert ours <= 1.15 * distance(vectors, total, *single)
        # With these vectors no weights are better.
        assert ours <= nnls(vectors[block.taken].T, total)[1] * (1.0 + 1e-6)


def test_what_is_enough_ends_it_early():
    vectors, total = problem(2)
    left = 0.5 * float(total @ total) * 1e-3
    taken, weights = chosen(vectors, total, [290], enough=left)[0]
    assert taken.size < 290
    assert 0.5 * distance(vectors, total, taken, weights) ** 2 <= left


def test_it_ends_where_no_vectors_match_the_rest(monkeypatch):
    # Squares of a column sum to zero for no weights: from some round on, next to nothing is won.
    rng = np.random.default_rng(8)
    x = rng.normal(size=(4000, 10))
    i, j = np.triu_indices(10)
    vectors = np.column_stack([x, x[:, i] * x[:, j]])
    total = 300.0 * vectors.mean(axis=0)
    total[10] = 0.0
    rounds = []
    advance = pursuit.BlockPursuit.advance

    def counted(self, most):
        rounds.append(self.size)
        return advance(self, most)

    monkeypatch.setattr(pursuit.BlockPursuit, "advance", counted)
    ends = []
    for share in (pursuit.STALLED, -1.0):
        monkeypatch.setattr(pursuit, "STALLED", share)
        choice = chosen(vectors, total, [400], enough=4e-3)[0]
        ends.append((0.5 * distance(vectors, total, *choice) ** 2, len(rounds)))
        rounds.clear()
    (early, few), (late, many) = ends
    assert few < many
    assert 0.1 < late < early < 1.2 * late


def test_rows_that_come_many_times_are_taken_once():
    rng = np.random.default_rng(3)
    distinct = rng.normal(size=(40, 20))
    distinct[:, 0] += 2.0
    vectors = np.repeat(distinct, 30, axis=0)
    total = vectors.sum(axis=0)
    taken, weights = chosen(vectors, total, [400])[0]
    assert np.unique(vectors[taken], axis=0).shape[0] == taken.size <= 20
    assert distance(vectors, total, taken, weights) < 1e-6 * np.linalg.norm(total)


def test_slopes_are_the_same_where_products_do_not_fit(monkeypatch):
    vectors, total = problem(4)
    kept = chosen(vectors, total, [200], overshoot=1.5)[0]
    monkeypatch.setattr(pursuit, "REMEMBERED", 10 * len(vectors))
    projected = chosen(vectors, total, [200], overshoot=1.5)[0]
    assert distance(vectors, total, *kept) == pytest.approx(
        distance(vectors, total, *projected), rel=0.1
    )


@pytest.mark.parametrize(
    "seed",
    [pytest.param(k, marks=() if k % 8 == 0 else pytest.mark.slow) for k in range(10, 50, 2)],
)
def test_vectors_as_many_as_dimensions_do_not_spoil_the_way_back(seed):
    # Near the end of the path vectors are all but dependent, and what a factor says is anything.
    vectors, total = problem(seed)
    taken, weights = chosen(vectors, total, [200], overshoot=1.5)[0]
    assert taken.size == 200
    assert distance(vectors, total, taken, weights) < 0.025 * np.linalg.norm(total)


@pytest.mark.parametrize("warm", [False, True])
def test_nonnegative_least_squares_of_many_vectors(warm):
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(300, 400)) + 0.2
    total = vectors.T @ np.maximum(rng.normal(size=300), 0.0) + rng.normal(size=400)
    start = rng.uniform(size=300) * (rng.uniform(size=300) < 0.5) if warm else None
    weights = nonnegative_least_squares(vectors @ vectors.T, vectors @ total, start)
    best, error = nnls(vectors.T, total)
    assert np.linalg.norm(total - weights @ vectors) == pytest.approx(error, rel=1e-8)
    np.testing.assert_allclose(weights, best, atol=1e-6)


def test_a_set_with_pins_is_the_least_squares_of_the_others():
    rng = np.random.default_rng(6)
    vectors, total = unit(rng.normal(size=(12, 30))), rng.normal(size=30)
    gram, cross = vectors @ vectors.T, vectors @ total
    block = BlockSet()
    first, second = np.arange(7), np.arange(7, 12)
    block.enter(np.empty((7, 0)), gram[:7, :7], cross[first])
    assert block.enter(gram[7:, :7], gram[7:, 7:], cross[second]).size == 5
    block.pin(np.array([2, 9]))
    block.pin(np.array([4]))
    free = np.setdiff1d(np.arange(12), [2, 4, 9])
    expected = np.zeros(12)
    expected[free] = np.linalg.lstsq(vectors[free].T, total, rcond=None)[0]
    np.testing.assert_allclose(block.solve(), expected, atol=1e-12)


def test_dependent_vectors_stay_outside():
    rng = np.random.default_rng(7)
    vectors = rng.normal(size=(4, 6))
    vectors = unit(np.vstack([vectors, vectors[1] + vectors[2], vectors[3]]))
    block = BlockSet()
    entered = block.enter(np.empty((6, 0)), vectors @ vectors.T, vectors @ np.ones(6))
    assert entered.size == len(block) == 4
    assert np.linalg.matrix_rank(vectors[entered]) == 4
