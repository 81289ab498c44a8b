"""Beta regression: shares between 0 and 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebayes.models.compiled.jit import Kernels
from corebayes.models.compiled.special import digamma, sigmoid
from corebayes.models.families.family import Constant, Family, Jet, Row
from corebayes.models.priors.scale import HalfStudentT
from corebayes.models.special import sigmoid_pair
from corebayes.types import Array

SMALLEST = 1e-15


@dataclass(frozen=True, kw_only=True, eq=False)
class BetaRegression(Family):
    """0 < y < 1 of mean μ = 1/(1 + e^−η) and variance μ(1 − μ)/(1 + precision).

    With φ = precision, a = μφ and b = (1 − μ)φ,

        ℓ = log Γ(φ) − log Γ(a) − log Γ(b) + a log y + b log(1 − y).
    """

    command_line = {"beta": {}}  # noqa: RUF012
    mean_link = "logit"
    log_concave = False
    measured = True
    stan_line = "beta_proportion_lpdf(y[i] | inv_logit(eta[i]), precision)"

    precision: float | None = None

    @property
    def learnable(self) -> tuple[Constant, ...]:
        return (Constant("precision", HalfStudentT(1.0, 5.0)),)

    @property
    def jet_kernels(self) -> Kernels:
        return (beta_jet,)

    def compiled_row(self, row: Row) -> Array:
        return np.stack([np.log(row["y"]), np.log1p(-row["y"])])

    def log_likelihood(self, at: Sequence[Array], row: Row) -> Array:
        from scipy.special import betaln

        _, a, b, _ = _shapes(at)
        height = a * np.log(row["y"]) + b * np.log1p(-row["y"])
        return height - np.asarray(betaln(a, b), dtype=np.float64)

    def jet(self, at: Sequence[Array], row: Row, order: int = 2) -> Jet:
        from scipy.special import digamma, polygamma

        phi, a, b, lean = _shapes(at)
        first_gap, second_gap = np.log(row["y"]) - digamma(a), np.log1p(-row["y"]) - digamma(b)
        # ∂a/∂η = −∂b/∂η = μ(1 − μ)φ
        turn = a * b / phi
        of_eta = turn * (first_gap - second_gap)
        of_u = phi * digamma(phi) + a * first_gap + b * second_gap
        value, first = self.log_likelihood(at, row), (of_eta, of_u)
        if order == 1:
            return Jet(value, first)
        bend_a, bend_b = polygamma(1, a), polygamma(1, b)
        second = (
            (lean * of_eta - np.square(turn) * (bend_a + bend_b),),
            (
                of_eta - turn * (a * bend_a - b * bend_b),
                of_u + phi**2 * polygamma(1, phi) - a**2 * bend_a - b**2 * bend_b,
            ),
        )
        return Jet(value, first, second)

    def row_base(self, row: Row) -> Array:
        return -np.log(row["y"]) - np.log1p(-row["y"])

    def mean(self, at: Sequence[Array], row: Row) -> Array:
        return sigmoid_pair(at[0])[0]

    def draw(self, rng: np.random.Generator, at: Sequence[Array], row: Row) -> Array:
        _, a, b, _ = _shapes(at)
        drawn = rng.beta(np.maximum(a, SMALLEST), np.maximum(b, SMALLEST))
        # Small shapes draw numbers that are 0 or 1 to the last digit.
        return np.clip(drawn, np.finfo(np.float64).tiny, 1.0 - np.finfo(np.float64).epsneg)

    def check_target(self, y: Array, lowest: float) -> tuple[NDArray[np.bool_], str]:
        return ~((y > 0.0) & (y < 1.0)), (
            "targets must be between 0 and 1, not 0 or 1 themselves; move these inwards, as "
            "(y (N − 1) + ½)/N does"
        )

    def in_arrays(self, xp: Any, eta: Any, row: Row) -> Any:
        phi = self.precision
        a, b = phi * xp.expit(eta), phi * xp.expit(-eta)
        height = xp.gammaln(phi) - xp.gammaln(a) - xp.gammaln(b)
        return height + a * xp.log(row["y"]) + b * xp.log1p(-row["y"])


def _shapes(at: Sequence[Array]) -> tuple[Array, Array, Array, Array]:
    """φ, a, b and 1 − 2μ."""
    eta, u = at
    mean, rest = sigmoid_pair(eta)
    phi = np.exp(u)
    # Digamma has no value at zero.
    a, b = np.maximum(mean * phi, 1e-300), np.maximum(rest * phi, 1e-300)
    return phi, a, b, rest - mean


def beta_jet(etas: Array, u: Array, row: Array, value: Array, first: Array) -> None:
    """ℓ = log Γ(φ) − log Γ(a) − log Γ(b) + a log y + b log(1 − y), φ = e^u."""
    phi = math.exp(u[0])
    height, slope = math.lgamma(phi), phi * digamma(phi)
    for i in range(value.size):
        a = max(phi * sigmoid(etas[0, i]), 1e-300)
        b = max(phi * sigmoid(-etas[0, i]), 1e-300)
        gap, other = row[0, i] - digamma(a), row[1, i] - digamma(b)
        value[i] = height - math.lgamma(a) - math.lgamma(b) + a * row[0, i] + b * row[1, i]
        first[0, i] = a * b / phi * (gap - other)
        first[1, i] = slope + a * gap + b * other
