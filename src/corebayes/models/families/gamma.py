"""Gamma regression: positive numbers whose spread grows with their mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebayes.models.compiled.jit import Kernels
from corebayes.models.compiled.special import digamma, grown, growth
from corebayes.models.families.family import Constant, Family, Jet, Row
from corebayes.models.priors.scale import HalfStudentT
from corebayes.models.special import exponential
from corebayes.types import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class GammaRegression(Family):
    """y > 0 of mean e^η and variance e^{2η}/shape.

    With a = shape and t = log y − η,  ℓ = a (log a + t − e^t) − log Γ(a).
    """

    command_line = {"gamma": {}}  # noqa: RUF012
    mean_link = "log"
    also = ("Gamma",)
    measured = True
    stan_line = "gamma_lpdf(y[i] | shape, shape * exp(-eta[i]))"

    shape: float | None = None

    @property
    def learnable(self) -> tuple[Constant, ...]:
        return (Constant("shape", HalfStudentT(1.0, 5.0)),)

    @property
    def jet_kernels(self) -> Kernels:
        return (gamma_jet,)

    def compiled_row(self, row: Row) -> Array:
        return np.log(row["y"])[None]

    def log_likelihood(self, at: Sequence[Array], row: Row) -> Array:
        from scipy.special import gammaln

        u, t = at[1], np.log(row["y"]) - at[0]
        a = np.exp(u)
        return a * (u + t - exponential(t)[0]) - np.asarray(gammaln(a), dtype=np.float64)

    def jet(self, at: Sequence[Array], row: Row, order: int = 2) -> Jet:
        from scipy.special import digamma, polygamma

        u, t = at[1], np.log(row["y"]) - at[0]
        a, (grown, slope, bend) = np.exp(u), exponential(t)
        of_eta = a * (slope - 1.0)
        of_u = a * (u + t - grown + 1.0 - digamma(a))
        value, first = self.log_likelihood(at, row), (of_eta, of_u)
        if order == 1:
            return Jet(value, first)
        second = (-a * bend,), (of_eta, of_u + a - np.square(a) * polygamma(1, a))
        return Jet(value, first, second)

    def row_base(self, row: Row) -> Array:
        return -np.log(row["y"])

    def mean(self, at: Sequence[Array], row: Row) -> Array:
        return np.exp(at[0])

    def draw(self, rng: np.random.Generator, at: Sequence[Array], row: Row) -> Array:
        eta, u = at
        drawn = rng.standard_gamma(np.broadcast_to(np.exp(u), eta.shape)) * np.exp(eta - u)
        # A small shape draws numbers that are closer to zero than any float.
        return np.maximum(drawn, np.finfo(np.float64).tiny)

    def check_target(self, y: Array, lowest: float) -> tuple[NDArray[np.bool_], str]:
        return ~((y > 0.0) & np.isfinite(y)), (
            "targets must be positive numbers; model zeros apart, or with another family"
        )

    def in_arrays(self, xp: Any, eta: Any, row: Row) -> Any:
        a, t = self.shape, xp.log(row["y"]) - eta
        return a * (xp.log(a) + t - xp.exp(t)) - xp.gammaln(a)


def gamma_jet(etas: Array, u: Array, row: Array, value: Array, first: Array) -> None:
    """ℓ = a (log a + t − e^t) − log Γ(a), a = e^u and t = log y − η."""
    a = math.exp(u[0])
    height, slope = math.lgamma(a), digamma(a)
    for i in range(value.size):
        t = row[0, i] - etas[0, i]
        more = u[0] + t - grown(t)
        value[i] = a * more - height
        first[0, i] = a * (growth(t) - 1.0)
        first[1, i] = a * (more + 1.0 - slope)
