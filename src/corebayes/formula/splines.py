"""Splines: B-splines, and natural cubic splines by their values at the knots."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from corebayes.formula.transforms import State, check_truth, check_whole, is_list
from corebayes.types import Array

MAX_KNOTS = 1000


@dataclass(frozen=True)
class BSpline:
    """B-splines between bounds; the state is the knots, the bounds repeated degree + 1 times."""

    df: Any = None
    knots: Any = None
    degree: Any = 3
    include_intercept: Any = False
    lower_bound: Any = None
    upper_bound: Any = None

    def __post_init__(self) -> None:
        check_whole("degree", self.degree, 0, 10)
        check_truth("include_intercept", self.include_intercept)
        fewest = self.degree + self.include_intercept
        _check_spline(self, max(fewest, 1))

    def fit(self, x: Array) -> State:
        lower, upper = _bounds(self, x)
        inner = np.asarray(self.knots or (), dtype=float)
        if self.df is not None:
            number = self.df - self.degree - bool(self.include_intercept)
            inside = x[(x >= lower) & (x <= upper)]
            inner = np.quantile(inside, np.linspace(0, 1, number + 2)[1:-1])
        ends = np.full(self.degree + 1, 1.0)
        knots = np.concatenate([lower * ends, np.sort(inner), upper * ends])
        if (np.diff(knots) < 0.0).any():
            raise ValueError(f"knots must be between the bounds {lower:g} and {upper:g}")
        self._inside(x, knots)
        return tuple(knots.tolist())

    def accepts(self, state: State) -> bool:
        ends, fewest = self.degree + 1, 2 * self.degree + 2
        return (
            fewest <= len(state) <= fewest + MAX_KNOTS
            and bool((np.diff(state) >= 0.0).all())
            and len({*state[:ends]}) == len({*state[-ends:]}) == 1
            and state[0] < state[-1]
        )

    def labels(self, state: State) -> Iterable[int]:
        return range(not self.include_intercept, len(state) - self.degree - 1)

    def apply(self, x: Array, state: State) -> Array:
        from scipy.interpolate import BSpline as Spline

        knots = np.asarray(state)
        self._inside(x, knots)
        basis: Any = Spline.design_matrix(x, knots, self.degree)
        return basis.toarray()[:, int(not self.include_intercept) :]

    def _inside(self, x: Array, knots: Array) -> None:
        outside = np.flatnonzero(~((x >= knots[0]) & (x <= knots[-1])))
        if outside.size:
            raise ValueError(
                f"{x[outside[0]]:g} in row {outside[0]} is outside of the bounds {knots[0]:g} and "
                f"{knots[-1]:g} of the spline: give lower_bound= and upper_bound="
            )


@dataclass(frozen=True)
class NaturalSpline:
    """Natural cubic splines by their values at the knots, straight lines beyond the bounds.

    The state is the knots, then (constraints="center") the means of the columns, whose sum with
    the coefficients is made zero.
    """

    df: Any = None
    knots: Any = None
    lower_bound: Any = None
    upper_bound: Any = None
    constraints: Any = None

    def __post_init__(self) -> None:
        if self.constraints not in (None, "center"):
            raise ValueError(f'constraints must be "center", got {self.constraints!r}')
        if self.df is None and self.knots is None:
            raise ValueError("give df= (how many columns) or knots=")
        _check_spline(self, 1 if self.constraints else 2)

    def fit(self, x: Array) -> State:
        lower, upper = _bounds(self, x)
        inner = np.unique(np.asarray(self.knots or (), dtype=float))
        if self.df is not None:
            number = self.df - 2 + bool(self.constraints)
            inside = np.unique(x[(x >= lower) & (x <= upper)])
            inner = np.quantile(inside, np.linspace(0, 1, number + 2)[1:-1])
        knots = np.array([lower, *inner, upper])
        if (np.diff(knots) <= 0.0).any():
            raise ValueError("knots must differ and be between the bounds: use a smaller df")
        means = self._basis(x, knots).mean(axis=0) if self.constraints else ()
        return (*knots.tolist(), *map(float, means))

    def accepts(self, state: State) -> bool:
        number = len(state) // 2 if self.constraints else len(state)
        return (
            2 <= number <= MAX_KNOTS + 2
            and len(state) == number * (2 if self.constraints else 1)
            and bool((np.diff(state[:number]) > 0.0).all())
        )

    def labels(self, state: State) -> Iterable[int]:
        return range(1, len(state) // 2 if self.constraints else len(state) + 1)

    def apply(self, x: Array, state: State) -> Array:
        if not self.constraints:
            return self._basis(x, np.asarray(state))
        number = len(state) // 2
        q = np.linalg.qr(np.asarray(state[number:])[:, np.newaxis], mode="complete")[0]
        return self._basis(x, np.asarray(state[:number])) @ q[:, 1:]

    @staticmethod
    def _basis(x: Array, knots: Array) -> Array:
        from scipy.interpolate import CubicSpline

        spline: Any = CubicSpline(knots, np.eye(knots.size), bc_type="natural")
        inside = np.clip(x, knots[0], knots[-1])
        return spline(inside) + (x - inside)[:, np.newaxis] * spline(inside, 1)


def _check_spline(spline: BSpline | NaturalSpline, fewest: int) -> None:
    if spline.df is not None and spline.knots is not None:
        raise ValueError("give df or knots, not both")
    if spline.df is not None:
        check_whole("df", spline.df, fewest, MAX_KNOTS)
    if spline.knots is not None:
        listed = is_list(spline.knots) and len(spline.knots) <= MAX_KNOTS
        if not listed or not all(map(_is_number, spline.knots)):
            raise ValueError(f"knots must be a list of at most {MAX_KNOTS:,} numbers")
    for bound in (spline.lower_bound, spline.upper_bound):
        if bound is not None and not _is_number(bound):
            raise ValueError(f"a bound must be a number, got {str(bound)[:60]!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _bounds(spline: BSpline | NaturalSpline, x: Array) -> tuple[float, float]:
    lower = float(x.min() if spline.lower_bound is None else spline.lower_bound)
    upper = float(x.max() if spline.upper_bound is None else spline.upper_bound)
    if not lower < upper:
        raise ValueError(f"a spline needs more than one value, got {lower:g} to {upper:g}")
    return lower, upper
