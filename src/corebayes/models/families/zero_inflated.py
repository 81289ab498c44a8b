"""Zero-inflated counts: some rows are zero whatever their rate."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebayes.models.compiled.jit import Kernels
from corebayes.models.compiled.special import log_sigmoid, log_sum, sigmoid
from corebayes.models.families.family import Column, Constant, Family, Jet, Row
from corebayes.models.families.negative_binomial import (
    NegativeBinomialRegression,
    negative_binomial_jet,
)
from corebayes.models.families.poisson import PoissonRegression, log_jet, not_counts
from corebayes.models.numbers import LEARNED
from corebayes.models.priors.scale import Beta
from corebayes.models.special import sigmoid_pair, softplus
from corebayes.types import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class ZeroCounts(Family):
    """Counts of a `base` family whose zeros have a share of their own."""

    mean_link = "log"
    log_concave = False

    exposure: Column | None = field(default=None, repr=False)

    @property
    @abstractmethod
    def base(self) -> Family:
        """The family of the counts; its predictors come first."""

    def compiled_row(self, row: Row) -> Array:
        return self.base.compiled_row(row)

    def check_target(self, y: Array, lowest: float) -> tuple[NDArray[np.bool_], str]:
        return not_counts(y), "counts must be 0, 1, 2, …"


@dataclass(frozen=True, kw_only=True, eq=False)
class NegativeBinomialZeros(ZeroCounts):
    """These counts are negative binomial, with the dispersion that is given or learned."""

    flags = {"dispersion": "dispersion"}  # noqa: RUF012

    dispersion: float = LEARNED

    @property
    def base(self) -> Family:
        base = NegativeBinomialRegression()
        # A number, a symbol or none yet: what a model checks when it is made has been checked.
        object.__setattr__(base, "dispersion", self.dispersion)
        return base


@dataclass(frozen=True, kw_only=True, eq=False)
class ZeroInflated(ZeroCounts):
    """y = 0 with probability π, and a count of the base family otherwise.

    With g the base family's log probability and v = log π/(1 − π),

        ℓ = g − log(1 + e^v) for y > 0,    log(e^v + e^g) − log(1 + e^v) for y = 0.
    """

    zero_inflation: float | None = None

    @property
    def learnable(self) -> tuple[Constant, ...]:
        return (*self.base.learnable, Constant("zero_inflation", Beta(2.0, 2.0), "logit"))

    def log_likelihood(self, at: Sequence[Array], row: Row) -> Array:
        g, v = self.base.log_likelihood(at[:-1], row), at[-1]
        return np.where(row["y"] > 0.0, g, np.logaddexp(v, g)) - softplus(v)

    def jet(self, at: Sequence[Array], row: Row, order: int = 2) -> Jet:
        base, v = self.base.jet(at[:-1], row, order), at[-1]
        sigma, rest = sigmoid_pair(v)
        zero = row["y"] == 0.0
        # How much of a zero is the base family's
        share = np.where(zero, sigmoid_pair(base.value - v)[0], 1.0)
        value = np.where(zero, np.logaddexp(v, base.value), base.value) - softplus(v)
        first = *(share * one for one in base.first), 1.0 - share - sigma
        if order == 1:
            return Jet(value, first)
        spread = share * (1.0 - share)
        second = tuple(
            tuple(
                share * base.second[i][j] + spread * base.first[i] * base.first[j]
                for j in range(i + 1)
            )
            for i in range(len(base.first))
        )
        last = *(-spread * one for one in base.first), spread - sigma * rest
        return Jet(value, first, (*second, last))

    def row_base(self, row: Row) -> Array:
        return self.base.row_base(row)

    def mean(self, at: Sequence[Array], row: Row) -> Array:
        return sigmoid_pair(at[-1])[1] * self.base.mean(at[:-1], row)

    def draw(self, rng: np.random.Generator, at: Sequence[Array], row: Row) -> Array:
        counts = self.base.draw(rng, at[:-1], row)
        return np.where(rng.uniform(size=counts.shape) < sigmoid_pair(at[-1])[0], 0.0, counts)

    @property
    def stan(self) -> str | None:
        line = self.base.stan
        whole = "bernoulli_lpmf({} | zero_inflation)"
        zero = f"log_sum_exp({whole.format(1)}, {whole.format(0)} + {line})"
        return f"(y[i] == 0 ? {zero} : {whole.format(0)} + {line})"

    def in_arrays(self, xp: Any, eta: Any, row: Row) -> Any:
        share: Any = self.zero_inflation
        g = xp.log1p(-share) + self.base.in_arrays(xp, eta, row)
        return xp.where(row["y"] > 0.0, g, xp.logaddexp(xp.log(share), g))


@dataclass(frozen=True, kw_only=True, eq=False)
class ZeroInflatedPoissonRegression(ZeroInflated):
    """Zeros with probability `zero_inflation`, Poisson counts of mean e^η otherwise."""

    command_line = {"zero-inflated-poisson": {}}  # noqa: RUF012
    also = ("zero_inflated_poisson",)

    @property
    def jet_kernels(self) -> Kernels:
        return (inflated_poisson_jet, log_jet, inflate)

    @property
    def base(self) -> Family:
        return PoissonRegression(link="log")


@dataclass(frozen=True, kw_only=True, eq=False)
class ZeroInflatedNegativeBinomialRegression(NegativeBinomialZeros, ZeroInflated):
    """Zeros with probability `zero_inflation`, counts of mean μ = e^η and variance
    μ + dispersion · μ² otherwise."""

    command_line = {"zero-inflated-negative-binomial": {}}  # noqa: RUF012
    also = (
        "zero_inflated_negativebinomial",
        "zero_inflated_negbinomial",
    )

    @property
    def jet_kernels(self) -> Kernels:
        return (inflated_negative_binomial_jet, negative_binomial_jet, inflate)


def inflate(u: Array, row: Array, value: Array, first: Array) -> None:
    """ℓ and its slopes from those of the base family, with v = log π/(1 − π) the last constant."""
    v, last = u[-1], first.shape[0] - 1
    sigma, whole = sigmoid(v), log_sigmoid(-v)
    for i in range(value.size):
        share, g = 1.0, value[i]
        if row[0, i] == 0.0:
            # How much of a zero is the base family's
            share = sigmoid(g - v)
            value[i] = log_sum(v, g) + whole
            for k in range(last):
                first[k, i] *= share
        else:
            value[i] = g + whole
        first[last, i] = 1.0 - share - sigma


def inflated_poisson_jet(etas: Array, u: Array, row: Array, value: Array, first: Array) -> None:
    log_jet(etas, u[:-1], row, value, first[:-1])
    inflate(u, row, value, first)


def inflated_negative_binomial_jet(
    etas: Array, u: Array, row: Array, value: Array, first: Array
) -> None:
    negative_binomial_jet(etas, u[:-1], row, value, first[:-1])
    inflate(u, row, value, first)
