"""Weibull regression: waiting times whose rate rises or falls with time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corebayes.models.compiled.jit import Kernels
from corebayes.models.compiled.special import grown, growth
from corebayes.models.families.family import Constant, Jet, Row
from corebayes.models.families.survival import SurvivalRegression, in_arrays_seen, seen, stan_event
from corebayes.models.priors.scale import HalfStudentT
from corebayes.models.special import exponential
from corebayes.types import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class WeibullRegression(SurvivalRegression):
    """P(T > t) = exp(−(t e^−η)^shape): an accelerated failure time.

    With k = shape and z = k (log y − η),  ℓ = event·(log k + z) − e^z. The hazard rises with time
    for k > 1; the log of the ratio of hazards of proportional-hazards models is −k β.
    """

    command_line = {"weibull": {}}  # noqa: RUF012

    shape: float | None = None

    @property
    def learnable(self) -> tuple[Constant, ...]:
        return (Constant("shape", HalfStudentT(4.0, 2.0)),)

    @property
    def jet_kernels(self) -> Kernels:
        return (weibull_jet,)

    def log_likelihood(self, at: Sequence[Array], row: Row) -> Array:
        eta, u = at
        z = np.exp(u) * (np.log(row["y"]) - eta)
        return seen(row) * (u + z) - exponential(z)[0]

    def jet(self, at: Sequence[Array], row: Row, order: int = 2) -> Jet:
        (eta, u), event = at, seen(row)
        k = np.exp(u)
        z = k * (np.log(row["y"]) - eta)
        grown, slope, bend = exponential(z)
        of_eta = k * (slope - event)
        value, first = event * (u + z) - grown, (of_eta, event * (1.0 + z) - z * slope)
        second = (
            (-np.square(k) * bend,),
            (of_eta + k * z * bend, z * (event - slope) - np.square(z) * bend),
        )
        return Jet(value, first, second)

    def row_base(self, row: Row) -> Array:
        return -seen(row) * np.log(row["y"])

    def mean(self, at: Sequence[Array], row: Row) -> Array:
        from scipy.special import gammaln

        # e^η Γ(1 + 1/k)
        logs = np.asarray(gammaln(1.0 + np.exp(-at[1])), dtype=np.float64)
        return np.exp(at[0] + logs)

    def draw(self, rng: np.random.Generator, at: Sequence[Array], row: Row) -> Array:
        eta, u = at
        logs = np.log(rng.standard_exponential(eta.shape))
        return np.exp(np.clip(eta + logs * np.exp(-u), -700.0, 700.0))

    @property
    def stan(self) -> str | None:
        line = "weibull_{}(y[i] | shape, exp(eta[i]))"
        return stan_event(self, line.format("lpdf"), line.format("lccdf"))

    def in_arrays(self, xp: Any, eta: Any, row: Row) -> Any:
        z = self.shape * (xp.log(row["y"]) - eta)
        return in_arrays_seen(xp, row, xp.log(self.shape) + z - xp.exp(z), -xp.exp(z))


def weibull_jet(etas: Array, u: Array, row: Array, value: Array, first: Array) -> None:
    """ℓ = event·(u + z) − e^z, z = e^u (log y − η)."""
    k = math.exp(u[0])
    for i in range(value.size):
        z, event = k * (row[0, i] - etas[0, i]), row[1, i]
        slope = growth(z)
        value[i] = event * (u[0] + z) - grown(z)
        first[0, i] = k * (slope - event)
        first[1, i] = event * (1.0 + z) - z * slope
