"""Probit regression: labels by the normal distribution function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corebayes.models.compiled.jit import Kernel
from corebayes.models.compiled.special import log_phi, phi_ratio
from corebayes.models.families.family import Row
from corebayes.models.families.labels import LabelRegression, share_of_ones, signs
from corebayes.models.special import log_normal_tail
from corebayes.types import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class ProbitRegression(LabelRegression):
    """P(y = 1 | x) = Φ(xᵀθ). With y = ±1 and m = yη,  ℓ = log Φ(m).

    Labels are 0 and 1, or −1 and 1, or bool.
    """

    command_line = {"probit": {}}  # noqa: RUF012
    stan_line = "std_normal_lcdf((2 * y[i] - 1) * eta[i])"

    @property
    def written(self) -> str:
        return "Bernoulli(Φ(η))"

    @property
    def kernel(self) -> Kernel | None:
        return probit_kernel

    @property
    def slope_kernel(self) -> Kernel | None:
        return probit_slope

    def predictor_of_mean(self, mean: float, count: float) -> float:
        from scipy.special import ndtri

        return float(ndtri(share_of_ones(mean, count)))

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

    def mean(self, at: Sequence[Array], row: Row) -> Array:
        return np.exp(log_normal_tail(at[0])[0])

    def draw(self, rng: np.random.Generator, at: Sequence[Array], row: Row) -> Array:
        return (rng.standard_normal(at[0].shape) < at[0]).astype(np.float64)

    def in_arrays(self, xp: Any, eta: Any, row: Row) -> Any:
        return xp.log_ndtr(signs(row["y"]) * eta)


def probit_kernel(eta: Array, y: Array, p0: float, p1: float, t: Array, _: Array) -> None:
    """f = log Φ(yη)."""
    for i in range(eta.size):
        eta[i] = log_phi(y[i] * eta[i])


def probit_slope(eta: Array, y: Array, p0: float, p1: float, t: Array, _: Array) -> None:
    """ℓ' = y φ(m)/Φ(m), m = yη."""
    for i in range(eta.size):
        eta[i] = y[i] * phi_ratio(y[i] * eta[i])
