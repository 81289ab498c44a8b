"""Accelerated iterative hard thresholding (A-IHT II): gradient steps on all weights, K kept.

Minimises ‖b − Σ_n w_n g_n‖² over w ≥ 0 with at most K nonzeros, b = Σ_n c_n g_n. With the weights
w and w′ of the last two steps and descent directions ∇_n(y) = 2 ⟨g_n, b − Σ_i y_i g_i⟩,

    y = w + τ (w − w′),
    S = supp y ∪ the K largest |∇_n(y)| elsewhere,     μ = ‖∇_S‖² / (2 ‖Σ_S ∇_n g_n‖²),
    w ← the K largest of (y + μ ∇(y))₊,
    w ← (w + μ′ ∇(w))₊ on the support, with its own exact μ′       (debiasing),
    τ = ⟨b − Σ_n w_n g_n, Σ_n (w_n − w′_n) g_n⟩ / ‖Σ_n (w_n − w′_n) g_n‖²

(Zhang, Khanna, Kyrillidis and Koyejo 2021, "Bayesian coresets: revisiting the nonconvex
optimization perspective", Algorithm 2). Rows can leave again, which greedy methods cannot do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from corebayes.constructions.construction import Construction, Info, Style, no_direction
from corebayes.constructions.hilbert import MATCHED, NOTHING_TO_ADD, UNDER_WEIGHTING, HilbertTarget
from corebayes.problem import Problem
from corebayes.scan.every_row import Projections, joined
from corebayes.tangent.geometry import element_of
from corebayes.tangent.weighting import FullPosterior, Weighting
from corebayes.types import Array, Indices, Rng, WeightedPoints


class State(NamedTuple):
    points: WeightedPoints
    previous: WeightedPoints
    """The points one step before."""
    momentum: float
    """τ."""
    target: HilbertTarget
    size: int
    num_steps: int


@dataclass(frozen=True, kw_only=True)
class HardThresholding(Construction):
    """Cost of a step: one pass that gives a number for every row (or N·S flops, for small N·S)."""

    style = Style("#CC79A7", "X")
    ranges = {"tolerance": 0.0}  # noqa: RUF012

    weighting: Weighting = field(default_factory=FullPosterior)
    """The distribution π̂ under which potentials are compared."""
    num_iterations: int = 300
    """Steps at most."""
    tolerance: float = 1e-5
    """Stop when the weights move by less than this share of their length."""

    def init(self, rng: Rng, problem: Problem, size: int | None) -> State:
        size, nothing = self.require(size), problem.no_points()
        return State(nothing, nothing, 0.0, HilbertTarget.of(rng, problem, self.weighting), size, 0)

    def step(self, rng: Rng, problem: Problem, state: State) -> tuple[State, Info]:
        target = state.target
        found = _threshold(problem, state)
        if found is None:
            if state.points.size == 0:
                raise no_direction(UNDER_WEIGHTING)
            residual = target.residual(state.points)
            return state, Info(target.kl(problem, residual), NOTHING_TO_ADD)
        points = _debias(target, found)
        change = _combined(points, state.points.scaled(-1.0), 1.0)
        residual = target.residual(points)
        momentum = _momentum(target, residual, change)
        num_steps = state.num_steps + 1
        state = State(points, state.points, momentum, target, state.size, num_steps)
        moved = np.linalg.norm(change.weights) / np.linalg.norm(points.weights)
        done = None
        if target.matched(residual):
            done = MATCHED
        elif moved < self.tolerance:
            done = f"the weights move by less than {self.tolerance:g} of their length"
        elif num_steps >= self.num_iterations:
            done = f"{num_steps} steps done"
        return state, Info(target.kl(problem, residual), done)


def _threshold(problem: Problem, state: State) -> WeightedPoints | None:
    """The K largest positive entries of y + μ ∇(y); None when there is nothing to descend."""
    target, size = state.target, state.size
    # y = w + τ (w − w′)
    y = _combined(state.points.scaled(1.0 + state.momentum), state.previous, -state.momentum)
    residual = target.residual(y)
    slopes = 2.0 * joined(target.ask(problem, Projections(target.space, residual)))
    elsewhere = np.abs(slopes)
    elsewhere[y.indices] = 0.0
    steep = np.union1d(_largest(elsewhere, size), y.indices)
    length = _exact_step(target, problem.points(steep, slopes[steep]))
    if length is None:
        return None
    values = length * slopes
    values[y.indices] += y.weights
    kept = np.sort(_largest(values, size))
    return problem.points(kept, values[kept]) if kept.size else None


def _debias(target: HilbertTarget, found: WeightedPoints) -> WeightedPoints:
    """One more exact step, on the support alone."""
    vectors = target.space.embed(found.rows)
    slopes = 2.0 * target.space.project(vectors, target.residual(found))
    length = _exact_step(target, found.at(slopes))
    if length is None:
        return found
    debiased = np.maximum(found.weights + length * slopes, 0.0)
    return found.at(debiased).positive() if np.any(debiased > 0.0) else found


def _exact_step(target: HilbertTarget, slopes: WeightedPoints) -> float | None:
    """μ = ‖∇_S‖² / (2 ‖Σ_S ∇_n g_n‖²); None when the slopes are round-off."""
    direction = element_of(target.space, slopes)
    squared = float(direction @ direction)
    return 0.5 * float(slopes.weights @ slopes.weights) / squared if squared > 0.0 else None


def _momentum(target: HilbertTarget, residual: Array, change: WeightedPoints) -> float:
    """τ: the exact step along the last change of the weights."""
    direction = element_of(target.space, change)
    squared = float(direction @ direction)
    return float(residual @ direction) / squared if squared > 0.0 else 0.0


def _combined(first: WeightedPoints, second: WeightedPoints, factor: float) -> WeightedPoints:
    """first + factor · second, each row once."""
    if second.size == 0:
        return first
    fresh = second.take(np.flatnonzero(~np.isin(second.indices, first.indices)))
    points = first.append(fresh.at(np.zeros(fresh.size)))
    points = points.take(np.argsort(points.indices))
    points.weights[np.searchsorted(points.indices, second.indices)] += factor * second.weights
    return points


def _largest(values: Array, number: int) -> Indices:
    """Positions of the largest positive values, ties by position."""
    positive = np.flatnonzero(values > 0.0)
    return positive[np.argsort(-values[positive], kind="stable")[:number]]
