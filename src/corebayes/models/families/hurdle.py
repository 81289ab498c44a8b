"""Hurdle counts: whether there is anything, and then how much."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corebayes.models.compiled.jit import Kernels
from corebayes.models.compiled.special import log_sigmoid, sigmoid
from corebayes.models.families.family import Constant, Family, Jet, Row
from corebayes.models.families.negative_binomial import negative_binomial_jet
from corebayes.models.families.poisson import PoissonRegression, log_jet
from corebayes.models.families.zero_inflated import NegativeBinomialZeros, ZeroCounts
from corebayes.models.priors.scale import Beta
from corebayes.models.special import sigmoid_pair, softplus
from corebayes.types import Array

# Zeros are drawn again so often; where the rate is so small that some are left, a count is 1.
MOST_TRIES = 1000


@dataclass(frozen=True, kw_only=True, eq=False)
class Hurdle(ZeroCounts):
    """y = 0 with probability π, and a count of the base family that is not zero otherwise.

    With g the base family's log probability, g_0 that of zero and v = log π/(1 − π),

        ℓ = v − log(1 + e^v) for y = 0,    g − log(1 − e^{g_0}) − log(1 + e^v) for y > 0.
    """

    zero_probability: float | None = None

    @property
    def learnable(self) -> tuple[Constant, ...]:
        return (*self.base.learnable, Constant("zero_probability", Beta(2.0, 2.0), "logit"))

    def log_likelihood(self, at: Sequence[Array], row: Row) -> Array:
        g, v = self.base.log_likelihood(at[:-1], row), at[-1]
        zero = self.base.log_likelihood(at[:-1], _zeros(row))
        return np.where(row["y"] > 0.0, g - _log_not(zero), v) - softplus(v)

    def jet(self, at: Sequence[Array], row: Row, order: int = 2) -> Jet:
        base, none = (self.base.jet(at[:-1], one, order) for one in (row, _zeros(row)))
        v, some = at[-1], row["y"] > 0.0
        sigma, rest = sigmoid_pair(v)
        value = np.where(some, base.value - _log_not(none.value), v) - softplus(v)
        with np.errstate(over="ignore"):
            # The slope of −log(1 − e^{g_0}), and its own
            odds = 1.0 / np.expm1(np.maximum(-none.value, 1e-300))
        first = tuple(
            np.where(some, a + odds * b, 0.0) for a, b in zip(base.first, none.first, strict=True)
        )
        last = np.where(some, -sigma, rest)
        if order == 1:
            return Jet(value, (*first, last))
        bend = odds * (1.0 + odds)
        second = tuple(
            tuple(
                np.where(
                    some,
                    base.second[i][j]
                    + odds * none.second[i][j]
                    + bend * none.first[i] * none.first[j],
                    0.0,
                )
                for j in range(i + 1)
            )
            for i in range(len(first))
        )
        flat = *(np.zeros(1) for _ in first), -sigma * rest
        return Jet(value, (*first, last), (*second, flat))

    def row_base(self, row: Row) -> Array:
        return np.where(row["y"] > 0.0, self.base.row_base(row), 0.0)

    def mean(self, at: Sequence[Array], row: Row) -> Array:
        zero = self.base.log_likelihood(at[:-1], {**row, "y": np.zeros(1)})
        logs = np.log(self.base.mean(at[:-1], row)) - _log_not(zero)
        return sigmoid_pair(at[-1])[1] * np.exp(logs)

    def draw(self, rng: np.random.Generator, at: Sequence[Array], row: Row) -> Array:
        counts = self.base.draw(rng, at[:-1], row)
        for _ in range(MOST_TRIES):
            zero = counts == 0.0
            if not np.any(zero):
                break
            again = [np.broadcast_to(one, counts.shape)[zero] for one in at[:-1]]
            counts[zero] = self.base.draw(rng, again, row)
        counts = np.maximum(counts, 1.0)
        return np.where(rng.uniform(size=counts.shape) < sigmoid_pair(at[-1])[0], 0.0, counts)

    @property
    def stan(self) -> str | None:
        line = str(self.base.stan)
        zero = line.replace("y[i]", "0")
        more = f"bernoulli_lpmf(0 | zero_probability) + {line} - log1m_exp({zero})"
        return f"(y[i] == 0 ? bernoulli_lpmf(1 | zero_probability) : {more})"

    def in_arrays(self, xp: Any, eta: Any, row: Row) -> Any:
        share: Any = self.zero_probability
        y = row["y"]
        g = self.base.in_arrays(xp, eta, row)
        zero = self.base.in_arrays(xp, eta, {**row, "y": 0.0 * y})
        more = xp.log1p(-share) + g - xp.log(-xp.expm1(zero))
        return xp.where(y > 0.0, more, xp.log(share))


@dataclass(frozen=True, kw_only=True, eq=False)
class HurdlePoissonRegression(Hurdle):
    """Zeros with probability `zero_probability`, Poisson counts of rate e^η that are not zero
    otherwise."""

    command_line = {"hurdle-poisson": {}}  # noqa: RUF012
    also = ("hurdle_poisson",)

    @property
    def jet_kernels(self) -> Kernels:
        return (hurdle_poisson_jet, log_jet, leap)

    @property
    def base(self) -> Family:
        return PoissonRegression(link="log")


@dataclass(frozen=True, kw_only=True, eq=False)
class HurdleNegativeBinomialRegression(NegativeBinomialZeros, Hurdle):
    """Zeros with probability `zero_probability`, negative-binomial counts of mean e^η and this
    dispersion that are not zero otherwise."""

    command_line = {"hurdle-negative-binomial": {}}  # noqa: RUF012
    also = (
        "hurdle_negativebinomial",
        "hurdle_negbinomial",
    )

    @property
    def jet_kernels(self) -> Kernels:
        return (hurdle_negative_binomial_jet, negative_binomial_jet, leap)


def _zeros(row: Row) -> Row:
    return {**row, "y": np.zeros_like(row["y"])}


def _log_not(log_zero: Array) -> Array:
    """log(1 − e^{g_0})."""
    return np.log(np.maximum(-np.expm1(log_zero), 1e-300))


def leap(u: Array, row: Array, value: Array, first: Array, zero: Array, slopes: Array) -> None:
    """ℓ and its slopes from those of the base family, at the row's count and at zero."""
    v, last = u[-1], first.shape[0] - 1
    sigma, whole = sigmoid(v), log_sigmoid(-v)
    for i in range(value.size):
        if row[0, i] > 0.0:
            value[i] += whole - math.log(max(-math.expm1(zero[i]), 1e-300))
            odds = 1.0 / math.expm1(max(-zero[i], 1e-300))
            for k in range(last):
                first[k, i] += odds * slopes[k, i]
            first[last, i] = -sigma
        else:
            value[i] = v + whole
            for k in range(last):
                first[k, i] = 0.0
            first[last, i] = 1.0 - sigma


def hurdle_poisson_jet(etas: Array, u: Array, row: Array, value: Array, first: Array) -> None:
    zero, slopes = np.empty_like(value), np.empty_like(first)
    log_jet(etas, u[:-1], row, value, first[:-1])
    log_jet(etas, u[:-1], np.zeros_like(row), zero, slopes[:-1])
    leap(u, row, value, first, zero, slopes)


def hurdle_negative_binomial_jet(
    etas: Array, u: Array, row: Array, value: Array, first: Array
) -> None:
    zero, slopes = np.empty_like(value), np.empty_like(first)
    negative_binomial_jet(etas, u[:-1], row, value, first[:-1])
    negative_binomial_jet(etas, u[:-1], np.zeros_like(row), zero, slopes[:-1])
    leap(u, row, value, first, zero, slopes)
