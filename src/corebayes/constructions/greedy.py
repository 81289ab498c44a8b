"""What the greedy constructions in a fixed tangent space share: their state and when they end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corebayes.constructions.construction import Info, drop_zeros
from corebayes.constructions.hilbert import MATCHED, Target
from corebayes.problem import Problem
from corebayes.types import Array, Points


class Iterate(NamedTuple):
    """Points, positive weights, and what they leave to fit: b − Σ_i w_i g_i."""

    points: Points
    weights: Array
    residual: Array


class State(NamedTuple):
    points: Points
    weights: Array
    iterate: Iterate
    """Where the next step starts from: the coreset, before its weights are refitted if they are."""
    target: Target
    size: int | None
    """Rows to stop at."""
    num_steps: int = 0
    num_idle: int = 0
    """Steps in a row that did not add a point."""


class Limits(NamedTuple):
    """When to give up."""

    num_iterations: int | None
    """Steps in all, or None."""
    patience: int
    """Steps in a row that add no point, when the steps are not limited."""


def start(problem: Problem, target: Target, size: int | None) -> State:
    nothing = Iterate(problem.no_points(), np.empty(0), target.total)
    return State(nothing.points, nothing.weights, nothing, target, size)


def advance(
    problem: Problem,
    state: State,
    points: Points,
    weights: Array,
    limits: Limits,
    *,
    refit: bool = False,
) -> tuple[State, Info]:
    """The state with new weights, none of them zero, and what is to be said of it."""
    target, last = state.target, state.iterate
    points, weights = drop_zeros(points, weights)
    iterate = Iterate(points, weights, target.residual(points, weights))
    # Every one of these methods lowers the error, in exact arithmetic.
    if last.weights.size and np.linalg.norm(iterate.residual) >= np.linalg.norm(last.residual):
        return finish(problem, state, "the error no longer falls, to working precision")
    num_idle = 0 if weights.size > last.weights.size else state.num_idle + 1
    if refit:
        points, weights = target.refit(points, weights)
    num_steps = state.num_steps + 1
    state = State(points, weights, iterate, target, state.size, num_steps, num_idle)
    residual = target.residual(points, weights) if refit else iterate.residual
    done = None
    if target.matched(residual):
        done = MATCHED
    elif state.size is not None and iterate.weights.size >= state.size:
        done = f"reached size {state.size}"
    elif num_steps == limits.num_iterations:
        done = f"{num_steps} greedy iterations done"
    elif limits.num_iterations is None and num_idle >= limits.patience:
        done = f"the last {num_idle} steps added no row"
    return state, Info(target.kl(problem, residual), done)


def finish(problem: Problem, state: State, reason: str) -> tuple[State, Info]:
    """The state as it is, for good."""
    residual = state.target.residual(state.points, state.weights)
    return state, Info(state.target.kl(problem, residual), reason)
