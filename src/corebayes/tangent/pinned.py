"""A tangent space that stays where it is: rows are matched around one posterior, whatever π_w is.

A shard is a part of the data, and its posterior is wider than that of all shards and lies
elsewhere. What is matched around the shard's own is not matched where it will be used. So a shard
that is to be merged is matched in the tangent space at the posterior π_p of all shards,

    min_{w ≥ 0, ‖w‖_0 ≤ M} ½ Var_p[Σ_n c_n f_n − Σ_i w_i f_i],

as a rough coreset of all of them knows it. The residuals of all shards then add up where they are
small.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from corebayes.problem import Problem
from corebayes.tangent.geometry import Geometry, LookCost
from corebayes.types import Array, Estimate, Indices, Rng, TangentSpace, Total, WeightedPoints


@dataclass(frozen=True, kw_only=True)
class Pinned(Geometry):
    """The tangent space of another geometry at points of elsewhere; see `pinned`."""

    at: str
    """What tells these points from others."""
    inner: Geometry = field(repr=False)
    there: TangentSpace = field(repr=False)

    def space(
        self, rng: Rng, problem: Problem, points: WeightedPoints, start: Array | None = None
    ) -> TangentSpace:
        return self.there

    def kl(self, problem: Problem, space: Any, residual: Array) -> Estimate:
        """½ Var_p r: what these rows add to KL(π_w ‖ π) of all shards, to second order."""
        return self.inner.kl(problem, space, residual)

    def total(self, problem: Problem, space: Any, rows: Indices | None = None) -> Total:
        return self.inner.total(problem, space, rows)

    def look_cost(self, problem: Problem) -> LookCost:
        return LookCost(passes=self.inner.look_cost(problem).passes)


def pinned(inner: Geometry, problem: Problem, points: WeightedPoints, at: str) -> Pinned:
    """The geometry at the posterior of these points under the problem's model.

    The same random numbers for every shard, where a space has any. Cost: one space.
    """
    there = inner.space(np.random.default_rng(points.size), problem, points)
    return Pinned(at=at, inner=inner, there=there)
