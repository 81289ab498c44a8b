"""Greedy sparse variational inference: Algorithm 1 of Campbell and Beronov (2019).

Minimises KL(π_w ‖ π) over w ≥ 0 with few nonzeros. Each step, in the tangent space at π_w,

    n* = argmax_n { |corr_w[f_n, r]| if w_n > 0, corr_w[f_n, r] otherwise },  r = Σ (c_n − w_n) f_n,

adds the row n* to the active set I and moves all active weights by a weight update. With
covariances from S draws and `SGD`, this is the paper's algorithm line by line; both the tangent
space and the weight update can be exchanged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from corebayes.constructions.construction import (
    EXACT,
    PRECISION,
    Construction,
    Info,
    Style,
    no_direction,
)
from corebayes.problem import Problem
from corebayes.scan.query import BestRows
from corebayes.tangent import Geometry, default_geometry
from corebayes.tangent.geometry import residual_of, subsample
from corebayes.types import Array, Estimate, Indices, Rng, TangentSpace, WeightedPoints
from corebayes.weights import NaturalGradient, WeightUpdate


class State(NamedTuple):
    points: WeightedPoints
    space: TangentSpace
    """The tangent space at π_w."""
    residual: Array
    """Σ_n (c_n − w_n) g_n there."""
    size: int | None
    """Rows to stop at."""
    rows: Indices | None
    """The subsample that the residual came from; None for all rows."""
    num_steps: int
    num_idle: int
    """Steps in a row that did not add a point."""


@dataclass(frozen=True, kw_only=True)
class SparseVI(Construction):
    """Greedy correlation selection and fully corrective weights.

    Cost of a step: one pass for the scores, one for the residual (of `selection_rows` rows when
    given), and the weight update's looks, each a pass of `gradient_rows` rows unless the tangent
    space is in closed form.
    """

    style = Style("#56B4E9", "s")
    can_start = True

    geometry: Geometry | None = None
    """How covariances are known. Default: closed form, else Hermite for a GLM, else draws."""
    update: WeightUpdate = field(default_factory=NaturalGradient)
    """How the active weights move: `SGD` is the paper's, `NaturalGradient` the fastest;
    `LineSearch` and `Quadratic` are those of its appendix D."""
    selection_rows: int | None = None
    """U: rows in the fresh subsample to select from; None for all."""
    gradient_rows: int | None = None
    """U: rows in the fresh subsample of each look of the weight update; None for all."""
    num_iterations: int | None = None
    """Greedy steps at most (the paper's M). Default: until the size is reached."""
    patience: int = 10
    """Steps in a row that add no row before giving up; not used with `num_iterations`."""

    def init(self, rng: Rng, problem: Problem, size: int | None) -> State:
        return self.init_from(rng, problem, size, problem.no_points())

    def init_from(
        self, rng: Rng, problem: Problem, size: int | None, points: WeightedPoints
    ) -> State:
        """The state from which the greedy steps go on. Cost: one look, which is a pass."""
        return self._look(rng, problem, points, size, None)

    def step(self, rng: Rng, problem: Problem, state: State) -> tuple[State, Info]:
        points = _select(problem, state)
        if points is None:
            return state, Info(self._kl(problem, state), "no row would improve the coreset")
        restriction = self._geometry(problem).restrict(
            problem, points, state.space.location, self.gradient_rows
        )
        points = points.at(self.update.run(rng, restriction, points.weights)).positive()
        state = self._look(rng, problem, points, state.size, state)
        return state, self._info(problem, state)

    def _look(
        self,
        rng: Rng,
        problem: Problem,
        points: WeightedPoints,
        size: int | None,
        last: State | None,
    ) -> State:
        geometry = self._geometry(problem)
        start = None if last is None else last.space.location
        space = geometry.space(rng, problem, points, start)
        rows = subsample(rng, problem, self.selection_rows, fresh=True)
        residual = residual_of(geometry, problem, space, points, rows)
        if last is None:
            return State(points, space, residual, size, rows, 0, 0)
        num_idle = 0 if points.size > last.points.size else last.num_idle + 1
        return State(points, space, residual, size, rows, last.num_steps + 1, num_idle)

    def _info(self, problem: Problem, state: State) -> Info:
        kl = self._kl(problem, state)
        done = None
        if kl.value <= PRECISION:
            done = EXACT
        elif state.size is not None and state.points.size >= state.size:
            done = f"reached size {state.size}"
        elif state.num_steps == self.num_iterations:
            done = f"{state.num_steps} greedy iterations done"
        elif self.num_iterations is None and state.num_idle >= self.patience:
            done = f"the last {state.num_idle} steps added no row"
        return Info(kl, done)

    def _kl(self, problem: Problem, state: State) -> Estimate:
        return self._geometry(problem).kl(problem, state.space, state.residual)

    def _geometry(self, problem: Problem) -> Geometry:
        return self.geometry or default_geometry(problem)


def _select(problem: Problem, state: State) -> WeightedPoints | None:
    """The active rows with the one to move last: a new one at weight zero, or one of them.

    None when no row is aligned with the residual.
    """
    points = state.points
    query = BestRows(state.space, state.residual, num_best=1, exclude=np.sort(points.indices))
    best = problem.ask(query, state.rows)
    new = float(best.scores[0]) if best.scores.size else 0.0
    scores = _alignments(state)
    active = float(scores.max(initial=0.0))
    if max(new, active) <= 0.0:
        if points.size == 0:
            raise no_direction(f" at the prior ({best.num_flat:,} rows)")
        return None
    if new > active:
        return points.append(best.points.weighted())
    chosen = int(scores.argmax())
    return points.take(np.append(np.delete(np.arange(scores.size), chosen), chosen))


def _alignments(state: State) -> Array:
    """|⟨g_i, r⟩| / ‖g_i‖ of the active rows, zero where a potential is constant."""
    if state.points.size == 0:
        return np.empty(0)
    vectors = state.space.embed(state.points.rows)
    norms = np.sqrt(state.space.squared_norms(vectors))
    projections = np.abs(state.space.project(vectors, state.residual))
    return np.divide(projections, norms, out=np.zeros_like(norms), where=norms > 0)
