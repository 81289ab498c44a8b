"""What the greedy constructions in a fixed tangent space share: their state and when they end."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from corebayes.constructions.construction import Construction, Info, no_direction
from corebayes.constructions.hilbert import MATCHED, NOTHING_TO_ADD, UNDER_WEIGHTING, HilbertTarget
from corebayes.problem import Problem
from corebayes.scan.query import BestRows
from corebayes.tangent.weighting import FullPosterior, Weighting
from corebayes.types import Array, Indices, Points, Rng, TangentSpace, WeightedPoints


class State(NamedTuple):
    points: WeightedPoints
    iterate: WeightedPoints
    """Where the next step starts from: the coreset, before its weights are refitted if they are."""
    residual: Array
    """What the iterate leaves to fit: b − Σ_i w_i g_i."""
    target: HilbertTarget
    size: int | None
    """Rows to stop at."""
    num_steps: int = 0
    num_idle: int = 0
    """Steps in a row that did not add a point."""


@dataclass(frozen=True, kw_only=True)
class Greedy(Construction):
    """One row at a time. A subclass says where a step goes, and every step lowers the error."""

    weighting: Weighting = field(default_factory=FullPosterior)
    """The distribution π̂ under which potentials are compared."""
    refit: bool = False
    """Whether the weights handed over are the nonnegative least squares on the points chosen."""
    num_iterations: int | None = None
    """Steps at most. Default: until the size is reached."""
    patience: int = 50
    """Steps in a row that add no row before giving up; not used with `num_iterations`."""

    @abstractmethod
    def moved(self, problem: Problem, state: State) -> WeightedPoints | None:
        """The iterate after one step, weights of zero among them; None where no row helps."""

    def init(self, rng: Rng, problem: Problem, size: int | None) -> State:
        target, nothing = HilbertTarget.of(rng, problem, self.weighting), problem.no_points()
        return State(nothing, nothing, target.total, target, size)

    def step(self, rng: Rng, problem: Problem, state: State) -> tuple[State, Info]:
        target, iterate = state.target, self.moved(problem, state)
        if iterate is None:
            return _ended(problem, state, NOTHING_TO_ADD)
        iterate = iterate.positive()
        residual = target.residual(iterate)
        # Every one of these methods lowers the error, in exact arithmetic.
        if state.iterate.size and np.linalg.norm(residual) >= np.linalg.norm(state.residual):
            return _ended(problem, state, "the error no longer falls, to working precision")
        num_idle = 0 if iterate.size > state.iterate.size else state.num_idle + 1
        points = target.refit(iterate) if self.refit else iterate
        num_steps = state.num_steps + 1
        state = State(points, iterate, residual, target, state.size, num_steps, num_idle)
        left = target.residual(points) if self.refit else residual
        return state, Info(target.kl(problem, left), self._done(state, left))

    def _done(self, state: State, residual: Array) -> str | None:
        if state.target.matched(residual):
            return MATCHED
        if state.size is not None and state.iterate.size >= state.size:
            return f"reached size {state.size}"
        if state.num_steps == self.num_iterations:
            return f"{state.num_steps} greedy iterations done"
        if self.num_iterations is None and state.num_idle >= self.patience:
            return f"the last {state.num_idle} steps added no row"
        return None


def _ended(problem: Problem, state: State, reason: str) -> tuple[State, Info]:
    residual = state.target.residual(state.points)
    return state, Info(state.target.kl(problem, residual), reason)


def best_row(
    problem: Problem,
    state: State,
    space: TangentSpace,
    residual: Array,
    exclude: Indices,
    least: float = 0.0,
) -> Points | None:
    """The row best aligned with the residual, if one by more than `least`; the first must be."""
    best = state.target.ask(problem, BestRows(space, residual, num_best=1, exclude=exclude))
    first = state.iterate.size == 0
    if best.scores.size and best.scores[0] > (0.0 if first else least):
        return best.points
    if first:
        raise no_direction(f"{UNDER_WEIGHTING} ({best.num_flat:,} rows)")
    return None


def include(points: WeightedPoints, row: Points) -> tuple[WeightedPoints, int]:
    """The points with one row among them (at weight zero when it is new), and its position."""
    position = np.flatnonzero(points.indices == row.indices[0])
    if position.size:
        return points, int(position[0])
    return points.append(row.weighted()), points.size


def no_rows() -> Indices:
    return np.empty(0, dtype=np.int64)
