"""Exponential regression: waiting times at a constant rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corebayes.models.compiled.jit import Kernels
from corebayes.models.compiled.special import grown, growth
from corebayes.models.families.family import Jet, Row
from corebayes.models.families.survival import SurvivalRegression, in_arrays_seen, seen, stan_event
from corebayes.models.special import exponential
from corebayes.types import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class ExponentialRegression(SurvivalRegression):
    """Waiting times of mean e^η, at a constant rate: ℓ = −event·η − y e^−η."""

    command_line = {"exponential": {}}  # noqa: RUF012

    @property
    def jet_kernels(self) -> Kernels:
        return (exponential_jet,)

    def log_likelihood(self, at: Sequence[Array], row: Row) -> Array:
        return -seen(row) * at[0] - exponential(np.log(row["y"]) - at[0])[0]

    def jet(self, at: Sequence[Array], row: Row, order: int = 2) -> Jet:
        grown, slope, bend = exponential(np.log(row["y"]) - at[0])
        value = -seen(row) * at[0] - grown
        return Jet(value, (slope - seen(row),), ((-bend,),))

    def mean(self, at: Sequence[Array], row: Row) -> Array:
        return np.exp(at[0])

    def draw(self, rng: np.random.Generator, at: Sequence[Array], row: Row) -> Array:
        drawn = rng.standard_exponential(at[0].shape) * np.exp(at[0])
        return np.maximum(drawn, np.finfo(np.float64).tiny)

    @property
    def stan(self) -> str | None:
        rate = "exponential_{}(y[i] | exp(-eta[i]))"
        return stan_event(self, rate.format("lpdf"), rate.format("lccdf"))

    def in_arrays(self, xp: Any, eta: Any, row: Row) -> Any:
        grown = -row["y"] * xp.exp(-eta)
        return in_arrays_seen(xp, row, grown - eta, grown)


def exponential_jet(etas: Array, u: Array, row: Array, value: Array, first: Array) -> None:
    """ℓ = −event·η − e^t, t = log y − η."""
    for i in range(value.size):
        t, event = row[0, i] - etas[0, i], row[1, i]
        value[i] = -event * etas[0, i] - grown(t)
        first[0, i] = growth(t) - event
