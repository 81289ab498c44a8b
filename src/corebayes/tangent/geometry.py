"""How tangent spaces come about: a geometry makes the space at π_w and what a weight update asks.

Selection looks at all rows from one π_w; a weight update looks at a few rows from many π_w.
`Geometry` serves the first, `Restriction` the second.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from corebayes.data.random_rows import random_rows
from corebayes.problem import Problem
from corebayes.scan.query import Totals
from corebayes.types import (
    Array,
    Estimate,
    Gaussian,
    Indices,
    Rng,
    TangentSpace,
    Total,
    WeightedPoints,
)

# Within so many nats ½ Var_w r is close to KL; beyond, it is worthless.
NEAR = 1.0
# The energy counts π_w as Gaussian; a fall by this share of ½ Var_w r is more than that error.
CLEAR_FALL = 0.1


class Level(NamedTuple):
    """How high KL(π_w ‖ π) is, by two measures."""

    energy: float
    """KL up to a constant, as exact as π_w is Gaussian."""
    half_variance: float = np.inf
    """½ Var_w r, the second-order KL; left infinite where the energy is exact."""

    def lower_than(self, other: Level) -> bool:
        """By the energy when far, else by ½ Var_w r unless the energy clearly falls: ½ Var_w r has
        minima of its own."""
        if max(self.half_variance, other.half_variance) >= NEAR:
            return self.energy < other.energy
        clearly = other.energy - self.energy > CLEAR_FALL * other.half_variance
        return clearly or self.half_variance < other.half_variance


class Moments(NamedTuple):
    """Covariances of the active potentials under one π_w."""

    gram: Array
    """Cov_w[f_i, f_j] over the active rows."""
    cross: Array
    """Cov_w[f_i, Σ_n c_n f_n]."""
    level: Level

    def gradient(self, weights: Array) -> Array:
        # ∇_w KL(π_w ‖ π) = −Cov_w[f, Σ_n (c_n − w_n) f_n]
        return self.gram @ weights - self.cross


class Curvature(NamedTuple):
    """KL(π_w ‖ π) around one w to second order, over the active rows."""

    gradient: Array
    metric: Array
    """G = Cov_w[f], the Fisher metric."""
    third: Array
    """E_w[g_i g_j r] with the residual r."""

    @property
    def hessian(self) -> Array:
        # ∂/∂w_j (−Cov_w[f_i, r]) = Cov_w[f_i, f_j] − E_w[g_i g_j r]
        return self.metric - self.third

    @classmethod
    def of(cls, space: TangentSpace, vectors: Any, total: Array, weights: Array) -> Curvature:
        """From the tangent space at π_w, the vectors of the active rows and Σ_n c_n g_n."""
        residual = total - space.combine(vectors, weights)
        third = space.third_moments(vectors, residual)
        return cls(-space.project(vectors, residual), space.gram(vectors), third)


class Restriction(Protocol):
    """The active rows fixed, their weights free: what a weight update may ask at any w."""

    def gradient(self, rng: Rng, weights: Array) -> Array:
        """∇_w KL(π_w ‖ π) over the active rows; unbiased where it is estimated."""
        ...

    def moments(self, rng: Rng, weights: Array) -> Moments: ...

    def curvature(self, rng: Rng, weights: Array) -> Curvature: ...


class LookCost(NamedTuple):
    """What a look takes, a space and its total, beside work on the few rows of the coreset."""

    passes: float
    """Passes over all rows; zero where sufficient statistics do."""
    draws: int = 0
    """Draws of a Markov chain or the like, each of them many densities of π_w."""

    @property
    def is_passes(self) -> bool:
        """Whether fewer rows would make it cheaper: a pass is most of it."""
        return self.passes > 0.0 and self.draws == 0


class Geometry(ABC):
    """One way to know covariances: makes the tangent space at any π_w."""

    @abstractmethod
    def space(
        self, rng: Rng, problem: Problem, points: WeightedPoints, start: Array | None = None
    ) -> TangentSpace:
        """The tangent space at π_w; `start` is the location of a space nearby."""

    @abstractmethod
    def kl(self, problem: Problem, space: Any, residual: Array) -> Estimate:
        """KL(π_w ‖ π) as this geometry sees it."""

    def look_cost(self, problem: Problem) -> LookCost:
        return LookCost(passes=1.0)

    def space_at(self, problem: Problem, at: Gaussian) -> TangentSpace:
        """The tangent space at a given Gaussian, where it needs no draws."""
        raise TypeError(
            f"{type(problem.model).__name__} has no exact inner products: give num_draws, for "
            "example num_draws=500"
        )

    def total(self, problem: Problem, space: Any, rows: Indices | None = None) -> Total:
        """Σ_n c_n g_n in a space of this geometry, exactly or scaled up from `rows`."""
        return scanned_total(problem, space, rows)

    def restrict(
        self,
        problem: Problem,
        points: WeightedPoints,
        start: Array | None = None,
        num_rows: int | None = None,
    ) -> Restriction:
        """These rows, their weights free; totals from fresh subsamples of `num_rows` if given."""
        return SpaceRestriction(self, problem, points, start, num_rows)


@dataclass
class SpaceRestriction:
    """A restriction that builds a new tangent space at every w, warm-starting the sampler.

    Cost of a call: one sampler call, one total (a pass over all or `num_rows` rows) and the
    vectors of the active rows.
    """

    geometry: Geometry
    problem: Problem
    points: WeightedPoints
    location: Array | None
    num_rows: int | None

    def gradient(self, rng: Rng, weights: Array) -> Array:
        space, vectors, total = self._look(rng, weights)
        # D = −(1/S) Σ_s ĝ_s ĝ_sᵀ (1 − w), over the active rows
        return -space.project(vectors, total.element - space.combine(vectors, weights))

    def moments(self, rng: Rng, weights: Array) -> Moments:
        space, vectors, total = self._look(rng, weights)
        residual = total.element - space.combine(vectors, weights)
        level = Level(space.free_energy(total), half_square(residual))
        return Moments(space.gram(vectors), space.project(vectors, total.element), level)

    def curvature(self, rng: Rng, weights: Array) -> Curvature:
        space, vectors, total = self._look(rng, weights)
        return Curvature.of(space, vectors, total.element, weights)

    def _look(self, rng: Rng, weights: Array) -> tuple[TangentSpace, Any, Total]:
        space = self.geometry.space(rng, self.problem, self.points.at(weights), self.location)
        self.location = space.location
        rows = subsample(rng, self.problem, self.num_rows, fresh=True)
        total = self.geometry.total(self.problem, space, rows)
        return space, space.embed(self.points.rows), total


def half_square(element: Array) -> float:
    """½ ‖element‖²; of a residual this is ½ Var_w r, the second-order KL."""
    return 0.5 * float(element @ element)


def element_of(space: TangentSpace, points: WeightedPoints) -> Array:
    """Σ_i w_i g_i."""
    return space.combine(space.embed(points.rows), points.weights)


def scanned_total(problem: Problem, space: TangentSpace, rows: Indices | None = None) -> Total:
    """Σ_n c_n g_n by a pass. From a subsample it is scaled by Σ c over the sample's Σ c (N/U)."""
    sums = problem.ask(Totals(space), rows)
    if rows is None:
        return Total(sums.total, sums.mean)
    scale = problem.data.total_count / sums.weight
    return Total(sums.total * scale, sums.mean * scale)


def residual_of(
    geometry: Geometry,
    problem: Problem,
    space: TangentSpace,
    points: WeightedPoints,
    rows: Indices | None = None,
) -> Array:
    """The element r = Σ_n (c_n − w_n) g_n."""
    total = geometry.total(problem, space, rows).element
    return total - element_of(space, points) if points.size else total


def subsample(
    rng: Rng, problem: Problem, num_rows: int | None, *, fresh: bool = False
) -> Indices | None:
    """U row numbers without replacement, sorted; None (all rows) when U is None or at least N.

    Where single rows cost whole row groups they are of those that are kept; `fresh` rows, for
    estimates that are averaged over many subsamples, never are.
    """
    if num_rows is None or num_rows >= problem.data.num_rows:
        return None
    if fresh:
        return random_rows(rng, problem.data.num_rows, num_rows)
    return problem.data.some(rng, num_rows)


def random_points(rng: Rng, problem: Problem, num_rows: int) -> WeightedPoints:
    """U random rows (all, if there are no more), each weighted by how often it counts."""
    rows = subsample(rng, problem, num_rows)
    points = problem.points(np.arange(problem.data.num_rows) if rows is None else rows)
    return points.at(points.rows.multiplicity())
