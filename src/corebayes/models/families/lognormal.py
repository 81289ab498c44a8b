"""Log-normal regression: positive numbers whose logarithms are normal, censored or not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corebayes.models.compiled.jit import Kernels
from corebayes.models.compiled.special import log_phi, phi_ratio
from corebayes.models.families.family import Constant, Jet, Row
from corebayes.models.families.survival import SurvivalRegression, in_arrays_seen, seen, stan_event
from corebayes.models.priors.scale import HalfStudentT
from corebayes.models.special import LOG_ROOT_2PI, log_normal_tail
from corebayes.types import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class LogNormalRegression(SurvivalRegression):
    """log y ~ N(η, scale²). With z = (log y − η)/scale,  ℓ = −log scale − z²/2 where the event was
    seen and log Φ(−z) where the row is censored."""

    command_line = {"lognormal": {}}  # noqa: RUF012
    also = ("log-normal",)

    scale: float | None = None

    @property
    def learnable(self) -> tuple[Constant, ...]:
        return (Constant("scale", HalfStudentT(4.0, 2.0)),)

    @property
    def written(self) -> str:
        return "LogNormal(η, {scale})"

    @property
    def jet_kernels(self) -> Kernels:
        return (lognormal_jet,)

    def log_likelihood(self, at: Sequence[Array], row: Row) -> Array:
        eta, u = at
        z = (np.log(row["y"]) - eta) * np.exp(-u)
        value = -u - 0.5 * np.square(z)
        return np.where(seen(row) > 0.0, value, log_normal_tail(-z)[0]) if "event" in row else value

    def jet(self, at: Sequence[Array], row: Row, order: int = 2) -> Jet:
        eta, u = at
        inverse = np.exp(-u)
        z = (np.log(row["y"]) - eta) * inverse
        # g(z) and its derivatives, −u apart
        value, slope, bend, event = -0.5 * np.square(z), -z, -np.ones(1), np.ones(1)
        if "event" in row:
            event = row["event"]
            tail, hazard = log_normal_tail(-z)
            value = np.where(event > 0.0, value, tail)
            slope = np.where(event > 0.0, slope, -hazard)
            bend = np.where(event > 0.0, bend, hazard * (z - hazard))
        first = -inverse * slope, -z * slope - event
        second = (
            (np.square(inverse) * bend,),
            (inverse * (slope + z * bend), z * (slope + z * bend)),
        )
        return Jet(value - event * u, first, second)

    def row_base(self, row: Row) -> Array:
        return -seen(row) * (np.log(row["y"]) + LOG_ROOT_2PI)

    def mean(self, at: Sequence[Array], row: Row) -> Array:
        return np.exp(at[0] + 0.5 * np.exp(2.0 * at[1]))

    def draw(self, rng: np.random.Generator, at: Sequence[Array], row: Row) -> Array:
        eta, u = at
        return np.exp(np.clip(eta + np.exp(u) * rng.standard_normal(eta.shape), -700.0, 700.0))

    @property
    def stan(self) -> str | None:
        line = "lognormal_{}(y[i] | eta[i], scale)"
        return stan_event(self, line.format("lpdf"), line.format("lccdf"))

    def in_arrays(self, xp: Any, eta: Any, row: Row) -> Any:
        z = (xp.log(row["y"]) - eta) / self.scale
        return in_arrays_seen(xp, row, -xp.log(self.scale) - 0.5 * z**2, xp.log_ndtr(-z))


def lognormal_jet(etas: Array, u: Array, row: Array, value: Array, first: Array) -> None:
    """ℓ = −u − z²/2 where the event was seen and log Φ(−z) elsewhere, z = (log y − η) e^−u."""
    inverse = math.exp(-u[0])
    for i in range(value.size):
        z = (row[0, i] - etas[0, i]) * inverse
        if row[1, i] > 0.0:
            slope, value[i] = -z, -u[0] - 0.5 * z * z
        else:
            slope, value[i] = -phi_ratio(-z), log_phi(-z)
        first[0, i] = -inverse * slope
        first[1, i] = -z * slope - row[1, i]
