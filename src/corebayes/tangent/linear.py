"""Closed-form tangent space for linear regression with known noise.

    Cov_w[f_n, f_m] = σ⁻⁴ (ν_n ν_m β_nᵀβ_m + ½ (β_nᵀβ_m)²),    ν_n = y_n − μ_wᵀx_n,  β_n = Lᵀx_n

so a row is a ridge polynomial with c_1 = ν_n/σ², c_2 = −1/σ², and the total follows from
A = Σ c_n x_n x_nᵀ and h = Σ c_n y_n x_n. A weight step needs only the active rows: Σ_w, μ_w and
all inner products live in the span of their M features, so it costs M³ and not d³ flops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack

from corebayes.models.families.linear import LinearRegression
from corebayes.tangent.gaussian import gaussian_free_energy, gaussian_kl
from corebayes.tangent.geometry import Curvature, Level, Moments
from corebayes.tangent.ridge import ROOT_2, RidgeAlgebra, Ridges
from corebayes.types import Array, Block, Gaussian, Rng, Total, WeightedPoints


@dataclass(frozen=True)
class LinearSpace(RidgeAlgebra):
    """Ridge polynomials of order 2 at the exact N(location, factor factorᵀ)."""

    model: LinearRegression
    location: Array
    factor: Array

    def embed(self, block: Block, *, reuse: bool = False) -> Ridges:
        """Cost: n·d² flops."""
        design = self.model.design(block)
        coefficients = np.empty((len(block), 2))
        coefficients[:, 0] = (block.y - design @ self.location) / self.model.noise_sd**2
        coefficients[:, 1] = -1.0 / self.model.noise_sd**2
        return Ridges(design @ self.factor, coefficients)

    def total(self, block: Block) -> Total:
        vectors, counts = self.embed(block), block.multiplicity()
        variance = self.model.noise_sd**2
        misfit = vectors.coefficients[:, 0] * variance
        lengths = np.einsum("ni,ni->n", vectors.beta, vectors.beta)
        # E_w f_n = −(ν_n² + ‖β_n‖²) / 2σ²
        mean = float(counts @ (misfit**2 + lengths)) / (-2.0 * variance)
        return Total(self.combine(vectors, counts), mean)

    def free_energy(self, total: Total) -> float:
        posterior = Gaussian(self.location, self.factor)
        return gaussian_free_energy(self.model.gaussian_prior, posterior, total)


@dataclass(frozen=True)
class LinearForm:
    """The model with A = Σ c_n x_n x_nᵀ and h = Σ c_n y_n x_n over all rows."""

    model: LinearRegression
    second: Array
    cross: Array
    full: Gaussian
    """The exact posterior of all rows."""

    @classmethod
    def of(cls, model: LinearRegression, statistics: Any) -> LinearForm:
        full = model.posterior(statistics)
        return cls(model, statistics.second, statistics.cross, full)

    def space(self, points: WeightedPoints) -> LinearSpace:
        statistics = self.model.statistics(points.rows, points.weights)
        return self.space_at(self.model.posterior(statistics))

    def space_at(self, at: Gaussian) -> LinearSpace:
        return LinearSpace(self.model.dim, 2, self.model, *at)

    def total(self, space: LinearSpace) -> Total:
        """Cost: d³ flops."""
        variance, location = self.model.noise_sd**2, space.location
        pull = self.cross - self.second @ location
        quadratic = space.factor.T @ self.second @ space.factor
        parts = (space.factor.T @ pull / variance, quadratic.ravel() / (-variance * ROOT_2))
        # Σ y² is free of w and left out.
        mean = 0.5 * ((pull + self.cross) @ location - np.trace(quadratic)) / variance
        return Total(np.concatenate(parts), float(mean))

    def posterior(self, space: LinearSpace) -> Gaussian:
        return Gaussian(space.location, space.factor)

    def restrict(self, points: WeightedPoints) -> LinearRestriction:
        """Cost: M·d² flops, once for each change of the active rows."""
        model, prior = self.model, self.model.gaussian_prior
        design = model.design(points.rows)
        lifted = (design @ prior.factor) @ prior.factor.T
        lifted_second = lifted @ self.second
        return LinearRestriction(
            form=self,
            points=points,
            prior_gram=design @ lifted.T,
            full_gram=lifted_second @ lifted.T,
            misfit=points.rows.y - design @ prior.mean,
            pull=lifted @ self.cross - lifted_second @ prior.mean,
        )


@dataclass(frozen=True)
class LinearRestriction:
    """Gradients in the span of the active rows, 5·M³ flops; moments in full, 5·d³ flops.

    With B the active rows and P = BΣ_0, a gradient follows from K = BΣ_0Bᵀ, PAPᵀ and the misfit
    at the prior mean: BΣ_w = T P with T = (I + K W/σ²)⁻¹.
    """

    form: LinearForm
    points: WeightedPoints
    prior_gram: Array
    """K = B Σ_0 Bᵀ."""
    full_gram: Array
    """P A Pᵀ."""
    misfit: Array
    """y − B μ_0."""
    pull: Array
    """P (h − A μ_0)."""

    def gradient(self, rng: Rng, weights: Array) -> Array:
        K, variance = self.prior_gram, self.form.model.noise_sd**2
        shrink = self._shrink(weights / variance)
        # V = B Σ_w Bᵀ
        covariance = shrink @ K
        misfit = shrink @ self.misfit
        dual = weights * misfit / variance
        # P Σ_n (c_n − w_n) ν_n x_n, with μ_w = μ_0 + Pᵀ dual
        pull = self.pull - self.full_gram @ dual - K @ (weights * misfit)
        # x_iᵀ Σ_w (A − Bᵀ W B) Σ_w x_i
        curvature = np.einsum("ij,ij->i", shrink @ self.full_gram, shrink)
        curvature -= np.square(covariance) @ weights
        return -(misfit * (shrink @ pull) + 0.5 * curvature) / variance**2

    def moments(self, rng: Rng, weights: Array) -> Moments:
        # Differences of KL matter here, and only the d × d form has the digits for them.
        space = self.form.space(self.points.at(weights))
        vectors, total = space.embed(self.points.rows), self.form.total(space)
        level = Level(gaussian_kl(self.form.posterior(space), self.form.full))
        return Moments(space.gram(vectors), space.project(vectors, total.element), level)

    def curvature(self, rng: Rng, weights: Array) -> Curvature:
        space = self.form.space(self.points.at(weights))
        total = self.form.total(space).element
        return Curvature.of(space, space.embed(self.points.rows), total, weights)

    def _shrink(self, precision: Array) -> Array:
        """T = (I + K W/σ²)⁻¹ = S⁻¹ (I + S K S)⁻¹ S with S = √(W/σ²).

        Through the symmetric inverse every entry keeps its digits, however large the weights; a
        weight of zero is raised to where it changes nothing.
        """
        floor = 1e-14 / np.diag(self.prior_gram)
        scale = np.sqrt(np.maximum(precision, floor))
        inner = self.prior_gram * np.outer(scale, scale)
        inner.flat[:: len(scale) + 1] += 1.0
        root = lapack.dpotrf(inner, lower=1, overwrite_a=1, clean=0)[0]
        inverse = lapack.dpotri(root, lower=1, overwrite_c=1)[0]
        lower = np.tril(inverse)
        symmetric = lower + np.tril(inverse, -1).T
        return symmetric * (scale / scale[:, None])
