"""The quadratic weight update, against the quadratic program solved by trying all supports."""

from itertools import chain, combinations

import numpy as np
import pytest

import corebayes as cb
from corebayes.tangent.geometry import Curvature


class Fixed:
    """The same second-order expansion whatever the weights, with a gradient that follows them."""

    def __init__(self, metric, third, optimum):
        self.metric, self.third, self.optimum = metric, third, optimum

    def curvature(self, rng, weights):
        hessian = self.metric - self.third
        return Curvature(hessian @ (weights - self.optimum), self.metric, self.third)


def brute_force(hessian, gradient, weights):
    """argmin_{v ≥ 0} (v − w)ᵀD + ½ (v − w)ᵀH(v − w) over all supports."""
    size, best, least = weights.size, None, np.inf
    linear = hessian @ weights - gradient
    for support in chain.from_iterable(combinations(range(size), k) for k in range(size + 1)):
        v, s = np.zeros(size), list(support)
        if s:
            v[s] = np.linalg.solve(hessian[np.ix_(s, s)], linear[s])
        value = 0.5 * v @ hessian @ v - linear @ v
        if np.all(v >= 0.0) and value < least:
            best, least = v, value
    return best


def random_problem(seed, size=5):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, size + 2))
    metric = root @ root.T / size
    skew = rng.normal(size=(size, size))
    third = 0.02 * (skew + skew.T)
    return metric, third, rng.normal(scale=3.0, size=size), rng.uniform(0.0, 4.0, size=size)


@pytest.mark.parametrize("seed", range(8))
def test_one_step_solves_the_quadratic_program(seed):
    metric, third, optimum, weights = random_problem(seed)
    restriction = Fixed(metric, third, optimum)
    if np.linalg.eigvalsh(metric - third)[0] < 1e-3:
        third = np.zeros_like(third)
        restriction = Fixed(metric, third, optimum)
    gradient = restriction.curvature(None, weights).gradient
    expected = brute_force(metric - third, gradient, weights)
    found = cb.Quadratic(num_steps=1).run(np.random.default_rng(0), restriction, weights)
    assert np.allclose(found, expected, rtol=1e-7, atol=1e-7)
    assert seed != 0 or np.any(expected == 0.0), "the constraint must bind somewhere"


def test_single_form_solves_the_program_in_the_plane():
    metric, third, optimum, weights = random_problem(3)
    restriction = Fixed(metric, third, np.abs(optimum))
    hessian = metric - third
    basis = np.column_stack([np.append(weights[:-1], 0.0), np.eye(5)[-1]])
    start = np.array([1.0, weights[-1]])
    gradient = basis.T @ restriction.curvature(None, weights).gradient
    expected = basis @ brute_force(basis.T @ hessian @ basis, gradient, start)
    update = cb.LineSearch(update=cb.Quadratic(num_steps=1))
    assert np.allclose(update.run(np.random.default_rng(0), restriction, weights), expected)


def test_an_indefinite_hessian_leaves_the_natural_gradient():
    metric, _, optimum, weights = random_problem(1)
    restriction = Fixed(metric, 2.0 * metric, np.abs(optimum))
    gradient = restriction.curvature(None, weights).gradient
    expected = brute_force(metric, gradient, weights)
    found = cb.Quadratic(num_steps=1).run(np.random.default_rng(0), restriction, weights)
    assert np.allclose(found, expected, rtol=1e-7, atol=1e-7)


def test_steps_are_averaged_with_the_schedule():
    metric, third, optimum, weights = random_problem(2)
    restriction = Fixed(metric, np.zeros_like(third), np.abs(optimum))
    by_hand = weights
    for step in (1, 2, 3):
        gradient = restriction.curvature(None, by_hand).gradient
        target = brute_force(metric, gradient, by_hand)
        by_hand = (1.0 - 0.5 / step) * by_hand + 0.5 / step * target
    update = cb.Quadratic(num_steps=3, rate=0.5)
    assert np.allclose(update.run(np.random.default_rng(0), restriction, weights), by_hand)


def test_reaches_the_optimum_of_the_exact_kl():
    from tests.contract.cases import MODELS

    case = next(case for case in MODELS if case.name == "linear")
    method = cb.SparseVI(update=cb.Quadratic(), num_iterations=40)
    coreset = cb.build(case.model, case.data(num_rows=200), size=40, method=method)
    assert coreset.trace[-1]["kl"] < 1e-6
