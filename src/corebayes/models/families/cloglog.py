"""Complementary log-log regression: labels of rare events in continuous time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, expm1, log
from typing import Any

import numpy as np

from corebayes.models.compiled.jit import Kernel
from corebayes.models.families.family import Row
from corebayes.models.families.labels import LabelRegression, share_of_ones
from corebayes.models.special import LAST_EXPONENT, exponential
from corebayes.types import Array

# log(1 − exp(−e^η)) = η to the last bit below this.
IS_ETA = -37.0


@dataclass(frozen=True, kw_only=True, eq=False)
class CloglogRegression(LabelRegression):
    """P(y = 1 | x) = 1 − exp(−e^η), η = xᵀθ: whether a Poisson count of rate e^η is positive.

    ℓ = −e^η for y = 0 and log(1 − exp(−e^η)) for y = 1.
    """

    command_line = {"cloglog": {}}  # noqa: RUF012
    stan_line = "(y[i] == 1 ? log1m_exp(-exp(eta[i])) : -exp(eta[i]))"

    @property
    def written(self) -> str:
        return "Bernoulli(1 - exp(-exp(η)))"

    @property
    def kernel(self) -> Kernel | None:
        return cloglog_kernel

    @property
    def slope_kernel(self) -> Kernel | None:
        return cloglog_slope

    def predictor_of_mean(self, mean: float, count: float) -> float:
        return float(np.log(-np.log1p(-share_of_ones(mean, count))))

    def log_density(self, eta: Array, y: Array, out: Array) -> Array:
        rate = exponential(eta)[0]
        # The rate of a zero need not be looked at.
        positive = np.where(eta < IS_ETA, eta, np.log(-np.expm1(-np.maximum(rate, np.exp(IS_ETA)))))
        out[...] = np.where(y > 0.0, positive, -rate)
        return out

    def derivatives(self, eta: Array, y: Array, order: int = 3) -> tuple[Array, ...]:
        rate, slope, bend = exponential(eta)
        with np.errstate(over="ignore"):
            # q = e/(exp(e) − 1), and q' = q (1 − e − q)
            q = np.where(rate > 0.0, rate / np.expm1(np.maximum(rate, 1e-300)), 1.0)
        gap = np.where(q > 0.0, 1.0 - rate - q, 0.0)
        one = y > 0.0
        first = np.where(one, q, -slope)
        if order == 1:
            return (first,)
        second = np.where(one, q * gap, -bend)
        if order == 2:
            return first, second
        with np.errstate(over="ignore", invalid="ignore"):
            third = np.where(q > 0.0, q * (gap * (gap - q) - rate), 0.0)
        return first, second, np.where(one, third, -bend * (slope == bend))

    def mean(self, at: Sequence[Array], row: Row) -> Array:
        return -np.expm1(-exponential(at[0])[0])

    def draw(self, rng: np.random.Generator, at: Sequence[Array], row: Row) -> Array:
        return (rng.standard_exponential(at[0].shape) < exponential(at[0])[0]).astype(np.float64)

    def in_arrays(self, xp: Any, eta: Any, row: Row) -> Any:
        rate = xp.exp(eta)
        return xp.where(row["y"] > 0.0, xp.log(-xp.expm1(-rate)), -rate)


def cloglog_kernel(eta: Array, y: Array, p0: float, p1: float, t: Array, _: Array) -> None:
    """f = log(1 − exp(−e^η)) for y = 1 and −e^η for y = −1, e^η as `exponential` has it."""
    for i in range(eta.size):
        kept = LAST_EXPONENT if eta[i] > LAST_EXPONENT else eta[i]
        more = eta[i] - kept
        rate = exp(kept) * (1.0 + more * (1.0 + 0.5 * more))
        if y[i] <= 0.0:
            eta[i] = -rate
        elif eta[i] >= IS_ETA:
            eta[i] = log(-expm1(-rate))


def cloglog_slope(eta: Array, y: Array, p0: float, p1: float, t: Array, _: Array) -> None:
    """ℓ' = e^η / (exp(e^η) − 1) for y = 1 and −e^η for y = −1."""
    for i in range(eta.size):
        kept = LAST_EXPONENT if eta[i] > LAST_EXPONENT else eta[i]
        more = eta[i] - kept
        if y[i] <= 0.0:
            eta[i] = -exp(kept) * (1.0 + more)
        else:
            rate = exp(kept)
            # Beyond 700 the quotient is zero, and its divisor no number.
            eta[i] = 0.0 if rate > 700.0 else rate / expm1(rate) if rate > 1e-300 else 1.0
