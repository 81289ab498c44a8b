"""Least squares on a changing set against a fresh solution."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corebayes.weights.active_set import ActiveSet


def unit_vectors(seed, number, dim):
    vectors = np.random.default_rng(seed).normal(size=(number, dim)) + 0.3
    return vectors / np.linalg.norm(vectors, axis=1)[:, None]


def fresh(vectors, target):
    return np.linalg.lstsq(vectors.T, target, rcond=None)[0]


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 10**6), min_size=1, max_size=40))
def test_any_order_of_entering_and_leaving(seed, moves):
    vectors = unit_vectors(seed, 12, 20)
    target = np.random.default_rng(seed + 1).normal(size=20)
    active, inside = ActiveSet(), []
    for move in moves:
        number = move % 12
        if number in inside:
            active.remove(inside.index(number))
            inside.remove(number)
        else:
            assert active.add(vectors[inside] @ vectors[number], vectors[number] @ target)
            inside.append(number)
        assert len(active) == len(inside)
        np.testing.assert_allclose(active.solve(), fresh(vectors[inside], target), atol=1e-9)


def test_filling_equals_entering_one_by_one():
    vectors, target = unit_vectors(0, 9, 11), np.arange(11.0)
    filled, entered = ActiveSet(), ActiveSet()
    assert filled.fill(vectors @ vectors.T, vectors @ target)
    for number in range(9):
        assert entered.add(vectors[:number] @ vectors[number], vectors[number] @ target)
    filled.remove(4)
    entered.remove(4)
    np.testing.assert_allclose(filled.solve(), entered.solve(), atol=1e-10)


@pytest.mark.parametrize("kind", ["duplicate", "combination"])
def test_a_dependent_vector_does_not_enter(kind):
    vectors = unit_vectors(1, 3, 6)
    extra = vectors[1] if kind == "duplicate" else vectors.sum(axis=0)
    extra = extra / np.linalg.norm(extra)
    active = ActiveSet()
    active.fill(vectors @ vectors.T, np.ones(3))
    before = active.solve()
    assert not active.add(vectors @ extra, 1.0)
    assert np.array_equal(active.solve(), before)
    assert not ActiveSet().fill(np.ones((2, 2)), np.ones(2))


def test_a_correction_gives_the_digits_back():
    vectors, target = unit_vectors(2, 8, 9), np.linspace(-1.0, 2.0, 9)
    vectors[1] = vectors[0] + 1e-5 * vectors[1]
    vectors[1] /= np.linalg.norm(vectors[1])
    active = ActiveSet()
    active.fill(vectors @ vectors.T, vectors @ target)
    exact, rough = fresh(vectors, target), active.solve()
    better = rough + active.correct(vectors @ (target - rough @ vectors))
    assert np.abs(better - exact).max() < 0.1 * np.abs(rough - exact).max()
