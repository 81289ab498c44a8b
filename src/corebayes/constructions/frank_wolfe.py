"""Frank–Wolfe: Hilbert coresets by steps towards one row at a time.

The total b = Σ_n c_n g_n is a point of the polytope with the corners (σ/σ_n) g_n, where σ_n = ‖g_n‖
and σ = Σ_n c_n σ_n. From the current Σ_i w_i g_i, with residual r = b − Σ_i w_i g_i,

    f = argmax_n ⟨r, g_n⟩ / σ_n,        d = (σ/σ_f) g_f − Σ_i w_i g_i,
    γ = ⟨d, r⟩ / ‖d‖²,                  w ← (1 − γ) w + γ (σ/σ_f) 1_f,

starting at the best corner (Campbell and Broderick 2019, "Automated scalable Bayesian inference via
Hilbert coresets"). The error never rises and falls geometrically at first; the weights stay on the
polytope, which GIGA lifts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from corebayes.arguments import check_fields
from corebayes.constructions.construction import Info
from corebayes.constructions.greedy import Limits, State, advance, finish, start
from corebayes.constructions.hilbert import (
    NOTHING_TO_ADD,
    Target,
    include,
    no_rows,
    require_a_row,
)
from corebayes.problem import Problem
from corebayes.scan.query import BestRows
from corebayes.tangent.weighting import FullPosterior, Weighting


@dataclass(frozen=True, kw_only=True)
class FrankWolfe:
    """Cost: one pass for b, one for σ, and one for every step (or N·S flops, for small N·S).

    A row may be chosen again, so there may be more steps than points.
    """

    weighting: Weighting = field(default_factory=FullPosterior)
    """The distribution π̂ under which potentials are compared."""
    refit: bool = False
    """Whether the weights handed over are the nonnegative least squares on the points chosen."""
    num_iterations: int | None = None
    """Steps at most. Default: until the size is reached."""
    patience: int = 50
    """Steps in a row that add no row before giving up; not used with `num_iterations`."""

    def __post_init__(self) -> None:
        check_fields(self)

    def init(self, rng: np.random.Generator, problem: Problem, size: int | None) -> State:
        return start(problem, Target.of(rng, problem, self.weighting), size)

    def step(self, rng: np.random.Generator, problem: Problem, state: State) -> tuple[State, Info]:
        target, space, last = state.target, state.target.space, state.iterate
        best = target.ask(problem, BestRows(space, last.residual, num_best=1, exclude=no_rows()))
        if last.weights.size == 0:
            require_a_row(best)
        points, weights, chosen = include(last.points, last.weights, best.points)
        corner = np.zeros_like(weights)
        norm = float(np.sqrt(space.squared_norms(space.embed(best.points.rows))[0]))
        corner[chosen] = target.length(problem) / norm
        share = 1.0
        if last.weights.size:
            direction = space.combine(space.embed(points.rows), corner - weights)
            # γ = ⟨d, r⟩ / ‖d‖²
            share = float(direction @ last.residual) / max(float(direction @ direction), 1e-300)
        if share <= 0.0:
            return finish(problem, state, NOTHING_TO_ADD)
        weights = weights + min(share, 1.0) * (corner - weights)
        limits = Limits(self.num_iterations, self.patience)
        return advance(problem, state, points, weights, limits, refit=self.refit)
