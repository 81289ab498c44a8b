"""The mean of a Gaussian with known covariance."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from corebayes.models.base import NormalPriorModel
from corebayes.models.covariance import (
    Covariance,
    check_matrix,
    check_scales,
    from_matrix,
    from_variances,
)
from corebayes.models.priors.given import Given
from corebayes.models.priors.normal import Normal, frozen_array
from corebayes.models.special import scratch
from corebayes.types import Array, Block, Data, Gaussian


class MeanStatistics(NamedTuple):
    """Sufficient statistics of weighted rows."""

    count: float  # pyright: ignore[reportIncompatibleMethodOverride]
    """Σ w."""
    total: Array
    """Σ w x, (d,)."""


class Modes(NamedTuple):
    """Axes in which the prior is a unit Gaussian and the rows have diagonal precision."""

    axes: Array
    """V with Vᵀ Σ_0⁻¹ V = I and Vᵀ Σ⁻¹ V = diag(precisions)."""
    precisions: Array


@dataclass(frozen=True, eq=False)
class GaussianMean(NormalPriorModel):
    """Rows x ~ N(θ, Σ): f_n(θ) = −½ (x_n − θ)ᵀ Σ⁻¹ (x_n − θ).

    `cov` is Σ: a variance, one variance for each column, or a matrix. Data have X only.
    """

    command_line = {"gaussian-mean": {}}  # noqa: RUF012
    flags = {"noise_sd": "cov"}  # noqa: RUF012

    prior: Given = field(default_factory=Normal, kw_only=True)
    cov: ArrayLike = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.prior, Normal):
            raise TypeError(f"prior must be a Normal(mean, sd_or_cov), got {self.prior!r}")
        cov = frozen_array(self.cov, "cov")
        if cov.ndim < 2:
            check_scales(cov, "cov")
        else:
            check_matrix(cov, "cov")
        object.__setattr__(self, "cov", cov)

    @property
    def log_concave(self) -> bool:
        return True

    @property
    def covariance(self) -> Array:
        """Σ, (d, d)."""
        return self._noise.matrix

    def bind(self, data: Data) -> Self:
        fields = data.template.fields
        if set(fields) != {"X"}:
            raise ValueError(
                f"GaussianMean takes rows X alone, the data has {', '.join(fields)}; "
                "leave out the target"
            )
        num_columns = fields["X"].shape[1]
        cov = np.asarray(self.cov)
        if cov.ndim and len(cov) != num_columns:
            raise ValueError(f"cov is for {len(cov)} columns, but X has {num_columns}")
        names = data.column_names or tuple(f"mean[{k}]" for k in range(num_columns))
        return self.with_names(names)

    def potentials(self, draws: Array, block: Block, out: Array | None = None) -> Array:
        whitening = self._noise.whitening.T
        # Distances are taken from the middle of the draws, so that far-away data lose no digits.
        middle = draws.mean(axis=0)
        z = (block.X - middle) @ whitening
        t = (draws - middle) @ whitening
        # f = z·t − ½‖z‖² − ½‖t‖²
        values: Array = np.matmul(z, t.T, out=out)
        values -= 0.5 * np.einsum("ni,ni->n", z, z)[:, None]
        values -= 0.5 * np.einsum("si,si->s", t, t)
        return values

    def sum_potentials(self, draws: Array, block: Block, weights: Array | None = None) -> Array:
        values = self.potentials(draws, block, scratch("eta", (len(block), draws.shape[0])))
        return values.sum(axis=0) if weights is None else weights @ values

    def gradient(self, theta: Array, block: Block, weights: Array) -> Array:
        return self._noise.precision @ (weights @ (block.X - theta))

    def gradient_and_hessian(
        self, theta: Array, block: Block, weights: Array
    ) -> tuple[Array, Array]:
        return self.gradient(theta, block, weights), -weights.sum() * self._noise.precision

    def hessian(self, theta: Array, block: Block, weights: Array) -> Array:
        """∇² Σ_n w_n f_n(θ), without the prior, shape (d, d)."""
        return -weights.sum() * self._noise.precision

    def row_gradients(self, draws: Array, block: Block, coefficients: Array) -> dict[str, Array]:
        """Σ_s a_s ∇ f_n(θ_s) in the numbers of row n: ∂f_n/∂x_n = Σ⁻¹(θ − x_n)."""
        pull = coefficients @ draws - coefficients.sum() * block.X
        return {"X": pull @ self._noise.precision}

    def log_base(self, block: Block) -> Array:
        constant = self.dim * np.log(2.0 * np.pi) + self._noise.log_determinant
        return np.full(len(block), -0.5 * constant)

    def statistics(self, block: Block, weights: Array | None = None) -> MeanStatistics:
        if weights is None:
            return MeanStatistics(float(len(block)), block.X.sum(axis=0))
        return MeanStatistics(float(weights.sum()), weights @ block.X)

    def posterior(self, statistics: MeanStatistics) -> Gaussian:
        """π_w = N(μ_w, Σ_w): Σ_w⁻¹ = Σ_0⁻¹ + Σw · Σ⁻¹. Cost: d², after d³ once."""
        count, total = statistics
        axes, precisions = self.modes
        factor = axes / np.sqrt(1.0 + count * precisions)
        prior_mean = self.gaussian_prior.mean
        # Σ_w⁻¹ (μ_w − μ_0) = Σ⁻¹ Σ w (x − μ_0)
        information = self._noise.precision @ (total - count * prior_mean)
        return Gaussian(prior_mean + factor @ (information @ factor), factor)

    @cached_property
    def _noise(self) -> Covariance:
        cov = np.asarray(self.cov)
        return from_variances(np.broadcast_to(cov, self.dim)) if cov.ndim < 2 else from_matrix(cov)

    @cached_property
    def modes(self) -> Modes:
        """Axes that diagonalise prior and noise together. Cost: d³, once."""
        # With Σ_0 = LLᵀ: Lᵀ Σ⁻¹ L = U diag(precisions) Uᵀ and V = LU.
        whitened = self._noise.whitening @ self.gaussian_prior.factor
        precisions, rotation = np.linalg.eigh(whitened.T @ whitened)
        return Modes(self.gaussian_prior.factor @ rotation, np.maximum(precisions, 0.0))
