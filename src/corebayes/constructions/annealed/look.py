"""What is seen from the posterior of weighted points."""

from __future__ import annotations

from typing import NamedTuple

from corebayes.tangent.geometry import Level, Moments, element_of, half_square
from corebayes.types import Array, TangentSpace, Total, WeightedPoints


class Look(NamedTuple):
    """Weighted points, the tangent space at their π_w, the total there, and how high KL is."""

    points: WeightedPoints
    """At the scale of all rows, also where the space is that of a temperature below one."""
    space: TangentSpace
    total: Total
    level: Level

    @classmethod
    def of(cls, points: WeightedPoints, space: TangentSpace, total: Total) -> Look:
        """Cost: the vectors of the points."""
        missing = total.element - element_of(space, points)
        return cls(points, space, total, Level(space.free_energy(total), half_square(missing)))

    @property
    def half_variance(self) -> float:
        return self.level.half_variance

    def lower_than(self, other: Look) -> bool:
        return self.level.lower_than(other.level)

    def moments(self) -> Moments:
        """The covariances of the points. Cost: their M² inner products."""
        vectors = self.space.embed(self.points.rows)
        cross = self.space.project(vectors, self.total.element)
        return Moments(self.space.gram(vectors), cross, self.level)

    def residual(self, points: WeightedPoints | None = None) -> Array:
        """Σ_n c_n g_n − Σ_i w_i g_i, for these or any other points as seen from here."""
        return self.total.element - element_of(self.space, points or self.points)

    def promise(self, points: WeightedPoints) -> float:
        """½ ‖residual‖²: what KL would be if the tangent space stayed as it is."""
        return half_square(self.residual(points))
