"""Orthogonal pursuit: the best-aligned row, then all weights anew, in a fixed tangent space.

With r = b − Σ_i w_i g_i, b = Σ_n c_n g_n, every step takes

    f = argmax_n ⟨r, g_n⟩ / ‖g_n‖  over the rows not yet taken,
    w = argmin_{w ≥ 0} ‖b − Σ_i w_i g_i‖²  over the rows taken.

Rows whose weight becomes zero leave again. After the least squares r is orthogonal to every taken
row, so only new rows can be chosen. The error never rises. Given the exact posterior as π̂ this is
the oracle that methods without one are measured against.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from corebayes.arguments import check_fields
from corebayes.constructions.construction import Info
from corebayes.constructions.greedy import Limits, State, advance, finish, start
from corebayes.constructions.hilbert import NOTHING_TO_ADD, Target, require_a_row
from corebayes.problem import Problem
from corebayes.scan.query import BestRows
from corebayes.tangent.weighting import FullPosterior, Weighting


@dataclass(frozen=True, kw_only=True)
class OrthogonalPursuit:
    """Cost of a step: one pass (or N·S flops, for small N·S), M²·S and M³/3 flops."""

    weighting: Weighting = field(default_factory=FullPosterior)
    """The distribution π̂ under which potentials are compared."""
    num_iterations: int | None = None
    """Steps at most. Default: until the size is reached."""
    patience: int = 50
    """Steps in a row that add no row before giving up; not used with `num_iterations`."""

    def __post_init__(self) -> None:
        check_fields(self)

    def init(self, rng: np.random.Generator, problem: Problem, size: int | None) -> State:
        return start(problem, Target.of(rng, problem, self.weighting), size)

    def step(self, rng: np.random.Generator, problem: Problem, state: State) -> tuple[State, Info]:
        target = state.target
        taken = np.sort(state.points.indices)
        query = BestRows(target.space, state.iterate.residual, num_best=1, exclude=taken)
        best = target.ask(problem, query)
        if state.weights.size == 0:
            require_a_row(best)
        elif best.scores.size == 0 or best.scores[0] <= 0.0:
            return finish(problem, state, NOTHING_TO_ADD)
        points = state.points.append(best.points)
        points, weights = target.refit(points, np.append(state.weights, 0.0))
        limits = Limits(self.num_iterations, self.patience)
        return advance(problem, state, points, weights, limits)
