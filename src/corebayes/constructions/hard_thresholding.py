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

from corebayes.arguments import check_fields
from corebayes.constructions.construction import Info, drop_zeros
from corebayes.constructions.hilbert import (
    MATCHED,
    NOTHING_TO_ADD,
    Target,
    no_direction,
    require_size,
)
from corebayes.problem import Problem
from corebayes.scan.every_row import Projections, joined
from corebayes.tangent.weighting import FullPosterior, Weighting
from corebayes.types import Array, Indices, Points


class Weighted(NamedTuple):
    """Rows and their weights, which may be of any sign."""

    points: Points
    weights: Array


class State(NamedTuple):
    points: Points
    weights: Array
    previous: Weighted
    """The points and weights one step before."""
    momentum: float
    """τ."""
    target: Target
    size: int
    num_steps: int


@dataclass(frozen=True, kw_only=True)
class HardThresholding:
    """Cost of a step: one pass that gives a number for every row (or N·S flops, for small N·S)."""

    weighting: Weighting = field(default_factory=FullPosterior)
    """The distribution π̂ under which potentials are compared."""
    num_iterations: int = 300
    """Steps at most."""
    tolerance: float = 1e-5
    """Stop when the weights move by less than this share of their length."""

    def __post_init__(self) -> None:
        check_fields(self, tolerance=0.0)

    def init(self, rng: np.random.Generator, problem: Problem, size: int | None) -> State:
        size = require_size(size, self)
        target = Target.of(rng, problem, self.weighting)
        nothing = Weighted(problem.no_points(), np.empty(0))
        return State(*nothing, nothing, 0.0, target, size, 0)

    def step(self, rng: np.random.Generator, problem: Problem, state: State) -> tuple[State, Info]:
        target = state.target
        found = _threshold(problem, state)
        if found is None:
            if state.weights.size == 0:
                raise no_direction()
            residual = target.residual(state.points, state.weights)
            return state, Info(target.kl(problem, residual), NOTHING_TO_ADD)
        points, weights = _debias(target, found)
        change = _combined(Weighted(points, weights), Weighted(state.points, -state.weights), 1.0)
        residual = target.residual(points, weights)
        momentum = _momentum(target, residual, change)
        last = Weighted(state.points, state.weights)
        num_steps = state.num_steps + 1
        state = State(points, weights, last, momentum, target, state.size, num_steps)
        moved = np.linalg.norm(change.weights) / np.linalg.norm(weights)
        done = None
        if target.matched(residual):
            done = MATCHED
        elif moved < self.tolerance:
            done = f"the weights move by less than {self.tolerance:g} of their length"
        elif num_steps >= self.num_iterations:
            done = f"{num_steps} steps done"
        return state, Info(target.kl(problem, residual), done)


def _threshold(problem: Problem, state: State) -> Weighted | None:
    """The K largest positive entries of y + μ ∇(y); None when there is nothing to descend."""
    target, size = state.target, state.size
    # y = w + τ (w − w′)
    current = Weighted(state.points, (1.0 + state.momentum) * state.weights)
    y = _combined(current, state.previous, -state.momentum)
    residual = target.residual(y.points, y.weights)
    slopes = 2.0 * joined(target.ask(problem, Projections(target.space, residual)))
    elsewhere = np.abs(slopes)
    elsewhere[y.points.indices] = 0.0
    steep = np.union1d(_largest(elsewhere, size), y.points.indices)
    length = _exact_step(target, Points(steep, problem.data.take(steep)), slopes[steep])
    if length is None:
        return None
    values = length * slopes
    values[y.points.indices] += y.weights
    kept = np.sort(_largest(values, size))
    if kept.size == 0:
        return None
    return Weighted(Points(kept, problem.data.take(kept)), values[kept])


def _debias(target: Target, found: Weighted) -> tuple[Points, Array]:
    """One more exact step, on the support alone."""
    points, weights = found
    space = target.space
    vectors = space.embed(points.rows)
    slopes = 2.0 * space.project(vectors, target.residual(points, weights))
    length = _exact_step(target, points, slopes)
    if length is None:
        return found
    debiased = np.maximum(weights + length * slopes, 0.0)
    return drop_zeros(points, debiased) if np.any(debiased > 0.0) else found


def _exact_step(target: Target, points: Points, slopes: Array) -> float | None:
    """μ = ‖∇_S‖² / (2 ‖Σ_S ∇_n g_n‖²); None when the slopes are round-off."""
    space = target.space
    direction = space.combine(space.embed(points.rows), slopes)
    squared = float(direction @ direction)
    return 0.5 * float(slopes @ slopes) / squared if squared > 0.0 else None


def _momentum(target: Target, residual: Array, change: Weighted) -> float:
    """τ: the exact step along the last change of the weights."""
    direction = target.space.combine(target.space.embed(change.points.rows), change.weights)
    squared = float(direction @ direction)
    return float(residual @ direction) / squared if squared > 0.0 else 0.0


def _combined(first: Weighted, second: Weighted, factor: float) -> Weighted:
    """first + factor · second, each row once."""
    if second.weights.size == 0:
        return first
    fresh = np.flatnonzero(~np.isin(second.points.indices, first.points.indices))
    points = first.points.append(second.points.take(fresh))
    weights = np.append(first.weights, np.zeros(fresh.size))
    order = np.argsort(points.indices)
    points, weights = points.take(order), weights[order]
    weights[np.searchsorted(points.indices, second.points.indices)] += factor * second.weights
    return Weighted(points, weights)


def _largest(values: Array, number: int) -> Indices:
    """Positions of the largest positive values, ties by position."""
    positive = np.flatnonzero(values > 0.0)
    return positive[np.argsort(-values[positive], kind="stable")[:number]]
