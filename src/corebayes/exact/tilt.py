"""A coreset posterior bent towards the posterior of all rows by what r was seen to be.

Where a coreset is poor, r at the draws of a first pass still says how π differs from π_w: with a
quadratic r̂ fitted to it, π_w e^{r̂} is as easy to draw from as π_w and much nearer to π. Draws of it
are only proposals, so the fit need not be right: what r̂ leaves over decides what is accepted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from corebayes.samplers.posterior import Posterior
from corebayes.types import Array

# Draws for each coefficient that is fitted.
DRAWS_EACH = 3
# A fit that leaves more of the variance than this on draws it has not seen is none.
MOST_LEFT = 0.5


class Tilt(NamedTuple):
    """r̂(θ) = a + b·z + ½ zᵀ C z with θ = centre + L z."""

    centre: Array
    whitening: Array
    """L⁻¹."""
    constant: float
    linear: Array
    quadratic: Array
    """C, (d, d)."""

    def __call__(self, draws: Array) -> Array:
        z = (draws - self.centre) @ self.whitening.T
        return (
            self.constant + z @ self.linear + 0.5 * np.einsum("si,ij,sj->s", z, self.quadratic, z)
        )

    def gradient(self, theta: Array) -> Array:
        z = self.whitening @ (theta - self.centre)
        return self.whitening.T @ (self.linear + self.quadratic @ z)

    def hessian(self) -> Array:
        return self.whitening.T @ self.quadratic @ self.whitening


@dataclass(frozen=True, eq=False)
class Tilted(Posterior):
    """π_w e^{r̂}, which every sampler takes for a posterior."""

    tilt: Tilt

    def log_density(self, draws: Array) -> Array:
        return super().log_density(draws) + self.tilt(draws)

    def gradient(self, theta: Array) -> Array:
        return super().gradient(theta) + self.tilt.gradient(theta)

    def gradient_and_hessian(self, theta: Array) -> tuple[Array, Array]:
        gradient, hessian = super().gradient_and_hessian(theta)
        return gradient + self.tilt.gradient(theta), hessian + self.tilt.hessian()


def learn_tilt(draws: Array, residuals: Array) -> Tilt | None:
    """The quadratic of least squares; None where it foretells r no better than a constant.

    With few draws for the d(d + 1)/2 products only squares are fitted, with fewer nothing.
    Cost: S·p² flops for p coefficients.
    """
    kept = np.flatnonzero(np.isfinite(residuals))
    draws, residuals = draws[kept], residuals[kept]
    dim = draws.shape[1]
    places = np.triu_indices(dim)
    if kept.size < DRAWS_EACH * (1 + dim + places[0].size):
        places = np.diag_indices(dim)
    if kept.size < DRAWS_EACH * (1 + dim + places[0].size):
        return None
    centre, whitening = whitened(draws)
    z = (draws - centre) @ whitening.T
    features = np.column_stack([np.ones(len(z)), z, z[:, places[0]] * z[:, places[1]]])
    seen = np.arange(len(z)) % 3 != 0
    trial = least_squares(features[seen], residuals[seen])
    left = residuals[~seen] - features[~seen] @ trial
    before = residuals[~seen] - residuals[seen].mean()
    if not left @ left < MOST_LEFT * (before @ before):
        return None
    found = least_squares(features, residuals)
    products = np.zeros((dim, dim))
    products[places] = found[1 + dim :]
    return Tilt(centre, whitening, float(found[0]), found[1 : 1 + dim], products + products.T)


def whitened(draws: Array) -> tuple[Array, Array]:
    """Where the draws lie, and L⁻¹ of their covariance LLᵀ."""
    spread = draws.std(axis=0)
    spread[spread == 0.0] = 1.0
    covariance = np.atleast_2d(np.cov(draws / spread, rowvar=False))
    factor = np.linalg.cholesky(covariance + 1e-9 * np.eye(spread.size))
    return draws.mean(axis=0), np.linalg.inv(factor) / spread


def least_squares(features: Array, values: Array) -> Array:
    return np.asarray(np.linalg.lstsq(features, values, rcond=None)[0], dtype=np.float64)
