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

from dataclasses import dataclass

import numpy as np

from corebayes.constructions.construction import Style
from corebayes.constructions.greedy import Greedy, State, best_row, include, no_rows
from corebayes.problem import Problem
from corebayes.types import WeightedPoints


@dataclass(frozen=True, kw_only=True)
class FrankWolfe(Greedy):
    """Cost: one pass for b, one for σ, and one for every step (or N·S flops, for small N·S).

    A row may be chosen again, so there may be more steps than points.
    """

    style = Style("#E69F00", "^")

    def moved(self, problem: Problem, state: State) -> WeightedPoints | None:
        target, space = state.target, state.target.space
        # From beyond b even the least misaligned corner may be the way back.
        best = best_row(problem, state, space, state.residual, no_rows(), least=-np.inf)
        if best is None:
            return None
        points, chosen = include(state.iterate, best)
        corner = np.zeros_like(points.weights)
        norm = float(np.sqrt(space.squared_norms(space.embed(best.rows))[0]))
        corner[chosen] = target.length(problem) / norm
        share = 1.0
        if state.iterate.size:
            direction = space.combine(space.embed(points.rows), corner - points.weights)
            # γ = ⟨d, r⟩ / ‖d‖²
            share = float(direction @ state.residual) / max(float(direction @ direction), 1e-300)
        if share <= 0.0:
            return None
        return points.at(points.weights + min(share, 1.0) * (corner - points.weights))
