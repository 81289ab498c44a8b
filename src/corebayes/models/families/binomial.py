"""Binomial regression: so many successes of so many trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebayes.models.compiled.jit import Kernels
from corebayes.models.compiled.special import log_sigmoid, sigmoid
from corebayes.models.families.family import BadEntries, Column, Family, Jet, Row
from corebayes.models.families.poisson import not_counts
from corebayes.models.special import sigmoid_pair, softplus
from corebayes.types import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class BinomialRegression(Family):
    """y successes of n trials, each with probability 1/(1 + e^−η): ℓ = yη − n log(1 + e^η).

    `trials` names the column of X with n (or gives its position); without it n = 1.
    """

    command_line = {"binomial": {}}  # noqa: RUF012
    of_labels = True
    mean_link = "logit"

    trials: Column | None = field(default=None, repr=False)

    @property
    def written(self) -> str:
        return "Binomial(trials, 1 / (1 + exp(-η)))"

    @property
    def jet_kernels(self) -> Kernels:
        return (binomial_jet,)

    def compiled_row(self, row: Row) -> Array:
        return np.stack(np.broadcast_arrays(row["y"], _trials(row)))

    def log_likelihood(self, at: Sequence[Array], row: Row) -> Array:
        return row["y"] * at[0] - _trials(row) * softplus(at[0])

    def jet(self, at: Sequence[Array], row: Row, order: int = 2) -> Jet:
        trials, (sigma, rest) = _trials(row), sigmoid_pair(at[0])
        bend = -trials * (sigma * rest)
        first = row["y"] * rest - (trials - row["y"]) * sigma
        return Jet(self.log_likelihood(at, row), (first,), ((bend,),))

    def row_base(self, row: Row) -> Array:
        from scipy.special import betaln

        # log of n over y
        failures = _trials(row) - row["y"]
        both = np.asarray(betaln(row["y"] + 1.0, failures + 1.0), dtype=np.float64)
        return -both - np.log1p(_trials(row))

    def level(self, row: Row) -> Array:
        # Rows without a trial have no share.
        return row["y"] / np.maximum(_trials(row), 1.0)

    def mean(self, at: Sequence[Array], row: Row) -> Array:
        return _trials(row) * sigmoid_pair(at[0])[0]

    def draw(self, rng: np.random.Generator, at: Sequence[Array], row: Row) -> Array:
        trials = np.broadcast_to(_trials(row), at[0].shape).astype(np.int64)
        return rng.binomial(trials, sigmoid_pair(at[0])[0]).astype(np.float64)

    def check_target(self, y: Array, lowest: float) -> tuple[NDArray[np.bool_], str]:
        if self.trials is None:
            return ~((y == 0.0) | (y == 1.0)), "without trials successes must be 0 or 1"
        return not_counts(y), "successes must be 0, 1, 2, …"

    def check_row(self, row: Row) -> list[BadEntries]:
        found = super().check_row(row)
        if "trials" in row:
            bad = not_counts(row["trials"]) | (row["trials"] < row["y"])
            found.append(("trials", bad, "trials must be whole numbers, no fewer than successes"))
        return found

    @property
    def stan(self) -> str | None:
        trials = "1" if self.trials is None else "trials[i]"
        return f"binomial_logit_lpmf(y[i] | {trials}, eta[i])"

    def in_arrays(self, xp: Any, eta: Any, row: Row) -> Any:
        return row["y"] * eta - _trials(row) * xp.softplus(eta)


def _trials(row: Row) -> Array:
    return row["trials"] if "trials" in row else np.ones(1)


def binomial_jet(etas: Array, u: Array, row: Array, value: Array, first: Array) -> None:
    """ℓ = yη − n log(1 + e^η)."""
    for i in range(value.size):
        y, trials, eta = row[0, i], row[1, i], etas[0, i]
        value[i] = y * eta + trials * log_sigmoid(-eta)
        first[0, i] = y - trials * sigmoid(eta)
