"""Regression with Student-t noise: a line that outliers do not bend."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebayes.models.base import check_positive
from corebayes.models.compiled import Kernel, log1p
from corebayes.models.glm import GLM, LearnedJet
from corebayes.types import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class StudentTRegression(GLM):
    """y = η + scale·t with t of `df` degrees of freedom, both known.

    With r = y − η,  ℓ = −(df + 1)/2 · log(1 + r² / (df · scale²)). Not log-concave: ℓ'' > 0
    where |r| > scale √df, so coreset posteriors may have several modes.
    """

    command_line = {"student-t": {}}  # noqa: RUF012
    flags = {"noise_sd": "scale", "df": "df"}  # noqa: RUF012

    learnable = "scale"

    df: float = 4.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self.df, "df")
        check_positive(self.scale, "scale")

    @property
    def log_concave(self) -> bool:
        return False

    @property
    def location_family(self) -> bool:
        return True

    @property
    def constants(self) -> dict[str, float]:
        return {"df": float(self.df), "scale": float(self.scale)}

    @property
    def kernel(self) -> Kernel | None:
        return student_t_kernel

    @property
    def slope_kernel(self) -> Kernel | None:
        return student_t_slope

    @property
    def stan(self) -> str | None:
        return "student_t_lpdf(y[i] | df, eta[i], scale)"

    def in_numpyro(self, numpyro: Any, jax: Any, eta: Any) -> Any:
        return numpyro.distributions.StudentT(self.df, eta, self.scale)

    def in_pymc(self, pymc: Any, eta: Any) -> Any:
        return pymc.StudentT.dist(nu=self.df, mu=eta, sigma=self.scale)

    def log_density(self, eta: Array, y: Array, out: Array) -> Array:
        residual = np.subtract(y, eta, out=out)
        residual *= 1.0 / (self.scale * np.sqrt(self.df))
        np.multiply(residual, residual, out=out)
        np.log1p(out, out=out)
        out *= -0.5 * (self.df + 1.0)
        return out

    def derivatives(self, eta: Array, y: Array, order: int = 3) -> tuple[Array, ...]:
        residual = y - eta
        width = self.df * self.scale**2
        squared = residual**2
        inverse = 1.0 / (width + squared)
        first = (self.df + 1.0) * residual * inverse
        if order == 1:
            return (first,)
        # ℓ'' = (df + 1)(r² − w) / (w + r²)²
        second = (self.df + 1.0) * (squared - width) * inverse**2
        if order == 2:
            return first, second
        # ℓ''' = 2 (df + 1) r (r² − 3w) / (w + r²)³
        return first, second, 2.0 * first * (squared - 3.0 * width) * inverse**2

    def log_base_of(self, y: Array) -> Array:
        from scipy.special import betaln

        # B(df/2, ½) √df scale is the normaliser of the density.
        constant = betaln(0.5 * self.df, 0.5) + 0.5 * np.log(self.df) + np.log(self.scale)
        return np.full_like(y, -constant)

    def learned_log_density(self, eta: Array, u: Array, y: Array) -> Array:
        squares = np.square(y - eta) * np.exp(-2.0 * u)
        return -u - 0.5 * (self.df + 1.0) * np.log1p(squares / self.df)

    def learned_jet(self, eta: Array, u: Array, y: Array) -> LearnedJet:
        residual, width = y - eta, self.df * np.exp(2.0 * u)
        inverse = 1.0 / (width + residual**2)
        slope = (self.df + 1.0) * residual * inverse
        # ∂/∂u of the slope: −2 w (df + 1) r / (w + r²)²
        bent = -2.0 * width * inverse * slope
        return LearnedJet(
            self.learned_log_density(eta, u, y),
            slope,
            residual * slope - 1.0,
            (self.df + 1.0) * (residual**2 - width) * inverse**2,
            bent,
            residual * bent,
        )

    def learned_log_base(self, y: Array) -> Array:
        # What `log_base_of` has at a scale of one.
        return replace(self, scale=1.0).log_base_of(y)

    def check_target(self, y: Array, lowest: float) -> tuple[NDArray[np.bool_], str]:
        return ~np.isfinite(y), "targets must be finite numbers"


def student_t_kernel(eta: Array, y: Array, df: float, scale: float, t: Array, _: Array) -> None:
    """f = −(df + 1)/2 · log(1 + ((y − η)/scale)²/df)."""
    inverse_width = 1.0 / (scale * math.sqrt(df))
    for i in range(eta.size):
        residual = (y[i] - eta[i]) * inverse_width
        eta[i] = -0.5 * (df + 1.0) * log1p(residual * residual)


def student_t_slope(eta: Array, y: Array, df: float, scale: float, t: Array, _: Array) -> None:
    """ℓ' = (df + 1) r / (df · scale² + r²) with r = y − η."""
    for i in range(eta.size):
        residual = y[i] - eta[i]
        eta[i] = (df + 1.0) * residual / (df * scale * scale + residual * residual)
