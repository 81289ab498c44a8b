"""Transforms: they look at all values first, and keep what they found as numbers, their state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from corebayes.types import Array

MAX_DEGREE = 100
State = tuple[float, ...]


class Transform(Protocol):
    """`labels` is None for a single column, which may be part of an expression."""

    def fit(self, x: Array) -> State: ...
    def accepts(self, state: State) -> bool: ...
    def labels(self, state: State) -> Iterable[int] | None: ...
    def apply(self, x: Array, state: State) -> Array: ...


@dataclass(frozen=True)
class Scale:
    """(x − mean) / sd; the state is (mean, sd)."""

    center: Any = True
    scale: Any = True
    ddof: Any = 1

    def __post_init__(self) -> None:
        check_truth("center", self.center)
        check_truth("scale", self.scale)
        check_whole("ddof", self.ddof, 0, 1)

    def fit(self, x: Array) -> State:
        mean = float(x.mean()) if self.center else 0.0
        if not self.scale:
            return mean, 1.0
        sd = float(np.sqrt(((x - mean) ** 2).sum() / max(x.size - self.ddof, 1)))
        if not sd > 0.0:
            raise ValueError("all values are the same, so they cannot be scaled")
        return mean, sd

    def accepts(self, state: State) -> bool:
        return len(state) == 2 and state[1] > 0.0

    def labels(self, state: State) -> None:
        return None

    def apply(self, x: Array, state: State) -> Array:
        return (x - state[0]) / state[1]


@dataclass(frozen=True)
class Poly:
    """Polynomials that are orthonormal over the rows looked at, or raw powers.

    P_k = (x − α_{k−1}) P_{k−1} − (‖P_{k−1}‖² / ‖P_{k−2}‖²) P_{k−2}; the state is all α, then ‖P‖².
    """

    degree: Any = 1
    raw: Any = False

    def __post_init__(self) -> None:
        check_whole("degree", self.degree, 1, MAX_DEGREE)
        check_truth("raw", self.raw)

    def fit(self, x: Array) -> State:
        if self.raw:
            return ()
        if np.unique(x).size <= self.degree:
            raise ValueError(f"a degree of {self.degree} needs more than {self.degree} values")
        alphas: list[float] = []
        norms = [float(x.size)]
        older, newer = np.zeros_like(x), np.ones_like(x)
        for k in range(self.degree):
            alphas.append(float((x * newer**2).sum() / norms[k]))
            older, newer = newer, self._next(x, k, alphas, norms, older, newer)
            norms.append(float((newer**2).sum()))
        return (*alphas, *norms)

    def accepts(self, state: State) -> bool:
        if self.raw:
            return not state
        return len(state) == 2 * self.degree + 1 and min(state[self.degree :]) > 0.0

    def labels(self, state: State) -> Iterable[int]:
        return range(self.degree) if self.raw else range(1, self.degree + 1)

    def apply(self, x: Array, state: State) -> Array:
        if self.raw:
            return np.stack([x**k for k in range(1, self.degree + 1)], axis=1)
        alphas, norms = state[: self.degree], state[self.degree :]
        basis = np.empty((x.size, self.degree))
        older, newer = np.zeros_like(x), np.ones_like(x)
        for k in range(self.degree):
            older, newer = newer, self._next(x, k, alphas, norms, older, newer)
            basis[:, k] = newer / np.sqrt(norms[k + 1])
        return basis

    @staticmethod
    def _next(x: Array, k: int, alphas: Any, norms: Any, older: Array, newer: Array) -> Array:
        product = (x - alphas[k]) * newer
        return product - norms[k] / norms[k - 1] * older if k else product


def is_list(value: Any) -> bool:
    """Whether an option was written as [a, b]."""
    return isinstance(value, tuple)


def check_truth(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {str(value)[:60]!r}")


def check_whole(name: str, value: Any, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(
            f"{name} must be a whole number from {least} to {most}, got {str(value)[:60]!r}"
        )
