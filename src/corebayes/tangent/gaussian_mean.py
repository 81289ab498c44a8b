"""Closed-form tangent space for the mean of a Gaussian.

    Cov_w[f_n, f_m] = ν_mᵀ Ψ ν_n + ½ tr Ψ²,    ν_n = Q⁻¹(x_n − μ_w),  Ψ = Q⁻¹ Σ_w Q⁻ᵀ,  Σ = QQᵀ

In coordinates where the noise is the identity and the prior covariance is diagonal (λ), Ψ is
diagonal for every w: ψ = 1 / (1/λ + Σ_n w_n). So the vector of a row is (√ψ ∘ (z_n − μ_w),
√(½ Σψ²)), d + 1 numbers, and a weight step costs M·d flops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from corebayes.models.gaussian import GaussianMean
from corebayes.tangent.geometry import Curvature, Level, Moments
from corebayes.types import Array, Block, Gaussian, Indices, Rng, Total, WeightedPoints


class Whitening(NamedTuple):
    """z = x @ matrix, by its diagonal alone where it has nothing else: d instead of d² flops."""

    matrix: Array
    diagonal: Array | None

    @classmethod
    def by(cls, matrix: Array) -> Whitening:
        diagonal = np.diag(matrix)
        return cls(matrix, diagonal if np.array_equal(matrix, np.diag(diagonal)) else None)

    def __call__(self, x: Array) -> Array:
        return x @ self.matrix if self.diagonal is None else x * self.diagonal


@dataclass(frozen=True)
class GaussianMeanSpace:
    """Rows as dense vectors of d + 1 numbers at one π_w, in whitened coordinates."""

    to_white: Whitening
    mean: Array
    spread: Array
    """ψ, the diagonal of Ψ."""
    prior_mean: Array
    prior_variance: Array

    @property
    def width(self) -> int:
        return self.mean.size + 1

    @property
    def location(self) -> Array:
        return self.mean

    @property
    def constant(self) -> float:
        return float(np.sqrt(0.5 * self.spread @ self.spread))

    def embed(self, block: Block, *, reuse: bool = False) -> Array:
        return self.embed_white(self.to_white(block.X))

    def embed_white(self, z: Array) -> Array:
        vectors = np.empty((z.shape[0], z.shape[1] + 1))
        np.multiply(z - self.mean, np.sqrt(self.spread), out=vectors[:, :-1])
        vectors[:, -1] = self.constant
        return vectors

    def take(self, vectors: Array, positions: Indices) -> Array:
        return vectors[positions]

    def combine(self, vectors: Array, weights: Array) -> Array:
        return weights @ vectors

    def project(self, vectors: Array, element: Array) -> Array:
        return vectors @ element

    def squared_norms(self, vectors: Array) -> Array:
        return np.einsum("ni,ni->n", vectors, vectors)

    def gram(self, vectors: Array, others: Array | None = None) -> Array:
        return vectors @ (vectors if others is None else others).T

    def third_moments(self, vectors: Array, element: Array) -> Array:
        """With g = bᵀz + ½ (zᵀCz − tr C): E[g_1 g_2 g_3] = b_1ᵀC_3b_2 + … + tr C_1C_2C_3.

        Every row has C = −diag ψ, and an element a multiple of it.
        """
        linear, share = vectors[:, :-1], element[-1] / self.constant
        crossed = linear @ (self.spread * element[:-1])
        result = share * ((linear * self.spread) @ linear.T + np.sum(self.spread**3))
        result += crossed[:, None] + crossed
        return -result

    def total(self, block: Block) -> Total:
        counts, z = block.multiplicity(), self.to_white(block.X)
        distances = np.einsum("ni,ni->n", z - self.mean, z - self.mean)
        # E_w f_n = −½ tr Ψ − ½ ‖ν_n‖²
        mean = -0.5 * float(counts @ distances + counts.sum() * self.spread.sum())
        return Total(counts @ self.embed_white(z), mean)

    def free_energy(self, total: Total) -> float:
        expected = np.square(self.mean - self.prior_mean) + self.spread
        log_prior = -0.5 * float(np.sum(expected / self.prior_variance))
        return -total.mean - log_prior - 0.5 * float(np.log(self.spread).sum())


@dataclass(frozen=True)
class GaussianMeanForm:
    """Whitened coordinates, the prior there, and Σ c_n, Σ c_n z_n over all rows."""

    to_white: Whitening
    from_white: Array
    prior_mean: Array
    prior_variance: Array
    count: float
    sum: Array

    @classmethod
    def of(cls, model: GaussianMean, statistics: Any) -> GaussianMeanForm:
        axes, precisions = model.modes
        prior, scale = model.gaussian_prior, np.sqrt(precisions)
        # With Vᵀ Σ_0⁻¹ V = I and Vᵀ Σ⁻¹ V = diag(p): z = √p Vᵀ Σ_0⁻¹ x
        to_white = Whitening.by((prior.precision @ axes) * scale)
        return cls(
            to_white=to_white,
            from_white=axes / scale,
            prior_mean=to_white(prior.mean),
            prior_variance=precisions,
            count=float(statistics.count),
            sum=to_white(statistics.total),
        )

    def space(self, points: WeightedPoints) -> GaussianMeanSpace:
        z = self.to_white(points.rows.X)
        return self.space_white(points.weights @ z, float(points.weights.sum()))

    def space_at(self, at: Gaussian) -> GaussianMeanSpace:
        root = self.to_white.matrix.T @ at.factor
        spread = np.square(root).sum(axis=1)
        # Prior, noise and every posterior are diagonal in these coordinates; a guess may not be.
        size = np.sqrt(np.outer(spread, spread))
        if np.any(np.abs(root @ root.T - np.diag(spread)) > 1e-8 * size):
            raise ValueError(
                "inner products under this covariance have no closed form here: give num_draws"
            )
        return self._space(self.to_white(at.mean), spread)

    def space_white(self, weighted_sum: Array, weight: float) -> GaussianMeanSpace:
        # μ_w = Σ_w (Σ_0⁻¹ μ_0 + Σ⁻¹ Σ_n w_n x_n)
        spread = 1.0 / (1.0 / self.prior_variance + weight)
        mean = spread * (self.prior_mean / self.prior_variance + weighted_sum)
        return self._space(mean, spread)

    def _space(self, mean: Array, spread: Array) -> GaussianMeanSpace:
        return GaussianMeanSpace(self.to_white, mean, spread, self.prior_mean, self.prior_variance)

    def total(self, space: GaussianMeanSpace) -> Total:
        """Cost: d flops."""
        pull = self.sum - self.count * space.mean
        element = np.append(np.sqrt(space.spread) * pull, self.count * space.constant)
        # Σ ‖z‖² is free of w and left out.
        mean = 0.5 * float((pull + self.sum) @ space.mean - self.count * space.spread.sum())
        return Total(element, mean)

    def posterior(self, space: GaussianMeanSpace) -> Gaussian:
        return Gaussian(self.from_white @ space.mean, self.from_white * np.sqrt(space.spread))

    def restrict(self, points: WeightedPoints) -> GaussianMeanRestriction:
        return GaussianMeanRestriction(self, self.to_white(points.rows.X))


@dataclass(frozen=True)
class GaussianMeanRestriction:
    """Weight steps in whitened coordinates. Cost: M·d flops a gradient, M²·d for moments."""

    form: GaussianMeanForm
    z: Array

    def gradient(self, rng: Rng, weights: Array) -> Array:
        form, weight = self.form, float(weights.sum())
        weighted_sum = weights @ self.z
        space = form.space_white(weighted_sum, weight)
        missing = form.count - weight
        # Σ_n (c_n − w_n) ψ ∘ (z_n − μ_w)
        pull = space.spread * (form.sum - weighted_sum - missing * space.mean)
        return space.mean @ pull - self.z @ pull - missing * space.constant**2

    def moments(self, rng: Rng, weights: Array) -> Moments:
        space = self.form.space_white(weights @ self.z, float(weights.sum()))
        vectors = space.embed_white(self.z)
        total = self.form.total(space)
        level = Level(space.free_energy(total))
        return Moments(vectors @ vectors.T, vectors @ total.element, level)

    def curvature(self, rng: Rng, weights: Array) -> Curvature:
        space = self.form.space_white(weights @ self.z, float(weights.sum()))
        total = self.form.total(space).element
        return Curvature.of(space, space.embed_white(self.z), total, weights)
