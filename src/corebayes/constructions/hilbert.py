"""What the constructions in a fixed tangent space share.

They all look for few weighted rows that are close to the total of all rows,

    min_{w ≥ 0, ‖w‖_0 ≤ M} ‖b − Σ_i w_i g_i‖²,      b = Σ_n c_n g_n,   ⟨g_n, g_m⟩ = Cov_π̂[f_n, f_m],

and differ in how rows are chosen and weights solved. ½ ‖b − Σ_i w_i g_i‖² = ½ Var_π̂ r is the
second-order KL(π_w ‖ π) when π̂ is close to both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from corebayes.constructions.construction import PRECISION
from corebayes.problem import Problem
from corebayes.scan.every_row import AllRows, Norms, joined
from corebayes.scan.passes import Query
from corebayes.tangent.geometry import element_of, half_square, scanned_total
from corebayes.tangent.monte_carlo import MonteCarlo, MonteCarloSpace
from corebayes.tangent.weighting import Weighting
from corebayes.types import Array, Estimate, Indices, Points, Rng, TangentSpace, WeightedPoints
from corebayes.weights.nnls import nonnegative_least_squares

Answer = TypeVar("Answer")

# Vectors of all rows are kept when they are at most this many numbers (32 MB); rows of larger
# problems are embedded again in every pass.
KEPT_VALUES = 4_000_000
# A residual below this share of the total is round-off.
ROUND_OFF = 1e-13

MATCHED = "nothing is left to fit that the fixed tangent space can see"
NOTHING_TO_ADD = "no row would improve the coreset"
UNDER_WEIGHTING = " under the weighting distribution"


class VectorQuery(Query[Answer], Protocol[Answer]):
    """A question that can also be put to rows whose vectors are at hand."""

    def answer_embedded(self, vectors: Any, block: Any, numbers: Indices) -> Answer: ...


class KeptVectors(NamedTuple):
    """All rows of a small problem, and their vectors."""

    vectors: Any
    points: Points


@dataclass(eq=False)
class HilbertTarget:
    """The total b of all rows in a fixed tangent space, and questions to the rows there.

    Cost of a question: one pass of N·S potentials, or N·S flops where the vectors are kept.
    """

    space: TangentSpace
    total: Array
    _kept: KeptVectors | None = field(default=None, repr=False)
    _length: float | None = field(default=None, repr=False)

    @classmethod
    def of(cls, rng: Rng, problem: Problem, weighting: Weighting) -> HilbertTarget:
        space = weighting.space(rng, problem)
        return cls(space, scanned_total(problem, space).element)

    def ask(self, problem: Problem, query: VectorQuery[Answer]) -> Answer:
        """The answer of all rows."""
        if problem.data.num_rows * self.space.width > KEPT_VALUES:
            return problem.ask(query)
        if self._kept is None:
            points = reduce(Points.append, problem.ask(AllRows()))
            self._kept = KeptVectors(self.space.embed(points.rows), points)
        vectors, points = self._kept
        return query.answer_embedded(vectors, points.rows, points.indices)

    def length(self, problem: Problem) -> float:
        """σ = Σ_n c_n ‖g_n‖: one pass, then kept."""
        if self._length is None:
            self._length = float(joined(self.ask(problem, Norms(self.space))).sum())
        return self._length

    def residual(self, points: WeightedPoints) -> Array:
        """b − Σ_i w_i g_i."""
        return self.total - element_of(self.space, points) if points.size else self.total

    def kl(self, problem: Problem, residual: Array) -> Estimate:
        """½ ‖residual‖², with the error of a variance from draws where the space has draws."""
        if isinstance(self.space, MonteCarloSpace):
            return MonteCarlo().kl(problem, self.space, residual)
        return Estimate(half_square(residual), 0.0)

    def matched(self, residual: Array) -> bool:
        """Whether nothing but round-off is left to fit."""
        left = float(np.linalg.norm(residual))
        return left <= max(np.sqrt(2.0 * PRECISION), ROUND_OFF * float(np.linalg.norm(self.total)))

    def refit(self, points: WeightedPoints) -> WeightedPoints:
        """Nonnegative least squares on the points, which may leave. Cost: M²·S + M³/3 flops."""
        vectors = self.space.embed(points.rows)
        gram, cross = self.space.gram(vectors), self.space.project(vectors, self.total)
        fitted = nonnegative_least_squares(gram, cross, points.weights)
        # Points that all lead away from the total are still better than an empty coreset.
        return points.at(fitted).positive() if np.any(fitted > 0.0) else points

    def __getstate__(self) -> dict[str, Any]:
        # Kept vectors are a matter of speed: a copy of the state makes its own.
        return {**self.__dict__, "_kept": None}
