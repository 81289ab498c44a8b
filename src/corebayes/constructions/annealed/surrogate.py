"""A subsample that stands for all rows near one place.

At N(μ_0, L_0L_0ᵀ) the totals of all rows and of a subsample, which counts for all, differ. With
that difference added as a polynomial p of the degrees that were summed,

    Σ_u c_u f_u(θ) + p(θ),

the subsample agrees with all rows there, and what changes further off it knows to within its own
noise: of f_u only what is no such polynomial counts. So steps towards π need no pass, and where the
noise is far below what any certificate sees, no look near π needs one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from typing import NamedTuple

import numpy as np

from corebayes.coreset.missed import Missed
from corebayes.problem import Problem
from corebayes.rows import Rows
from corebayes.tangent.gaussian import gaussian_kl
from corebayes.tangent.hermite import KNOWN, Hermite, HermiteSpace
from corebayes.tangent.polynomial import polynomial_of, total_at, values_at
from corebayes.tangent.ridge import ROOT_2, RidgeAlgebra, Ridges
from corebayes.types import Array, Block, Gaussian, Indices, Total

# Steps at most, and the nats at which they have arrived.
MOST_STEPS, THERE = 10, 1e-8
# The same of safe ones.
MOST_SAFE_STEPS, NEAR = 100, 1e-2
# A subsample that misses what matters, rows far out, errs by more than its own noise, ½ d N/U nats.
MOST_NOISE = 4.0
# How far what the subsample adds to a plain Newton step may be off, in units of d/U of its nats.
NOISE = 4.0
# Nats by which a total may be off in place of a pass: what need not be fitted either
# (`AnnealedSparseVI.tolerance`), a hundredth of what no certificate tells from nothing.
NEGLIGIBLE = 1e-8


class Sample(NamedTuple):
    """Random rows as they are seen from one place."""

    rows: Block
    """Counted as all rows."""
    space: HermiteSpace
    ridges: Ridges

    @classmethod
    def of(cls, space: HermiteSpace, rows: Block) -> Sample:
        """Cost: that of U rows of a pass."""
        return cls(rows, space, space.embed(rows))

    def error(self, space: HermiteSpace) -> float:
        """½ E‖error of the total‖² in another space, in nats, where that of all rows is known here.

        With p_u the polynomial of f_u here, seen from there, it is ½ Σ_u c_u² ‖g_u − p_u‖². With
        δ = x_uᵀ(μ − μ_0), and s the spreads of η, the coefficients of p_u there are

            c_1 + c_2 δ + ½ c_3 (δ² + s² − s_0²),    c_2 + c_3 δ,    c_3.
        """
        design, (beta, now) = space.model.design(self.rows), space.embed(self.rows)
        before = np.zeros((len(self.rows), 3))
        before[:, : self.space.order] = self.ridges.coefficients
        first, second, third = before.T
        away = design @ (space.location - self.space.location)
        wider = np.vecdot(beta, beta) - np.vecdot(self.ridges.beta, self.ridges.beta)
        moved = [
            first + second * away + 0.5 * third * (np.square(away) + wider),
            second + third * away,
            third,
        ]
        left = Ridges(beta, now - np.column_stack(moved[: space.order]))
        squares = space.squared_norms(left)
        return float(0.5 * np.square(self.rows.multiplicity()) @ squares)

    def usual_error(self) -> float:
        """The same where π is as far as chance makes it, √(N/U) deviations in every direction."""
        space, away = self.space, np.sqrt(self.rows.multiplicity().mean())
        return self.error(replace(space, location=space.location + away * space.factor.sum(axis=1)))

    def misses_by_chance(self, missed: Array) -> bool:
        """Whether the element that it misses of all rows is no larger in any degree than chance
        makes it."""
        squared_counts = np.square(self.rows.multiplicity())
        noise = [float(squared_counts @ share) for share in self.space.by_degree(self.ridges)]
        shares = self.space.squares_by_degree(missed)
        return all(one <= MOST_NOISE * two for one, two in zip(shares, noise, strict=True))


@dataclass(frozen=True)
class AllButLast(HermiteSpace):
    """Totals without the highest degree, and behind them Σ_n c_n² ‖g_n‖² of that: U random rows err
    by N/U of it there. Cost: n·d^(order − 1) flops, else as those of all degrees."""

    def total(self, block: Block) -> Total:
        counts = block.multiplicity()
        ridges, means = self._ridges(self.model.design(block), self.model.target(block))
        lower = RidgeAlgebra(self.dim, self.order - 1).combine(ridges, counts)
        squares = np.square(counts) @ self.last_degree(ridges)
        return Total(np.append(lower, squares), float(counts @ means))


def total_of(
    geometry: Hermite, problem: Problem, space: HermiteSpace, rows: Block, at_hand: Indices | None
) -> Total:
    """Of all rows; the third degree from those `at_hand`, where it is known of all rows that these
    err by little: cubes of millions of rows cost as much as all the rest, and count for nothing.

    Cost: a pass of N·d² flops, or of N·d³; two where the subsample `rows` hid that it takes those.
    """
    if space.order != KNOWN or at_hand is None:
        return geometry.total(problem, space)
    usual = float(np.square(rows.multiplicity()) @ space.last_degree(space.embed(rows)))
    if 0.5 * usual * len(rows) / at_hand.size > NEGLIGIBLE:
        return geometry.total(problem, space)
    lower = geometry.total(problem, AllButLast(**vars(space)))
    if 0.5 * lower.element[-1] * problem.data.num_rows / at_hand.size > NEGLIGIBLE:
        return geometry.total(problem, space)
    some = geometry.total(problem, space, at_hand)
    element = np.concatenate([lower.element[:-1], some.element[lower.element.size - 1 :]])
    return lower._replace(element=element)


class Surrogate(NamedTuple):
    """A subsample and what it misses of all rows."""

    sample: Sample
    missed: Array
    """The element, in the space of the sample."""
    mean: float
    """What it misses there of the mean."""
    polynomial: Missed

    @classmethod
    def of(cls, space: HermiteSpace, total: Total, rows: Block) -> Surrogate:
        """Agrees with a total of all rows in its space. Cost: that of U rows of a pass."""
        own = space.total(rows)
        missed = total.element - own.element
        polynomial = polynomial_of(space.gaussian, space.order, missed)
        return cls(Sample.of(space, rows), missed, total.mean - own.mean, polynomial)

    def concave(self) -> Surrogate:
        """Without what would make it bend up somewhere: with the subsample's own log density it has
        one mode then, wherever a descent leads."""
        space = self.sample.space
        slopes, curvature = space.slopes_and_curvature(self.missed)
        values, vectors = np.linalg.eigh(curvature)
        downward = (vectors * np.minimum(values, 0.0)) @ vectors.T
        element = np.concatenate([slopes, downward.ravel() / ROOT_2])
        return self._replace(polynomial=polynomial_of(space.gaussian, 2, element))

    def total(self, space: HermiteSpace) -> Total:
        """Of all rows, by estimate, in any space. Cost: as `of`."""
        own = space.total(self.sample.rows)
        added = total_at(self.polynomial, space.gaussian, space.order)
        return Total(own.element + added.element, own.mean + self.mean + added.mean)

    def heights(self, places: Array) -> Array:
        """Σ_n c_n f_n there up to a constant, by estimate. Cost: U potentials a place."""
        rows, model = self.sample.rows, self.sample.space.model
        own = model.sum_potentials(places, rows, rows.multiplicity())
        return own + values_at(self.polynomial, places)

    def noise_beyond(self, space: HermiteSpace) -> float:
        """½ E‖error of the total‖² in the first degree that was not added up. Cost: as `of`."""
        rows, higher = self.sample.rows, replace(space, order=self.sample.space.order + 1)
        squares = higher.last_degree(higher.embed(rows))
        return float(0.5 * np.square(rows.multiplicity()) @ squares)

    def is_exact(self, space: HermiteSpace) -> bool:
        """Whether its total there is as good as that of a pass."""
        sample = self.sample
        if not space.order <= sample.space.order <= KNOWN:
            return False
        return sample.misses_by_chance(self.missed) and sample.error(space) <= NEGLIGIBLE


@dataclass(frozen=True, kw_only=True)
class Carried(Hermite):
    """The geometry of rows that a subsample stands for: near enough, a look takes no pass."""

    surrogate: Surrogate
    data: Rows
    """The rows that it stands for."""

    def __post_init__(self) -> None:
        """Nothing of it was given by anybody."""

    def stands_for(self, problem: Problem, space: HermiteSpace) -> bool:
        return problem.data is self.data and self.surrogate.is_exact(space)

    def total(self, problem: Problem, space: HermiteSpace, rows: Indices | None = None) -> Total:
        if rows is None and self.stands_for(problem, space):
            return self.surrogate.total(space)
        return super().total(problem, space, rows)


class Foreseen(NamedTuple):
    """Where steps from a space end."""

    gaussian: Gaussian
    off: float
    """How many nats that may be off; infinitely many where the subsample does not say."""
    walled: bool = False
    """Whether only safe steps led there."""
    surrogate: Surrogate | None = None
    """What led there by plain ones."""


def foreseen(geometry: Hermite, space: HermiteSpace, total: Total, rows: Block) -> Foreseen:
    """Where Newton's steps from a space end; a plain step where the subsample does not say. Cost:
    U·d² flops a step.

    Plain steps go back and forth where a posterior is walled on one side (classes that a level
    separates); then safe ones lead to the same place, if more slowly.
    """
    plain, way = space.newton(total)
    if way > MOST_NOISE * 0.5 * space.dim * float(rows.multiplicity().mean()):
        return Foreseen(plain, float("inf"))
    surrogate, nearer, first = Surrogate.of(space, total, rows), plain, space
    for _ in range(MOST_STEPS):
        space = geometry.at(space.model, nearer)
        nearer, misfit = space.newton(surrogate.total(space))
        if misfit <= THERE:
            off = NOISE * gaussian_kl(plain, nearer) * space.dim / len(rows)
            return Foreseen(nearer, off, surrogate=surrogate)
        if not isfinite(misfit):
            break
    safe, answer = geometry.descend(
        space.model,
        first.gaussian,
        surrogate.concave().total,
        enough=NEAR,
        most_steps=MOST_SAFE_STEPS,
    )
    if safe.newton(answer)[1] <= NEAR:
        return Foreseen(safe.gaussian, float("inf"), walled=True)
    return Foreseen(plain, float("inf"))
