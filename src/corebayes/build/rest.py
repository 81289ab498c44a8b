"""Kept rows: those of rare levels enter a coreset whole, and the construction sees the rest.

The coefficient of a level with a handful of rows has a posterior of any shape: as wide as its prior
on one side where they all agree. No Gaussian is near it, and no other row can stand for theirs. So
they are kept as they are, with the weight that they have in the data; of levels too large for that
a few rows stand for all (`stand_ins`). The other rows do not touch what only they see, and so

    r = Σ_n (c_n − w_n) f_n   over the rest

is a function of the other coefficients alone, whose posterior is an ordinary one. The construction
works on the rest with the columns of rare levels left out; KL(π_w ‖ π) is what it is there, since
the kept rows are the same in both, but for the little that they say about the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from corebayes.build.rare import rare_levels
from corebayes.build.stand_ins import in_coreset
from corebayes.constructions import Construction
from corebayes.data.narrowed import Narrowed, Narrowing
from corebayes.models.families.glm import GLM
from corebayes.models.fewer_columns import with_columns
from corebayes.models.mixed.regression import MixedRegression
from corebayes.problem import Problem
from corebayes.samplers.exact import is_conjugate
from corebayes.types import Estimate, Indices, Points, WeightedPoints

# The share of the coreset that kept rows may have; and one in so many of all rows, since what they
# say about the other coefficients is not seen by the construction.
OF_THE_SIZE, MANY = 0.5, 10
# Kept rows at most where the size is open.
OPEN = 200


@dataclass(frozen=True)
class Rest:
    """Rows that are kept, and what a construction is left with."""

    whole: Problem
    kept: WeightedPoints
    """At the weights that they have in the data, or have for others of their level."""
    levels: Indices
    """The numbers of all rows of their levels, sorted."""
    problem: Problem
    """The rest, without the columns that only the kept rows see."""
    nats: float
    """What the kept rows miss of their levels."""

    def kl(self, of_the_rest: Estimate | None) -> Estimate | None:
        """Of the coreset with the kept rows."""
        if of_the_rest is None:
            return None
        return of_the_rest._replace(value=of_the_rest.value + self.nats)

    def joined(self, points: WeightedPoints) -> WeightedPoints:
        """The coreset: points of the rest, with all their columns, and the kept rows."""
        rows = self.whole.data.take(points.indices)
        return self.kept.append(Points(points.indices, rows).weighted(points.weights))

    def apart(self, points: WeightedPoints) -> WeightedPoints:
        """Those of the points that are of the rest, as the construction sees them."""
        others = points.take(np.flatnonzero(~np.isin(points.indices, self.levels)))
        rows = self.problem.data.take(others.indices)
        return Points(others.indices, rows).weighted(others.weights)


def rest_of(problem: Problem, method: Construction, size: int | None) -> Rest | None:
    """What is left beside the rows of rare levels; None where there are none, or the method needs
    all rows."""
    model: Any = problem.model
    if not isinstance(model, GLM | MixedRegression) or is_conjugate(model):
        return None
    if not method.may_see_fewer_rows:
        return None
    data = problem.data
    wanted = OPEN if size is None else int(OF_THE_SIZE * size)
    rare = rare_levels(problem, model)
    if rare is None:
        return None
    most = min(wanted, data.num_rows // MANY)
    found = in_coreset(problem, rare, most, is_open=size is None)
    dropped = rare.columns([one.level for one in found]) if found else None
    if dropped is None:
        return None
    apart = np.sort(np.concatenate([one.level.indices for one in found]))
    columns = tuple(place for place in range(data.template.X.shape[1]) if place not in dropped)
    table: Any = Narrowed(table=data.table, narrowing=Narrowing(columns=columns), apart=apart)
    left = Problem(with_columns(model, columns), data.showing(table))
    kept = reduce(WeightedPoints.append, (one.points for one in found))
    return Rest(problem, kept, apart, left, sum(one.nats for one in found))
