"""Categorical regression: one of K categories without an order (softmax, multinomial logit)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corebayes.models.compiled.jit import Kernels
from corebayes.models.families.categories import CategoryRegression
from corebayes.models.families.family import Jet, Row
from corebayes.types import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class CategoricalRegression(CategoryRegression):
    """P(y = k) ∝ exp(η_k), η_k = xᵀβ_k, with η = 0 for the first category.

    ℓ = η_y − log(1 + Σ_k exp(η_k)). Every other category has coefficients of its own, x[k].
    """

    command_line = {"categorical": {}}  # noqa: RUF012
    also = ("multinomial",)
    stan_line = "categorical_logit_lpmf(y[i] | append_row(0, eta[i]'))"

    @property
    def linear(self) -> tuple[str, ...]:
        return self.called[1:] or ("",)

    @property
    def written(self) -> str:
        return "Categorical(softmax(η))"

    @property
    def jet_kernels(self) -> Kernels:
        return (categorical_jet,)

    def log_likelihood(self, at: Sequence[Array], row: Row) -> Array:
        codes, total, own = self.codes(row), np.zeros(1), np.zeros(1)
        for number, eta in enumerate(at, 1):
            total = np.logaddexp(total, eta)
            own = np.where(codes == number, eta, own)
        return own - total

    def jet(self, at: Sequence[Array], row: Row, order: int = 2) -> Jet:
        codes, value = self.codes(row), self.log_likelihood(at, row)
        shares = np.moveaxis(self.mean(at, row), -1, 0)[1:]
        first = tuple((codes == number) - share for number, share in enumerate(shares, 1))
        if order == 1:
            return Jet(value, first)
        second = tuple(
            tuple(share * other - share * (i == j) for j, other in enumerate(shares[: i + 1]))
            for i, share in enumerate(shares)
        )
        return Jet(value, first, second)

    def mean(self, at: Sequence[Array], row: Row) -> Array:
        """P(y = k), along a last axis."""
        etas = np.stack(np.broadcast_arrays(np.zeros(1), *at), axis=-1)
        odds = np.exp(etas - etas.max(axis=-1, keepdims=True))
        return odds / odds.sum(axis=-1, keepdims=True)

    def draw(self, rng: np.random.Generator, at: Sequence[Array], row: Row) -> Array:
        return self.drawn(rng, self.mean(at, row))

    def in_arrays(self, xp: Any, eta: Any, row: Row) -> Any:
        codes, total, own = self.codes(row), 0.0 * eta[0], 0.0 * eta[0]
        for number, one in enumerate(eta, 1):
            total = xp.logaddexp(total, one)
            own = own + (codes == number) * one
        return own - total


def categorical_jet(etas: Array, u: Array, row: Array, value: Array, first: Array) -> None:
    """ℓ = η_y − log(1 + Σ_k exp(η_k)), for codes y = 0, 1, …"""
    number = etas.shape[0]
    for i in range(value.size):
        own = int(row[0, i])
        top = 0.0
        for k in range(number):
            top = max(top, etas[k, i])
        total = math.exp(-top)
        for k in range(number):
            first[k, i] = math.exp(etas[k, i] - top)
            total += first[k, i]
        for k in range(number):
            first[k, i] = (1.0 if own == k + 1 else 0.0) - first[k, i] / total
        value[i] = (etas[own - 1, i] if own > 0 else 0.0) - top - math.log(total)
