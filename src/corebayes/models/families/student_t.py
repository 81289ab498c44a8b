"""Regression with Student-t noise: a line that outliers do not bend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebayes.models.compiled.jit import Kernel, Kernels, log1p
from corebayes.models.compiled.special import digamma_rise, log_rising
from corebayes.models.families.family import Constant, Jet, Row
from corebayes.models.families.glm import GLM
from corebayes.models.numbers import LEARNED
from corebayes.models.priors.scale import Gamma, HalfStudentT
from corebayes.types import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class StudentTRegression(GLM):
    """y = η + scale·t with t of `df` degrees of freedom, both learned unless they are given.

    With r = y − η,  ℓ = −(df + 1)/2 · log(1 + r² / (df · scale²)). Not log-concave: ℓ'' > 0
    where |r| > scale √df, so coreset posteriors may have several modes.
    """

    command_line = {"student-t": {}}  # noqa: RUF012
    also = (
        "t",
        "student",
    )
    flags = {"noise_sd": "scale", "df": "df"}  # noqa: RUF012
    log_concave = False
    location_family = True
    stan_line = "student_t_lpdf(y[i] | df, eta[i], scale)"

    df: float = LEARNED
    scale: float = LEARNED

    @property
    def learnable(self) -> tuple[Constant, ...]:
        # Gamma(2, 0.1) for the degrees of freedom: Juárez and Steel (2010), as in brms and Bambi.
        return (
            Constant("scale", HalfStudentT(4.0, 1.0), in_units_of_target=True),
            Constant("df", Gamma(2.0, 0.1)),
        )

    @property
    def constants(self) -> dict[str, float]:
        # The kernel has them in this order.
        both = {"df": self.df, "scale": self.scale}
        return {name: float(value) for name, value in both.items() if value is not LEARNED}

    @property
    def kernel(self) -> Kernel | None:
        return student_t_kernel

    @property
    def slope_kernel(self) -> Kernel | None:
        return student_t_slope

    @property
    def written(self) -> str:
        return "StudentT({df}, η, {scale})"

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
        return np.full_like(y, _log_height(np.array(self.df)) - np.log(self.scale))

    @property
    def jet_kernels(self) -> Kernels:
        return (student_t_jet,)

    def log_likelihood(self, at: Sequence[Array], row: Row) -> Array:
        eta, u, v = at
        df = np.exp(v)
        # In place from here on: integrals over effects ask for millions.
        values = (row["y"] - eta) * np.exp(-u - 0.5 * v)
        np.square(values, out=values)
        np.log1p(values, out=values)
        values *= -0.5 * (df + 1.0)
        values += _log_height(df) - u
        return values

    def jet(self, at: Sequence[Array], row: Row, order: int = 2) -> Jet:
        from scipy.special import digamma, polygamma

        eta, u, v = at
        residual, df = row["y"] - eta, np.exp(v)
        width = df * np.exp(2.0 * u)
        inverse = 1.0 / (width + residual**2)
        slope = (df + 1.0) * residual * inverse
        # With q = r²/w: log(1 + q), and q/(1 + q)
        bulge, share = np.log1p(residual**2 / width), residual**2 * inverse
        half = 0.5 * df
        digammas = digamma(half) - digamma(half + 0.5)
        of_df = -0.5 - half * (digammas + bulge) + 0.5 * (df + 1.0) * share
        value = -u + _log_height(df) - 0.5 * (df + 1.0) * bulge
        first = slope, residual * slope - 1.0, of_df
        if order == 1:
            return Jet(value, first)
        # ∂/∂u of the slope: −2 w (df + 1) r / (w + r²)²
        bent = -2.0 * width * inverse * slope
        # ∂/∂v of the slope, v = log df, and w grows with df
        turned = (df * residual - width * slope) * inverse
        trigammas = polygamma(1, half) - polygamma(1, half + 0.5)
        twice = -half * (digammas + half * trigammas + bulge) + df * share
        second = (
            ((df + 1.0) * (residual**2 - width) * inverse**2,),
            (bent, residual * bent),
            (turned, residual * turned, twice - 0.5 * (df + 1.0) * share * (1.0 - share)),
        )
        return Jet(value, first, second)

    def slopes(self, at: Sequence[Array], row: Row) -> tuple[Array, Array]:
        eta, u, v = at
        residual, df = row["y"] - eta, np.exp(v)
        width = df * np.exp(2.0 * u)
        # With q = w + r²: (df + 1) r / q, and (df + 1)(r² − w) / q² = (df + 1)(1 − 2w/q) / q
        inverse = np.square(residual)
        inverse += width
        np.reciprocal(inverse, out=inverse)
        second = 1.0 - 2.0 * width * inverse
        inverse *= df + 1.0
        second *= inverse
        residual *= inverse
        return residual, second

    def row_base(self, row: Row) -> Array:
        return np.zeros_like(row["y"])

    def mean(self, at: Sequence[Array], row: Row) -> Array:
        """η: the mean where df > 1, and the middle where there is no mean."""
        return at[0]

    def draw(self, rng: np.random.Generator, at: Sequence[Array], row: Row) -> Array:
        eta, u, v = at
        return eta + np.exp(u) * rng.standard_t(np.broadcast_to(np.exp(v), eta.shape))

    def check_target(self, y: Array, lowest: float) -> tuple[NDArray[np.bool_], str]:
        return ~np.isfinite(y), "targets must be finite numbers"


def _log_height(df: Array) -> Array:
    """log of the density at its middle, for a scale of one: 1 / (√df B(df/2, ½))."""
    from scipy.special import betaln

    return -np.asarray(betaln(0.5 * df, 0.5), dtype=np.float64) - 0.5 * np.log(df)


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


def student_t_jet(etas: Array, u: Array, row: Array, value: Array, first: Array) -> None:
    """ℓ = −u + log height − (df + 1)/2 · log(1 + q), q = r²/(df e^{2u}), df = e^v."""
    df = math.exp(u[1])
    half, width = 0.5 * df, df * math.exp(2.0 * u[0])
    height = log_rising(half, 0.5) - 0.5 * (math.log(math.pi) + u[1]) - u[0]
    rise = digamma_rise(half, 0.5)
    for i in range(value.size):
        residual = row[0, i] - etas[0, i]
        inverse = 1.0 / (width + residual * residual)
        bulge, share = log1p(residual * residual / width), residual * residual * inverse
        slope = (df + 1.0) * residual * inverse
        value[i] = height - 0.5 * (df + 1.0) * bulge
        first[0, i] = slope
        first[1, i] = residual * slope - 1.0
        first[2, i] = half * (rise - bulge) + 0.5 * ((df + 1.0) * share - 1.0)
