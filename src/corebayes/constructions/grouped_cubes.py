"""More rows than a model without groups has quadratics: the third degree, without draws.

Where quadratics are matched, more rows have the skewness of the posterior to match, p(p + 1)(p +
2)/6 numbers of p parameters, which no certificate sees the end of.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from corebayes.constructions.grouped_choice import OVERSHOOT_OF_MANY
from corebayes.data.narrowed import Narrowing
from corebayes.models.custom.touching import is_touching
from corebayes.models.structure import is_structured
from corebayes.problem import Problem
from corebayes.tangent.arrow.cubes import CubeSpace
from corebayes.tangent.arrow.implicit import ImplicitSpace
from corebayes.tangent.arrow.space import ArrowSpace
from corebayes.tangent.default import affordable_cubes
from corebayes.tangent.geometry import scanned_total
from corebayes.tangent.stacked import Layer, StackedSpace
from corebayes.types import Array, Points, WeightedPoints
from corebayes.weights.pursuit import orthogonal_pursuit

# Predictors of a row of which the triples are few.
MOST_PREDICTORS = 3


def has_cubes(problem: Problem) -> bool:
    """Whether rows have few predictors, no groups, and a pass of degree three is affordable."""
    model = problem.model
    if not is_structured(model) or model.structure.terms:
        return False
    if is_touching(model) and not model.has_jets:
        return False
    return model.num_predictors <= MOST_PREDICTORS and affordable_cubes(problem)


def by_cubes(
    problem: Problem, space: ArrowSpace, total: Array, pool: Points, sizes: Sequence[int]
) -> list[WeightedPoints]:
    """Points of each size that match quadratics and cubics. Cost: a pass of N·k·p³ flops, and a
    pursuit by inner products."""
    cubes = CubeSpace(space.model, space.gaussian)
    third = scanned_total(problem, cubes).element
    layers = (
        Layer(ImplicitSpace(space.model, space.gaussian, space.prior), total.size, Narrowing()),
        Layer(cubes, third.size, Narrowing()),
    )
    choices = orthogonal_pursuit(
        StackedSpace(layers),
        pool.rows,
        np.concatenate([total, third]),
        sizes,
        overshoot=OVERSHOOT_OF_MANY,
    )
    return [pool.take(choice.taken).weighted(choice.weights) for choice in choices]
