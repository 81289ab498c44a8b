"""Orthogonal pursuit: the best-aligned row, then all weights again, in a fixed tangent space.

With r = b − Σ_i w_i g_i, b = Σ_n c_n g_n, every step takes

    f = argmax_n ⟨r, g_n⟩ / ‖g_n‖  over the rows not yet taken,
    w = argmin_{w ≥ 0} ‖b − Σ_i w_i g_i‖²  over the rows taken.

Rows whose weight becomes zero leave again. After the least squares r is orthogonal to every taken
row, so only new rows can be chosen. The error never rises. Given the exact posterior as π̂ this is
the oracle that methods without one are measured against.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from corebayes.constructions.construction import Style
from corebayes.constructions.greedy import Greedy, State, best_row
from corebayes.problem import Problem
from corebayes.types import WeightedPoints


@dataclass(frozen=True, kw_only=True)
class OrthogonalPursuit(Greedy):
    """Cost of a step: one pass (or N·S flops, for small N·S), M²·S and M³/3 flops.

    Its weights are those of the least squares with or without `refit`.
    """

    style = Style("#009E73", "P")

    def moved(self, problem: Problem, state: State) -> WeightedPoints | None:
        taken = np.sort(state.iterate.indices)
        best = best_row(problem, state, state.target.space, state.residual, taken)
        if best is None:
            return None
        return state.target.refit(state.iterate.append(best.weighted()))
