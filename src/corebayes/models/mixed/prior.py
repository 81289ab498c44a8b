"""The prior of a mixed model: fixed effects, learned constants, scales τ, effects below them.

β ~ N(μ_0, Σ_0),   u = (log σ, …),   v_j = log τ_j,   b_g ~ N(0, τ_j²)  for the effects of scale j

Single coefficients may have another prior instead of the Normal one, or beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from corebayes.models.priors.normal import GaussianPrior
from corebayes.models.priors.scale import ScalePrior
from corebayes.models.priors.shrinkage import HorseshoePrior
from corebayes.models.priors.stated import PartialGaussian, Placed
from corebayes.types import Array, Indices

LOG_2PI = float(np.log(2.0 * np.pi))


class ScaledEffects(NamedTuple):
    """A scale and what it scales."""

    prior: ScalePrior
    """Of v = log τ."""
    place: int
    """Where v is in θ."""
    effects: Indices
    """Where the effects are."""


@dataclass(frozen=True, eq=False)
class MixedPrior:
    """log π_0 of θ = (β, u, v, effects) and its derivatives. Cost: d flops for each draw."""

    dim: int
    fixed: GaussianPrior | PartialGaussian
    learned: tuple[ScalePrior, ...]
    """Of each u."""
    scales: tuple[ScaledEffects, ...]
    others: tuple[Placed, ...] = ()
    """Priors of coefficients that are not Normal."""
    horseshoes: tuple[HorseshoePrior, ...] = ()
    """Priors of many coefficients, with a τ and a c² of their own."""
    begins: tuple[float, ...] = ()
    """Where a fit may start in each u, if elsewhere than at its mode."""

    @property
    def middle(self) -> Array:
        """Where a fit may start: coefficients at their means, constants at their modes (Student-t
        noise of few degrees of freedom and no width has no bound) or where they begin, no
        effects."""
        theta = np.zeros(self.dim)
        fixed = self.fixed.dim
        theta[:fixed] = self.fixed.mean
        begins = self.begins or [prior.mode for prior in self.learned]
        theta[fixed : fixed + len(self.learned)] = begins
        return theta

    def log_density(self, draws: Array) -> Array:
        result = self.fixed.log_density(draws[:, : self.fixed.dim])
        for place, other in self.others:
            result += other.log_density(draws[:, place])
        for place, prior in enumerate(self.learned, self.fixed.dim):
            result += prior.log_density(draws[:, place])
        for prior, place, effects in self.scales:
            v, b = draws[:, place], draws[:, effects]
            squares = np.einsum("sg,sg->s", b, b)
            with np.errstate(over="ignore", invalid="ignore"):
                result += prior.log_density(v) - 0.5 * squares * np.exp(-2.0 * v)
            result -= effects.size * (v + 0.5 * LOG_2PI)
        for horseshoe in self.horseshoes:
            result += horseshoe.log_density(draws)
        return result

    def gradient(self, theta: Array) -> Array:
        gradient, fixed = np.zeros(self.dim), self.fixed.dim
        gradient[:fixed] = self.fixed.gradient(theta[:fixed])
        for place, other in self.others:
            gradient[place] += other.gradient(theta[place])
        for place, prior in enumerate(self.learned, fixed):
            gradient[place] = prior.gradient(theta[place])
        for prior, place, effects in self.scales:
            v, b = theta[place], theta[effects]
            precision = np.exp(-2.0 * v)
            gradient[effects] = -precision * b
            gradient[place] = prior.gradient(v) + precision * (b @ b) - b.size
        for horseshoe in self.horseshoes:
            horseshoe.add_gradient(theta, gradient)
        return gradient

    def hessian(self, theta: Array) -> Array:
        """Cost: d² numbers."""
        hessian, fixed = np.zeros((self.dim, self.dim)), self.fixed.dim
        hessian[:fixed, :fixed] = -self.fixed.precision
        for place, other in self.others:
            hessian[place, place] += other.hessian(theta[place])
        for place, prior in enumerate(self.learned, fixed):
            hessian[place, place] = prior.hessian(theta[place])
        for prior, place, effects in self.scales:
            v, b = theta[place], theta[effects]
            precision = np.exp(-2.0 * v)
            hessian[effects, effects] = -precision
            hessian[effects, place] = hessian[place, effects] = 2.0 * precision * b
            hessian[place, place] = prior.hessian(v) - 2.0 * precision * (b @ b)
        for horseshoe in self.horseshoes:
            horseshoe.add_hessian(theta, hessian)
        return hessian
