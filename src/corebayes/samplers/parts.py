"""Gaussians and t distributions to propose from, and the density of a mixture of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.linalg import solve_triangular
from scipy.special import gammaln

from corebayes.types import Array, Gaussian


class Part(NamedTuple):
    """The multivariate t with a fit's location and scale; infinite degrees make it Gaussian."""

    fit: Gaussian
    degrees: float = np.inf

    def draw(self, rng: Generator, number: int) -> Array:
        z = rng.standard_normal((number, self.fit.mean.size))
        if np.isfinite(self.degrees):
            z *= np.sqrt(self.degrees / rng.chisquare(self.degrees, size=(number, 1)))
        return self.fit.mean + z @ self.fit.factor.T

    def log_density(self, draws: Array) -> Array:
        fit, degrees = self.fit, self.degrees
        dim = fit.mean.size
        distances = squared_distances(fit, draws)
        height = -np.linalg.slogdet(fit.factor)[1]
        if not np.isfinite(degrees):
            return height - 0.5 * dim * np.log(2.0 * np.pi) - 0.5 * distances
        height += gammaln(0.5 * (degrees + dim)) - gammaln(0.5 * degrees)
        height -= 0.5 * dim * np.log(degrees * np.pi)
        return height - 0.5 * (degrees + dim) * np.log1p(distances / degrees)


def squared_distances(fit: Gaussian, draws: Array) -> Array:
    """‖L⁻¹(θ_s − μ)‖², (S,). Cost: S·d² flops after d³."""
    centred = (draws - fit.mean).T
    if np.all(np.tril(fit.factor, -1) == 0.0):
        z = solve_triangular(fit.factor, centred, check_finite=False)
    else:
        z = np.linalg.solve(fit.factor, centred)
    return np.einsum("is,is->s", z, z)


def log_mixture(parts: Sequence[Part], shares: Array, draws: Array) -> Array:
    """Log density of the mixture of parts with these shares, (S,)."""
    with np.errstate(divide="ignore"):
        terms = [
            log_share + part.log_density(draws)
            for part, log_share in zip(parts, np.log(shares), strict=True)
        ]
    return np.logaddexp.reduce(terms, axis=0)


def draw_parts(rng: Generator, parts: Sequence[Part], counts: Sequence[int]) -> Array:
    """So many draws of each part, one part after the other."""
    return np.concatenate(
        [part.draw(rng, int(count)) for part, count in zip(parts, counts, strict=True)]
    )
