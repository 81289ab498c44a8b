"""What a construction sees from the posterior of weighted points, and what it chooses there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corebayes.problem import Problem
from corebayes.tangent.geometry import Level, Moments, subsample
from corebayes.types import Array, Points, TangentSpace, Total


class Look(NamedTuple):
    """The tangent space at the π_w of some points, the total there, and how high KL is."""

    space: TangentSpace
    total: Total
    level: Level

    @classmethod
    def at(cls, space: TangentSpace, total: Total, points: Points, weights: Array) -> Look:
        """The look at these weighted points. Cost: their vectors."""
        missing = total.element - space.combine(space.embed(points.rows), weights)
        half_variance = 0.5 * float(missing @ missing)
        return cls(space, total, Level(space.free_energy(total), half_variance))

    def moments(self, points: Points) -> Moments:
        """The covariances of the points. Cost: their M² inner products."""
        vectors = self.space.embed(points.rows)
        cross = self.space.project(vectors, self.total.element)
        return Moments(self.space.gram(vectors), cross, *self.level)

    @property
    def half_variance(self) -> float:
        return self.level.half_variance

    def residual(self, points: Points, weights: Array) -> Array:
        """Σ_n c_n g_n − Σ_i w_i g_i for any weighted points, as seen from here."""
        return self.total.element - self.space.combine(self.space.embed(points.rows), weights)

    def promise(self, points: Points, weights: Array) -> float:
        """½ ‖residual‖²: what KL would be if the tangent space stayed as it is."""
        missing = self.residual(points, weights)
        return 0.5 * float(missing @ missing)


class Candidate(NamedTuple):
    """Weighted points and the look from their posterior."""

    points: Points
    weights: Array
    """At the scale of all rows, whatever the temperature."""
    look: Look

    def lower_than(self, other: Candidate) -> bool:
        return self.look.level.lower_than(other.look.level)


def make_pool(rng: np.random.Generator, problem: Problem, points: Points, num_rows: int) -> Points:
    """The given points first, then random other rows that count, each once."""
    rows = subsample(rng, problem, num_rows)
    rows = np.arange(problem.data.num_rows) if rows is None else rows
    rows = np.setdiff1d(rows, points.indices)
    fresh = Points(rows, problem.data.take(rows))
    counted = np.flatnonzero(fresh.rows.multiplicity() > 0.0)
    return points.append(fresh.take(counted))
