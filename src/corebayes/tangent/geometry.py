"""How tangent spaces come about: a geometry makes the space at π_w and what a weight update asks.

Selection looks at all rows from one π_w; a weight update looks at a few rows from many π_w.
`Geometry` serves the first, `Restriction` the second.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from corebayes.data.random_rows import random_rows
from corebayes.models.prior import GaussianPrior
from corebayes.problem import Problem
from corebayes.scan.query import Totals
from corebayes.types import Array, Estimate, Gaussian, Indices, Points, TangentSpace, Total


class Level(NamedTuple):
    """How high KL(π_w ‖ π) is, up to a constant, by two measures."""

    energy: float
    """As exact as π_w is Gaussian."""
    half_variance: float
    """½ Var_w r, the second-order KL."""

    def lower_than(self, other: Level) -> bool:
        """By the free energy when far, where ½ Var_w r is worthless; within a nat, where counting
        π_w as Gaussian shows in the energy, by ½ Var_w r, unless the energy falls by a tenth of it:
        ½ Var_w r has minima of its own."""
        if max(self.half_variance, other.half_variance) >= 1.0:
            return self.energy < other.energy
        clearly = other.energy - self.energy > 0.1 * other.half_variance
        return clearly or self.half_variance < other.half_variance


class Moments(NamedTuple):
    """Covariances of the active potentials under one π_w."""

    gram: Array
    """Cov_w[f_i, f_j] over the active rows."""
    cross: Array
    """Cov_w[f_i, Σ_n c_n f_n]."""
    energy: float
    """KL(π_w ‖ π) up to a constant, as exact as π_w is Gaussian."""
    half_variance: float = np.inf
    """½ Var_w r, the second-order KL; left infinite where the energy is exact."""

    def gradient(self, weights: Array) -> Array:
        # ∇_w KL(π_w ‖ π) = −Cov_w[f, Σ_n (c_n − w_n) f_n]
        return self.gram @ weights - self.cross

    @property
    def level(self) -> Level:
        return Level(self.energy, self.half_variance)


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
        return cls(
            -space.project(vectors, residual),
            space.gram(vectors),
            space.third_moments(vectors, residual),
        )


class Restriction(Protocol):
    """The active rows fixed, their weights free: what a weight update may ask at any w."""

    def gradient(self, rng: np.random.Generator, weights: Array) -> Array:
        """∇_w KL(π_w ‖ π) over the active rows; unbiased where it is estimated."""
        ...

    def moments(self, rng: np.random.Generator, weights: Array) -> Moments: ...

    def curvature(self, rng: np.random.Generator, weights: Array) -> Curvature: ...


class Geometry(Protocol):
    """Makes the tangent space at π_w for one way of computing covariances."""

    def space(
        self,
        rng: np.random.Generator,
        problem: Problem,
        points: Points,
        weights: Array,
        start: Array | None = None,
    ) -> TangentSpace:
        """The tangent space at π_w; `start` is the location of a space nearby."""
        ...

    def total(self, problem: Problem, space: Any, rows: Indices | None = None) -> Total:
        """Σ_n c_n g_n in a space of this geometry, exactly or scaled up from `rows`."""
        ...

    def restrict(
        self,
        problem: Problem,
        points: Points,
        start: Array | None = None,
        num_rows: int | None = None,
    ) -> Restriction:
        """The view of the active rows; totals from fresh subsamples of `num_rows` if given."""
        ...

    def kl(self, problem: Problem, space: Any, residual: Array) -> Estimate:
        """KL(π_w ‖ π) as this geometry sees it."""
        ...


class ScannedGeometry(ABC):
    """A geometry whose totals take a pass over the rows, and whose spaces are cheap to build."""

    @abstractmethod
    def space(
        self,
        rng: np.random.Generator,
        problem: Problem,
        points: Points,
        weights: Array,
        start: Array | None = None,
    ) -> TangentSpace: ...

    @abstractmethod
    def kl(self, problem: Problem, space: Any, residual: Array) -> Estimate: ...

    def total(self, problem: Problem, space: TangentSpace, rows: Indices | None = None) -> Total:
        return scanned_total(problem, space, rows)

    def restrict(
        self,
        problem: Problem,
        points: Points,
        start: Array | None = None,
        num_rows: int | None = None,
    ) -> Restriction:
        return SpaceRestriction(self, problem, points, start, num_rows)


def scanned_total(problem: Problem, space: TangentSpace, rows: Indices | None = None) -> Total:
    """Σ_n c_n g_n by a pass. From a subsample it is scaled by Σ c over the sample's Σ c (N/U)."""
    sums = problem.ask(Totals(space), rows)
    if rows is None:
        return Total(sums.total, sums.mean)
    scale = problem.data.total_count / sums.weight
    return Total(sums.total * scale, sums.mean * scale)


def subsample(
    rng: np.random.Generator, problem: Problem, num_rows: int | None, *, fresh: bool = False
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


def residual_of(
    geometry: Geometry,
    problem: Problem,
    space: TangentSpace,
    points: Points,
    weights: Array,
    rows: Indices | None = None,
) -> Array:
    """The element r = Σ_n (c_n − w_n) g_n."""
    total = geometry.total(problem, space, rows).element
    if weights.size == 0:
        return total
    return total - space.combine(space.embed(points.rows), weights)


def gaussian_free_energy(prior: GaussianPrior, posterior: Gaussian, total: Total) -> float:
    """−Σ_n c_n E f_n − E log π_0 − entropy for a Gaussian π_w, up to a constant free of w."""
    away = posterior.mean - prior.mean
    spread = np.einsum("ij,ij->", prior.precision @ posterior.factor, posterior.factor)
    log_prior = -0.5 * (away @ prior.precision @ away + spread)
    entropy = np.linalg.slogdet(posterior.factor)[1]
    return float(-total.mean - log_prior - entropy)


@dataclass
class SpaceRestriction:
    """A restriction that builds the tangent space anew at every w, warm-starting the sampler.

    Cost of a call: one sampler call, one total (a pass over all or `num_rows` rows) and the
    vectors of the active rows.
    """

    geometry: Geometry
    problem: Problem
    points: Points
    start: Array | None
    num_rows: int | None
    _location: Array | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        self._location = self.start

    def gradient(self, rng: np.random.Generator, weights: Array) -> Array:
        space, vectors, total = self._look(rng, weights)
        # D = −(1/S) Σ_s ĝ_s ĝ_sᵀ (1 − w), over the active rows
        return -space.project(vectors, total.element - space.combine(vectors, weights))

    def moments(self, rng: np.random.Generator, weights: Array) -> Moments:
        space, vectors, total = self._look(rng, weights)
        gram, cross = space.gram(vectors), space.project(vectors, total.element)
        residual = total.element - space.combine(vectors, weights)
        return Moments(gram, cross, space.free_energy(total), 0.5 * float(residual @ residual))

    def curvature(self, rng: np.random.Generator, weights: Array) -> Curvature:
        space, vectors, total = self._look(rng, weights)
        return Curvature.of(space, vectors, total.element, weights)

    def _look(self, rng: np.random.Generator, weights: Array) -> tuple[TangentSpace, Any, Total]:
        space = self.geometry.space(rng, self.problem, self.points, weights, self._location)
        self._location = space.location
        rows = subsample(rng, self.problem, self.num_rows, fresh=True)
        total = self.geometry.total(self.problem, space, rows)
        return space, space.embed(self.points.rows), total
