"""Rows that say much about few parameters, and whether skewness must be seen, for many parameters.

A random pool hardly has a row of a rare category, and no other row will do for it: the rows of the
largest ‖g_n‖ go into the pool as well. They are also what makes a posterior skewed. The degree 3 of
a coreset that matches degrees 1 and 2 alone is as good as random; with weights w that is about

    ½ Σ_i w_i² c_{i,3}² ‖β_i‖⁶ / 6   nats,

and where it counts, and its passes of N·d³ flops are affordable, the space gets a degree more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from corebayes.constructions.annealed.view import View
from corebayes.problem import Problem
from corebayes.scan.query import Best, BestRows
from corebayes.tangent.default import SKEWED_DIM, affordable_cubes
from corebayes.tangent.hermite import Hermite, HermiteSpace
from corebayes.types import Block, Indices, Points, WeightedPoints

# Nats of skewness that are worth a degree more.
WORTH_A_DEGREE = 5e-4
# The heaviest rows, as a share of the pool.
HEAVY_SHARE = 0.5
# The weight that a heavy row may have: there is hardly another to stand for.
HEAVY_WEIGHT = 2.0


@dataclass(frozen=True)
class HeaviestRows(BestRows):
    """The rows with the largest ‖g_n‖, leaving out `exclude`."""

    def answer_embedded(self, vectors: Any, block: Block, numbers: Indices) -> Best:
        norms = np.sqrt(self.space.squared_norms(vectors))
        counted = norms if block.counts is None else np.where(block.counts > 0.0, norms, 0.0)
        counted[np.isin(numbers, self.exclude, assume_unique=True)] = 0.0
        best = np.argsort(-counted, kind="stable")[: self.num_best]
        best = best[counted[best] > 0.0]
        return Best(Points(numbers[best], block.take(best)), counted[best], 0)


def heaviest(
    view: View, space: HermiteSpace, points: WeightedPoints, *, rare: bool
) -> WeightedPoints:
    """The heaviest rows that are not among the points, at weight zero. Cost: a pass of N·d² flops.

    None for few parameters, whose rows are all alike, unless some are known to be rare.
    """
    if space.dim <= SKEWED_DIM and not rare:
        return view.problem.no_points()
    number = int(HEAVY_SHARE * view.pool_size)
    query = HeaviestRows(space, np.empty(0), number, np.sort(points.indices))
    return view.problem.ask(query).points.weighted()


def with_skewness(
    view: View, geometry: Hermite, space: HermiteSpace, random: Block, heavy: Block
) -> Hermite:
    """The geometry with degree 3 where it is worth its passes, and centred on the mean."""
    problem = view.problem
    if geometry.order != 2 or not affordable_cubes(problem):
        return geometry
    count, cubes = problem.data.total_count, replace(space, order=3)
    typical = float(cubes.last_degree(cubes.embed(random)).mean())
    weight = count / min(view.size, problem.data.num_rows)
    nats = 0.5 * weight * count * typical
    nats += 0.5 * HEAVY_WEIGHT * float(cubes.last_degree(cubes.embed(heavy)).sum())
    wanted = nats > WORTH_A_DEGREE or view.size > _num_quadratics(problem)
    return replace(geometry, order=3, centred=True) if wanted else geometry


def _num_quadratics(problem: Problem) -> int:
    dim = problem.model.dim
    return dim * (dim + 3) // 2 + 1
