"""Linear regression: with known noise a GLM whose coreset posteriors are Gaussian."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corebayes.models.compiled.jit import Kernel, Kernels
from corebayes.models.conjugate import solve_gaussian
from corebayes.models.families.family import Constant, Jet, Row
from corebayes.models.families.glm import GLM
from corebayes.models.numbers import LEARNED
from corebayes.models.priors.scale import HalfStudentT
from corebayes.types import Array, Block, Gaussian


class LinearStatistics(NamedTuple):
    """Sufficient statistics of weighted rows."""

    second: Array
    """Σ w x xᵀ, (d, d)."""
    cross: Array
    """Σ w y x, (d,)."""


@dataclass(frozen=True, eq=False)
class LinearRegression(GLM):
    """y ~ N(η, noise_sd²): ℓ = −(y − η)² / (2 noise_sd²).

    The noise is learned, its prior HalfStudentT(4, sd(y)) unless `prior` names another, or the
    number that is given; with a number all posteriors are Gaussian.
    Features are X as given; `radial_basis` makes those of Campbell and Beronov (2019), section 4.2.
    """

    command_line = {"linear": {}}  # noqa: RUF012
    also = (
        "gaussian",
        "normal",
    )
    flags = {"noise_sd": "noise_sd"}  # noqa: RUF012
    location_family = True
    stan_line = "normal_lpdf(y[i] | eta[i], noise_sd)"

    noise_sd: float = LEARNED

    @property
    def learnable(self) -> tuple[Constant, ...]:
        return (Constant("noise_sd", HalfStudentT(4.0, 1.0), in_units_of_target=True),)

    @property
    def density_kernels(self) -> tuple[Kernel, Kernel] | None:
        # A pass over many rows is as quick in NumPy: there is no `kernel`.
        return gaussian_kernel, gaussian_slope

    @property
    def written(self) -> str:
        return "Normal(η, {noise_sd})"

    def in_numpyro(self, numpyro: Any, jax: Any, eta: Any) -> Any:
        return numpyro.distributions.Normal(eta, self.noise_sd)

    def in_pymc(self, pymc: Any, eta: Any) -> Any:
        return pymc.Normal.dist(mu=eta, sigma=self.noise_sd)

    def log_density(self, eta: Array, y: Array, out: Array) -> Array:
        residual = np.subtract(y, eta, out=out)
        residual *= np.sqrt(0.5) / self.noise_sd
        np.multiply(residual, residual, out=out)
        return np.negative(out, out=out)

    def derivatives(self, eta: Array, y: Array, order: int = 3) -> tuple[Array, ...]:
        first = (y - eta) / self.noise_sd**2
        if order == 1:
            return (first,)
        second = np.full_like(first, -1.0 / self.noise_sd**2)
        return (first, second) if order == 2 else (first, second, np.zeros_like(first))

    def log_base_of(self, y: Array) -> Array:
        return np.full_like(y, -0.5 * np.log(2.0 * np.pi) - np.log(self.noise_sd))

    @property
    def jet_kernels(self) -> Kernels:
        return (gaussian_jet,)

    def log_likelihood(self, at: Sequence[Array], row: Row) -> Array:
        eta, u = at
        return -u - 0.5 * np.square((row["y"] - eta) * np.exp(-u))

    def jet(self, at: Sequence[Array], row: Row, order: int = 2) -> Jet:
        eta, u = at
        precision = np.exp(-2.0 * u)
        slope = (row["y"] - eta) * precision
        square = (row["y"] - eta) * slope
        second = ((-precision,), (-2.0 * slope, -2.0 * square))
        return Jet(-u - 0.5 * square, (slope, square - 1.0), second)

    def row_base(self, row: Row) -> Array:
        return np.full_like(row["y"], -0.5 * np.log(2.0 * np.pi))

    def mean(self, at: Sequence[Array], row: Row) -> Array:
        return at[0]

    def draw(self, rng: np.random.Generator, at: Sequence[Array], row: Row) -> Array:
        eta, u = at
        return eta + np.exp(u) * rng.standard_normal(eta.shape)

    def check_target(self, y: Array, lowest: float) -> tuple[NDArray[np.bool_], str]:
        return ~np.isfinite(y), "targets must be finite numbers"

    def statistics(self, block: Block, weights: Array | None = None) -> LinearStatistics:
        """Cost: n·d² flops."""
        design = self.design(block)
        if weights is None:
            return LinearStatistics(design.T @ design, block.y @ design)
        if weights.min(initial=0.0) < 0.0:
            return LinearStatistics((design.T * weights) @ design, (weights * block.y) @ design)
        # A matrix times its own transpose is half the work.
        scaled = np.sqrt(weights)[:, None] * design
        return LinearStatistics(scaled.T @ scaled, (weights * block.y) @ design)

    def posterior(self, statistics: LinearStatistics) -> Gaussian:
        """π_w = N(μ_w, Σ_w): Σ_w⁻¹ = Σ_0⁻¹ + Σ w x xᵀ/σ². Cost: d³."""
        prior, variance = self.gaussian_prior, self.noise_sd**2
        # Σ_w⁻¹ (μ_w − μ_0) = Σ w x (y − xᵀμ_0) / σ²
        information = (statistics.cross - statistics.second @ prior.mean) / variance
        shift, factor = solve_gaussian(prior.precision, statistics.second / variance, information)
        return Gaussian(prior.mean + shift, factor)


def gaussian_kernel(eta: Array, y: Array, noise_sd: float, p1: float, t: Array, _: Array) -> None:
    """f = −½ ((y − η)/noise_sd)²."""
    for i in range(eta.size):
        residual = (y[i] - eta[i]) / noise_sd
        eta[i] = -0.5 * residual * residual


def gaussian_slope(eta: Array, y: Array, noise_sd: float, p1: float, t: Array, _: Array) -> None:
    """ℓ' = (y − η)/noise_sd²."""
    for i in range(eta.size):
        eta[i] = (y[i] - eta[i]) / (noise_sd * noise_sd)


def gaussian_jet(etas: Array, u: Array, row: Array, value: Array, first: Array) -> None:
    """ℓ = −u − ½ (y − η)² e^{−2u}, u = log noise_sd."""
    precision = math.exp(-2.0 * u[0])
    for i in range(value.size):
        residual = row[0, i] - etas[0, i]
        slope = residual * precision
        value[i] = -u[0] - 0.5 * residual * slope
        first[0, i] = slope
        first[1, i] = residual * slope - 1.0
