"""Ordinal regression: categories in an order, cut from a line (McCullagh 1980)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from corebayes.models.compiled.jit import Kernels
from corebayes.models.compiled.special import log_phi, log_sigmoid, phi_ratio, sigmoid
from corebayes.models.families.categories import CategoryRegression
from corebayes.models.families.family import Constant, Jet, Row
from corebayes.models.priors.scale import HalfNormal, OnLine
from corebayes.models.special import LOG_ROOT_2PI, log_normal_tail, sigmoid_pair, softplus
from corebayes.models.variables import Variable
from corebayes.types import Array

# Cutpoints of the first and the last category are as good as infinite here.
FAR = 1e4


@dataclass(frozen=True, kw_only=True, eq=False)
class OrdinalRegression(CategoryRegression):
    """P(y ≤ k) = F(c_k − η), F the logistic or the normal distribution function (`link`).

    ℓ = log(F(c_y − η) − F(c_{y−1} − η)). The cutpoints c_1 < c_2 < … are learned as the first one
    and the logarithms of the gaps between them, so the columns have no intercept.
    """

    command_line = {"ordinal": {}, "ordinal-probit": {"link": "probit"}}  # noqa: RUF012
    also = ("cumulative",)
    has_cutpoints = True

    link: Literal["logit", "probit"] = "logit"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.link not in ("logit", "probit"):
            raise ValueError(f"link must be 'logit' or 'probit', got {self.link!r}")
        if self.intercept:
            raise ValueError("the cutpoints are the intercepts: leave out intercept=True")

    @property
    def learnable(self) -> tuple[Constant, ...]:
        gaps = range(2, len(self.labels))
        first = Constant("cutpoint_1", OnLine(0.0, 5.0), "identity")
        return (first, *(Constant(f"gap_{k}", HalfNormal(2.5)) for k in gaps))

    def may_learn(self, name: str) -> bool:
        return not self.labels and name.removeprefix("gap_").isdigit()

    def shown(self, learned: Sequence[Constant], start: int) -> list[Variable]:
        if len(learned) < len(self.learnable):
            return super().shown(learned, start)
        places = np.arange(start, start + len(learned))
        return [Variable("cutpoints", places, "ordered", ("cutpoint",))]

    def shown_axes(self) -> dict[str, tuple[Any, ...]]:
        return {"cutpoint": tuple(f"{low}|{high}" for low, high in pairwise(self.called))}

    @property
    def jet_kernels(self) -> Kernels:
        if self.link == "logit":
            return ordinal_jet, cutpoints, pulled_ends
        return ordinal_probit_jet, cutpoints, pulled_ends

    def log_likelihood(self, at: Sequence[Array], row: Row) -> Array:
        low, high, _ = self._ends(at, row)
        return _between(self.link, low, high, 0).value

    def jet(self, at: Sequence[Array], row: Row, order: int = 2) -> Jet:
        low, high, (turn_low, turn_high) = self._ends(at, row)
        ends = _between(self.link, low, high, order)
        # ∂/∂η of both ends is −1, ∂/∂u of an end is `turn`, and again for the logarithms of gaps
        lows, highs = [-np.ones(1), *turn_low], [-np.ones(1), *turn_high]
        first = tuple(ends.low * a + ends.high * b for a, b in zip(lows, highs, strict=True))
        if order == 1:
            return Jet(ends.value, first)
        second = tuple(
            tuple(
                ends.low_low * lows[i] * lows[j]
                + ends.high_high * highs[i] * highs[j]
                + ends.both * (lows[i] * highs[j] + highs[i] * lows[j])
                + (first[i] if i == j and i > 1 else 0.0)
                for j in range(i + 1)
            )
            for i in range(len(at))
        )
        return Jet(ends.value, first, second)

    def _ends(
        self, at: Sequence[Array], row: Row
    ) -> tuple[Array, Array, tuple[Sequence[Any], Sequence[Any]]]:
        """c_{y−1} − η, c_y − η, and the derivatives of both in the constants."""
        eta, first, *logs = at
        codes, last = self.codes(row), len(self.labels) - 1
        steps = [np.ones(1), *(np.exp(u) for u in logs)]
        cut, low, high = first, np.full(1, -FAR), np.full(1, FAR)
        for k, step in enumerate(steps):
            cut = first if k == 0 else cut + step
            high, low = np.where(codes == k, cut, high), np.where(codes == k + 1, cut, low)
        # A cutpoint moves with the steps up to it; the outer ends do not move.
        turn_low = [(codes > k) * step for k, step in enumerate(steps)]
        turn_high = [(codes >= k) * (codes < last) * step for k, step in enumerate(steps)]
        low, high = np.where(codes > 0, low - eta, -FAR), np.where(codes < last, high - eta, FAR)
        return low, high, (turn_low, turn_high)

    def mean(self, at: Sequence[Array], row: Row) -> Array:
        """P(y = k), along a last axis."""
        every = [self.log_likelihood(at, {"y": np.full(1, label)}) for label in self.labels]
        return np.exp(np.stack(np.broadcast_arrays(*every), axis=-1))

    def draw(self, rng: np.random.Generator, at: Sequence[Array], row: Row) -> Array:
        return self.drawn(rng, self.mean(at, row))

    @property
    def stan(self) -> str | None:
        kind = "ordered_logistic" if self.link == "logit" else "ordered_probit"
        return f"{kind}_lpmf(y[i] | eta[i], cutpoints)"

    @property
    def stan_transformed(self) -> list[str]:
        gaps = ", ".join(one.name for one in self.learnable)
        return [f"ordered[{len(self.labels) - 1}] cutpoints = cumulative_sum([{gaps}]');"]

    def in_arrays(self, xp: Any, eta: Any, row: Row) -> Any:
        codes, cuts = self.codes(row), [getattr(self, "cutpoint_1")]  # noqa: B009
        for one in self.learnable[1:]:
            cuts.append(cuts[-1] + getattr(self, one.name))
        low, high = 0.0 * eta - FAR, 0.0 * eta + FAR
        for k, cut in enumerate(cuts):
            high = xp.where(codes == k, cut - eta, high)
            low = xp.where(codes == k + 1, cut - eta, low)
        if self.link == "logit":
            gap = xp.log(-xp.expm1(low - high))
            return gap - xp.softplus(-high) - xp.softplus(low)
        # Both ends on the side where the tail is small
        up = low + high > 0.0
        near, far = xp.where(up, -low, high), xp.where(up, -high, low)
        top = xp.log_ndtr(near)
        return top + xp.log1p(-xp.exp(xp.log_ndtr(far) - top))


class LogInterval(NamedTuple):
    """log(F(high) − F(low)) and its derivatives in both ends."""

    value: Array
    low: Array
    high: Array
    low_low: Array
    high_high: Array
    both: Array


def _between(link: str, low: Array, high: Array, order: int) -> LogInterval:
    if link == "logit":
        # F(b) − F(a) = F(b) F(−a) (1 − e^{a − b})
        gap = high - low
        value = np.log(-np.expm1(-gap)) - softplus(-high) - softplus(low)
        if order == 0:
            return LogInterval(value, value, value, value, value, value)
        low_f, low_rest = sigmoid_pair(low)
        high_f, high_rest = sigmoid_pair(high)
        with np.errstate(over="ignore"):
            odds = 1.0 / np.expm1(gap)
        bend = odds * (1.0 + odds)
        return LogInterval(
            value,
            -low_f - odds,
            high_rest + odds,
            -low_f * low_rest - bend,
            -high_f * high_rest - bend,
            bend,
        )
    # Both ends on the side where the tail is small: Φ(b) − Φ(a) = Φ(−a) − Φ(−b)
    up = low + high > 0.0
    top = log_normal_tail(np.where(up, -low, high))[0]
    rest = log_normal_tail(np.where(up, -high, low))[0]
    value = top + np.log1p(-np.exp(rest - top))
    low_share = -np.exp(-0.5 * np.square(low) - LOG_ROOT_2PI - value)
    high_share = np.exp(-0.5 * np.square(high) - LOG_ROOT_2PI - value)
    return LogInterval(
        value,
        low_share,
        high_share,
        -low_share * (low + low_share),
        -high_share * (high + high_share),
        -low_share * high_share,
    )


def cutpoints(u: Array) -> Array:
    """c_1, c_2, …"""
    cuts = np.empty(u.size)
    cuts[0] = u[0]
    for k in range(1, u.size):
        cuts[k] = cuts[k - 1] + math.exp(u[k])
    return cuts


def pulled_ends(low: float, high: float, code: int, u: Array, first: Array, i: int) -> None:
    """Slopes in η and in the constants, from those in both ends of row i."""
    first[0, i] = -low - high
    for k in range(u.size):
        step = 1.0 if k == 0 else math.exp(u[k])
        first[1 + k, i] = ((low if code > k else 0.0) + (high if code >= k else 0.0)) * step


def ordinal_jet(etas: Array, u: Array, row: Array, value: Array, first: Array) -> None:
    """ℓ = log(F(b) − F(a)) = log F(b) F(−a) (1 − e^{a − b}), ends a and b of category `code`."""
    cuts = cutpoints(u)
    for i in range(value.size):
        code = int(row[0, i])
        low, high, total = 0.0, 0.0, 0.0
        if code > 0:
            a = cuts[code - 1] - etas[0, i]
            total += log_sigmoid(-a)
            low = -sigmoid(a)
        if code < u.size:
            b = cuts[code] - etas[0, i]
            total += log_sigmoid(b)
            high = sigmoid(-b)
        if 0 < code < u.size:
            gap = math.exp(u[code])
            total += math.log(-math.expm1(-gap))
            odds = 1.0 / math.expm1(gap)
            low -= odds
            high += odds
        value[i] = total
        pulled_ends(low, high, code, u, first, i)


def ordinal_probit_jet(etas: Array, u: Array, row: Array, value: Array, first: Array) -> None:
    """ℓ = log(Φ(b) − Φ(a)), both ends on the side where the tail is small."""
    cuts = cutpoints(u)
    for i in range(value.size):
        code = int(row[0, i])
        low, high = 0.0, 0.0
        if code == 0:
            b = cuts[0] - etas[0, i]
            value[i], high = log_phi(b), phi_ratio(b)
        elif code == u.size:
            a = cuts[code - 1] - etas[0, i]
            value[i], low = log_phi(-a), -phi_ratio(-a)
        else:
            a, b = cuts[code - 1] - etas[0, i], cuts[code] - etas[0, i]
            near, far = (-a, -b) if a + b > 0.0 else (b, a)
            top = log_phi(near)
            value[i] = top + math.log1p(-math.exp(log_phi(far) - top))
            low = -math.exp(-0.5 * a * a - LOG_ROOT_2PI - value[i])
            high = math.exp(-0.5 * b * b - LOG_ROOT_2PI - value[i])
        pulled_ends(low, high, code, u, first, i)
