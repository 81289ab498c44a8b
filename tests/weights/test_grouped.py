"""Least squares and pursuit over groups, against dense linear algebra."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from corebayes.tangent.arrow.coordinates import GroupedElement
from corebayes.weights.grouped import GroupedVectors, Solver
from corebayes.weights.grouped_pursuit import grouped_pursuit


def problem(num_rows=300, num_groups=12, common=5, own=3, seed=0):
    rng = np.random.default_rng(seed)
    groups = np.sort(rng.choice(num_groups, size=num_rows, p=rng.dirichlet(np.ones(num_groups))))
    both = rng.normal(size=(num_rows, common + own)) + 0.3
    both /= np.linalg.norm(both, axis=1, keepdims=True)
    weights = rng.uniform(0.5, 2.0, size=num_rows)
    total_own = np.zeros((num_groups, own))
    np.add.at(total_own, groups, weights[:, None] * both[:, common:])
    total = GroupedElement(weights @ both[:, :common], total_own)
    return GroupedVectors(both[:, :common], both[:, common:], groups, total)


def matrix(vectors):
    """All vectors written out, and the total."""
    num_rows, own = vectors.own.shape
    wide = np.zeros((num_rows, vectors.num_groups, own))
    wide[np.arange(num_rows), vectors.groups] = vectors.own
    written = np.hstack([vectors.common, wide.reshape(num_rows, -1)])
    return written, np.append(vectors.total.common, vectors.total.own.ravel())


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(0, 8), st.integers(1, 4))
def test_solutions_are_least_squares(seed, num_groups, common, own):
    vectors = problem(60, num_groups, common, own, seed)
    taken = np.sort(np.random.default_rng(seed).choice(60, size=20, replace=False))
    written, total = matrix(vectors)
    values = Solver(vectors, taken).solve()
    found = total - written[taken].T @ values
    best = total - written[taken].T @ np.linalg.lstsq(written[taken].T, total, rcond=None)[0]
    assert np.linalg.norm(found) <= np.linalg.norm(best) + 1e-5 * np.linalg.norm(total)


def test_losses_are_what_leaving_costs():
    vectors = problem()
    taken = np.arange(0, 300, 30)
    written, total = matrix(vectors)
    solver = Solver(vectors, taken)
    values = solver.solve()

    def missing(rows):
        solution = np.linalg.lstsq(written[rows].T, total, rcond=None)[0]
        return 0.5 * np.sum((total - written[rows].T @ solution) ** 2)

    losses = solver.losses(values)
    for place in (0, 4, 9):
        rise = missing(np.delete(taken, place)) - missing(taken)
        assert losses[place] == pytest.approx(rise, rel=1e-3, abs=1e-4)


def test_pursuit_keeps_to_sizes_and_signs_and_gets_better_with_size():
    vectors = problem(num_rows=600, num_groups=20)
    choices = grouped_pursuit(vectors, [25, 40, 60])
    levels = []
    for size, (taken, values) in zip([25, 40, 60], choices, strict=True):
        assert taken.size <= size and np.unique(taken).size == taken.size
        assert np.all(values > 0.0)
        levels.append(vectors.residual(taken, values).half_square)
    assert levels[0] > levels[1] > levels[2]


def test_enough_vectors_match_everything():
    # 20 groups of 3 coordinates and 5 common ones: 66 vectors can match the total.
    vectors = problem(num_rows=600, num_groups=20)
    ((taken, values),) = grouped_pursuit(vectors, [80])
    written, total = matrix(vectors)
    best = nnls(written.T, total)[1]
    assert vectors.residual(taken, values).half_square < 1e-8 * (total @ total)
    assert best < 1e-6 * np.linalg.norm(total)


def test_groups_with_few_vectors_and_one_group():
    vectors = problem(num_rows=40, num_groups=30, common=2, own=1)
    ((taken, values),) = grouped_pursuit(vectors, [30])
    assert np.all(values > 0.0) and taken.size <= 30
    vectors = problem(num_rows=100, num_groups=1, common=6, own=1)
    ((taken, values),) = grouped_pursuit(vectors, [12])
    assert vectors.residual(taken, values).half_square < 1e-3 * vectors.total.half_square
