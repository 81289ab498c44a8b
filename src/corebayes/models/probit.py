"""Probit regression: labels by the normal distribution function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, sqrt
from math import exp as exponential
from math import log as logarithm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebayes.models.compiled import Kernel
from corebayes.models.family import Row
from corebayes.models.glm import GLM
from corebayes.models.labels import check_labels, signs
from corebayes.models.special import LOG_ROOT_2PI, log_normal_tail
from corebayes.types import Array, Block

# Below this Φ underflows, and a few terms of its asymptotic series are exact.
FAR = -37.0


@dataclass(frozen=True, kw_only=True, eq=False)
class ProbitRegression(GLM):
    """P(y = 1 | x) = Φ(xᵀθ). With y = ±1 and m = yη,  ℓ = log Φ(m).

    Labels are 0 and 1, or −1 and 1, or bool.
    """

    command_line = {"probit": {}}  # noqa: RUF012

    @property
    def kernel(self) -> Kernel | None:
        return probit_kernel

    @property
    def slope_kernel(self) -> Kernel | None:
        return probit_slope

    def predictor_of_mean(self, mean: float, count: float) -> float:
        share = (0.5 * (mean + 1.0) * count + 0.5) / (count + 1.0)
        from scipy.special import ndtri

        return float(ndtri(share))

    def own_target(self, y: Array) -> Array:
        return signs(y)

    def exported_target(self, block: Block) -> NDArray[Any]:
        return (self.target(block) > 0.0).astype(np.int64)

    def log_density(self, eta: Array, y: Array, out: Array) -> Array:
        out[...] = log_normal_tail(y * eta)[0]
        return out

    def derivatives(self, eta: Array, y: Array, order: int = 3) -> tuple[Array, ...]:
        m = y * eta
        # r = φ(m)/Φ(m), and r' = −r (m + r)
        ratio = log_normal_tail(m)[1]
        first = y * ratio
        if order == 1:
            return (first,)
        second = -ratio * (m + ratio)
        if order == 2:
            return first, second
        return first, second, first * ((m + ratio) * (m + 2.0 * ratio) - 1.0)

    def log_base_of(self, y: Array) -> Array:
        return np.zeros_like(y)

    def mean(self, at: Sequence[Array], row: Row) -> Array:
        return np.exp(log_normal_tail(at[0])[0])

    def draw(self, rng: np.random.Generator, at: Sequence[Array], row: Row) -> Array:
        return (rng.standard_normal(at[0].shape) < at[0]).astype(np.float64)

    def check_target(self, y: Array, lowest: float) -> tuple[NDArray[np.bool_], str]:
        return check_labels(y, lowest)

    @property
    def stan(self) -> str | None:
        return "std_normal_lcdf((2 * y[i] - 1) * eta[i])"

    def in_arrays(self, xp: Any, eta: Any, row: Row) -> Any:
        return xp.log_ndtr(signs(row["y"]) * eta)


def probit_kernel(eta: Array, y: Array, p0: float, p1: float, t: Array, _: Array) -> None:
    """f = log Φ(m), m = yη; far below zero −m²/2 − log(−m√(2π)) + log(1 − 1/m² + 3/m⁴ − …)."""
    for i in range(eta.size):
        m = y[i] * eta[i]
        if m < FAR:
            q = 1.0 / (m * m)
            series = 1.0 - q * (1.0 - q * (3.0 - q * (15.0 - q * 105.0)))
            eta[i] = -0.5 * m * m - LOG_ROOT_2PI - logarithm(-m) + logarithm(series)
        elif m < 1.0:
            eta[i] = logarithm(0.5 * erfc(-m / sqrt(2.0)))
        else:
            # log(1 − u) to the last digits, however small u is.
            u = 0.5 * erfc(m / sqrt(2.0))
            eta[i] = (
                logarithm(1.0 - u)
                if u > 1e-3
                else -u * (1.0 + u * (0.5 + u * (1.0 / 3.0 + u * (0.25 + u * (0.2 + u / 6.0)))))
            )


def probit_slope(eta: Array, y: Array, p0: float, p1: float, t: Array, _: Array) -> None:
    """ℓ' = y φ(m)/Φ(m)."""
    for i in range(eta.size):
        m = y[i] * eta[i]
        if m < FAR:
            q = 1.0 / (m * m)
            eta[i] = -y[i] * m / (1.0 - q * (1.0 - q * (3.0 - q * (15.0 - q * 105.0))))
        else:
            height = exponential(-0.5 * m * m - LOG_ROOT_2PI)
            eta[i] = y[i] * height / (0.5 * erfc(-m / sqrt(2.0)))
