"""Quasi-Newton steps against the formula on full arrays, and where they help."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.diagnostics import laplace_kl
from tests.contract.cases import MODELS

CASES = {case.name: case for case in MODELS}


class Script:
    """Hands out prepared draws, so that two programs see the same ones."""

    def __init__(self, batches):
        self.batches = list(batches)

    def draw(self, rng, posterior, num_draws, start=None):
        values = self.batches.pop(0)[None]
        return cb.Draws(values=values, location=np.zeros(posterior.dim), independent=True)


def by_formula(potentials, subset, weights, batches, first):
    """Δ = (GGᵀ/S + τI)⁻¹ G r/S; the first step a ← a/1.5 until the slope has fallen, not turned."""

    def look(w):
        f = potentials(batches.pop(0))
        G = f - f.mean(axis=1, keepdims=True)
        r = G.sum(axis=0) - w @ G[subset]
        S = f.shape[1]
        return -G[subset] @ r / S, G[subset] @ G[subset].T / S

    gradient, gram = look(weights)
    direction = np.linalg.solve(gram + 0.01 * np.eye(len(subset)), -gradient)
    length = 1.0
    for _ in range(10):
        after = np.maximum(weights + length * direction, 0.0)
        slope = look(after)[0] @ direction
        ratio = slope / (gradient @ direction)
        if not first or 0 < ratio < 0.9:
            break
        length /= 1.5
    return after, length


@pytest.mark.parametrize("first_spread", [0.2, 0.01])
def test_first_step_by_the_formula(first_spread):
    """Draws that spread too little promise a step that is too long."""
    problem = CASES["logistic"].problem(num_rows=30)
    block = problem.data.take(np.arange(30))
    batches = np.random.default_rng(0).normal(scale=0.2, size=(12, 80, 3))
    batches[0] *= first_spread / 0.2
    geometry = cb.MonteCarlo(num_draws=80, sampler=Script(batches))
    method, rng = cb.QuasiNewton(geometry=geometry), np.random.default_rng(1)
    state = method.init(rng, problem, 8)
    assert np.allclose(state.points.weights, 30 / 8)
    expected, length = by_formula(
        lambda draws: problem.model.potentials(draws, block),
        state.points.indices,
        state.points.weights,
        list(batches),
        first=True,
    )
    before = state.seen
    direction = method._direction(before)
    after = method._moved(rng, problem, before, direction, 1.0)
    after = method._shortened(rng, problem, before, direction, after)
    assert np.allclose(after.subset.weights, expected, rtol=1e-8)
    assert (length < 1.0) == (first_spread < 0.1), "one case must shorten the step"


def test_far_closer_than_the_subset_it_began_with():
    for name in ("gaussian", "linear", "logistic"):
        case = CASES[name]
        problem = case.problem(num_rows=400)
        method, rng = cb.QuasiNewton(), np.random.default_rng(0)
        first = method.init(rng, problem, 60).seen.kl.value
        coreset = cb.build(case.model, case.data(num_rows=400), size=60, method=method)
        uniform = cb.build(case.model, case.data(num_rows=400), size=60, method=cb.Uniform())
        assert coreset.trace[-1]["kl"] < 0.02 * first
        assert laplace_kl(coreset, problem.data) < 0.05 * laplace_kl(uniform, problem.data)


def test_exact_covariances_end_at_working_precision():
    case = CASES["gaussian"]
    method = cb.QuasiNewton(geometry=cb.ClosedForm(), ridge=1e-10)
    coreset = cb.build(case.model, case.data(num_rows=200), size=30, method=method)
    assert coreset.trace[-1]["kl"] < 1e-8
    assert "precision" in coreset.reason or "less than a tenth" in coreset.reason


def test_needs_a_size_and_keeps_to_the_rows_that_count():
    problem = CASES["logistic"].problem(counts=np.arange(60) % 3)
    with pytest.raises(ValueError, match="QuasiNewton needs a size"):
        cb.QuasiNewton().init(np.random.default_rng(0), problem, None)
    state = cb.QuasiNewton().init(np.random.default_rng(0), problem, 30)
    counts = state.points.indices % 3
    assert state.points.indices.size == 30 and np.all(counts > 0)
    assert state.points.weights.sum() == pytest.approx(problem.data.total_count)
    assert np.allclose(state.points.weights / counts, state.points.weights[0] / counts[0])
