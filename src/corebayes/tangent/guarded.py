"""A guard against spurious modes, for potentials that are not log-concave.

Points that fit only where π_w lies can put a mode of π_w elsewhere: on a Cauchy location model one
outlier got a weight of 55,861. So two kinds of coordinates are added to those of a tangent space,
and fitted with them:

    λ                              for every row: ties Σ_i w_i to Σ_n c_n
    s_k (f_n(θ_k) − f_n(μ_w))      at modes of π, at those that earlier π_w had alone, and at a
                                   few draws θ_k of the prior: the log-likelihood far away

They are scaled so that an error of a tenth, in Σw or in the log-likelihood ratio at θ_k, weighs
as much as an eighth of a nat: little beside what must be fitted near π_w, everything where that
says nothing. Where the likelihood has fallen by hundreds of nats only an error as large as the fall
would matter, and weighs as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from corebayes.arguments import check_fields
from corebayes.problem import Problem
from corebayes.samplers.laplace import prior_fit
from corebayes.tangent.geometry import Geometry, LookCost, random_points
from corebayes.types import (
    Array,
    Block,
    Estimate,
    Indices,
    Model,
    Rng,
    TangentSpace,
    Total,
    WeightedPoints,
)

# ½ (5 · 0.1)² = an eighth of a nat for a relative error of a tenth.
FIRMNESS = 5.0
# Nats of the fall up to which that holds; an error of all of a fall that is five times as deep, or
# deeper, weighs half a nat.
SHALLOW = 20.0
# Modes to look at, the heaviest.
MOST_MODES = 20
# The share of rows that must have a say at a place, and how often it is moved for that.
LEAST_SAY, MOST_HALVINGS = 0.1, 12
# Rows from which the size of the log-likelihood at a prior draw is estimated.
SCALE_ROWS = 500


class Guarded(NamedTuple):
    """Vectors of the tangent space within, and the guards' coordinates (n, K + 1)."""

    inner: Any
    guards: Array


@dataclass(frozen=True)
class GuardedSpace:
    """A tangent space with the guards' coordinates at the end of every element."""

    inner: TangentSpace
    model: Model
    far: Array
    """Prior draws and, last, the location that they are compared with: (K + 1, d)."""
    scales: Array
    """s_k, and λ last."""

    @property
    def width(self) -> int:
        return self.inner.width + len(self.far)

    @property
    def location(self) -> Array:
        return self.inner.location

    def embed(self, block: Block, *, reuse: bool = False) -> Guarded:
        return Guarded(self.inner.embed(block, reuse=reuse), self._guards(block))

    def take(self, vectors: Guarded, positions: Indices) -> Guarded:
        return Guarded(self.inner.take(vectors.inner, positions), vectors.guards[positions])

    def combine(self, vectors: Guarded, weights: Array) -> Array:
        return np.append(self.inner.combine(vectors.inner, weights), weights @ vectors.guards)

    def project(self, vectors: Guarded, element: Array) -> Array:
        inner, guards = self.split(element)
        return self.inner.project(vectors.inner, inner) + vectors.guards @ guards

    def squared_norms(self, vectors: Guarded) -> Array:
        # A row that says nothing near π_w is still never selected.
        inner = self.inner.squared_norms(vectors.inner)
        guards = np.einsum("nk,nk->n", vectors.guards, vectors.guards)
        return np.where(inner > 0.0, inner + guards, 0.0)

    def gram(self, vectors: Guarded, others: Guarded | None = None) -> Array:
        others = vectors if others is None else others
        inner = self.inner.gram(vectors.inner, others.inner)
        return inner + vectors.guards @ others.guards.T

    def third_moments(self, vectors: Guarded, element: Array) -> Array:
        return self.inner.third_moments(vectors.inner, self.split(element)[0])

    def total(self, block: Block) -> Total:
        inner = self.inner.total(block)
        sums = self.model.sum_potentials(self.far, block, block.counts)
        guards = self._scaled(sums[None, :], float(block.multiplicity().sum()))[0]
        return Total(np.append(inner.element, guards), inner.mean)

    def free_energy(self, total: Total) -> float:
        return self.inner.free_energy(Total(self.split(total.element)[0], total.mean))

    def split(self, element: Array) -> tuple[Array, Array]:
        """The element of the space within, and the guards' coordinates."""
        return element[: -self.scales.size], element[-self.scales.size :]

    def _guards(self, block: Block) -> Array:
        return self._scaled(self.model.potentials(self.far, block), 1.0)

    def _scaled(self, potentials: Array, count: float) -> Array:
        ratios = potentials[:, :-1] - potentials[:, -1:]
        counted = np.full((len(potentials), 1), count)
        return np.hstack([ratios, counted]) * self.scales


@dataclass(frozen=True, kw_only=True)
class Guard(Geometry):
    """Another geometry with guards against spurious modes. Cost: `num_far` more draws a row."""

    geometry: Geometry
    num_far: int = 20

    def __post_init__(self) -> None:
        check_fields(self)

    def look_cost(self, problem: Problem) -> LookCost:
        """That of the geometry within, and always a pass for the guards."""
        return self.geometry.look_cost(problem)._replace(passes=1.0)

    def space(
        self, rng: Rng, problem: Problem, points: WeightedPoints, start: Array | None = None
    ) -> GuardedSpace:
        inner = self.geometry.space(rng, problem, points, start)
        model, count = problem.model, problem.data.total_count
        # The same places and rows at every look, so that looks can be compared.
        fixed = np.random.default_rng(problem.data.num_rows)
        prior = prior_fit(model, problem.no_points().rows)
        _, rows, counts = random_points(fixed, problem, SCALE_ROWS)
        modes = problem.places[:MOST_MODES]
        strays = problem.watched[len(problem.places) :]
        wide = prior.draw(fixed, self.num_far)
        centre = modes[0] if len(modes) else inner.location
        wide = _pulled_in(model, rows, wide, centre)
        far = np.vstack([modes, strays, wide, inner.location])
        with np.errstate(all="ignore"):
            sums = model.sum_potentials(far, rows, counts)
        sizes = np.abs(sums[:-1] - sums[-1]) * count / (counts.sum() or 1.0)
        # A likelihood that is flat out there needs no guard: a nat is the least that counts.
        sizes = np.maximum(sizes, 1.0)
        firmness = np.clip(FIRMNESS * SHALLOW / sizes, 1.0, FIRMNESS)
        scales = np.append(firmness / sizes, FIRMNESS / count)
        return GuardedSpace(inner, model, far, np.where(np.isfinite(scales), scales, 0.0))

    def kl(self, problem: Problem, space: GuardedSpace, residual: Array) -> Estimate:
        return self.geometry.kl(problem, space.inner, space.split(residual)[0])


def _pulled_in(model: Model, rows: Block, far: Array, centre: Array) -> Array:
    """Places at which many rows have a say, halfway to the centre again and again where few have.

    Where potentials overflow, or one row outweighs all others, no few rows can stand for all: what
    they are fitted to there they would not fit elsewhere. Cost: 500 potentials for each place.
    """
    far, left = far.copy(), np.arange(len(far))
    with np.errstate(all="ignore"):
        at_centre = model.potentials(centre[None], rows)
        for _ in range(MOST_HALVINGS):
            changes = np.abs(model.potentials(far[left], rows) - at_centre)
            # (Σ |Δf|)² / Σ Δf², as a share of the rows
            shares = np.square(changes.mean(axis=0)) / np.mean(np.square(changes), axis=0)
            left = left[~(shares >= LEAST_SAY)]
            if left.size == 0:
                break
            far[left] = 0.5 * (far[left] + centre)
    return np.delete(far, left, axis=0)
