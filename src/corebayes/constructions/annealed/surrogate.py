"""A subsample that stands for all rows near one place.

At N(μ_0, L_0L_0ᵀ) the totals of all rows and of a subsample, which counts for all, differ in their
mean gradient by g and in their mean Hessian by H. With this quadratic added,

    Σ_u c_u f_u(θ) + gᵀ(θ − μ_0) + ½ (θ − μ_0)ᵀ H (θ − μ_0),

the subsample agrees with all rows there to second order, and what changes further off it knows to
within the share of its own noise. So steps towards π need no pass.
"""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

import numpy as np

from corebayes.tangent.gaussian import gaussian_kl
from corebayes.tangent.hermite import Hermite, HermiteSpace
from corebayes.tangent.ridge import ROOT_2
from corebayes.types import Array, Block, Gaussian, Total

# Steps at most, and the nats at which they have arrived.
MOST_STEPS, THERE = 10, 1e-8
# The same of safe ones.
MOST_SAFE_STEPS, NEAR = 100, 1e-2
# A subsample that misses what matters, rows far out, errs by more than its own noise, ½ d N/U nats.
MOST_NOISE = 4.0
# How far what the subsample adds to a plain Newton step may be off, in units of d/U of its nats.
NOISE = 4.0


class Surrogate(NamedTuple):
    """A subsample and what it misses of all rows."""

    rows: Block
    """Counted as all rows."""
    location: Array
    gradient: Array
    hessian: Array

    @classmethod
    def of(cls, space: HermiteSpace, total: Total, rows: Block) -> Surrogate:
        """Agrees with a total of all rows, of degree two, in its space. Cost: U·d² flops."""
        missed = total.element - space.total(rows).element
        slopes, curvature = space.slopes_and_curvature(missed)
        # Slopes are Lᵀg, curvature is LᵀHL.
        inverse = np.linalg.inv(space.factor)
        hessian = inverse.T @ curvature @ inverse
        return cls(rows, space.location, inverse.T @ slopes, hessian)

    def concave(self, factor: Array) -> Surrogate:
        """Without what would make it bend up somewhere: with the subsample's own log density it has
        one mode then, wherever a descent leads."""
        values, vectors = np.linalg.eigh(factor.T @ self.hessian @ factor)
        inverse = np.linalg.inv(factor)
        downward = (vectors * np.minimum(values, 0.0)) @ vectors.T
        return self._replace(hessian=inverse.T @ downward @ inverse)

    def total(self, space: HermiteSpace) -> Total:
        """Of all rows, by estimate, in any space of degree two. Cost: U·d² flops."""
        sample, away = space.total(self.rows), space.location - self.location
        slopes = space.factor.T @ (self.gradient + self.hessian @ away)
        curvature = space.factor.T @ self.hessian @ space.factor
        element = np.concatenate([slopes, curvature.ravel() / ROOT_2])
        mean = self.gradient @ away + 0.5 * (away @ self.hessian @ away + np.trace(curvature))
        return Total(sample.element + element, sample.mean + float(mean))


class Foreseen(NamedTuple):
    """Where steps from a space end."""

    gaussian: Gaussian
    off: float
    """How many nats that may be off; infinitely many where the subsample does not say."""
    walled: bool = False
    """Whether only safe steps led there."""


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
            return Foreseen(nearer, off)
        if not isfinite(misfit):
            break
    ask = surrogate.concave(first.factor).total
    safe, answer = geometry.descend(
        space.model, first.gaussian, ask, enough=NEAR, most_steps=MOST_SAFE_STEPS
    )
    if safe.newton(answer)[1] <= NEAR:
        return Foreseen(safe.gaussian, float("inf"), walled=True)
    return Foreseen(plain, float("inf"))
