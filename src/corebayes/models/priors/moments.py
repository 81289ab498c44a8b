"""Means, spreads and ranges of the columns and of the target, for priors on the scale of the data.

Blocks of rows are joined as Chan, Golub and LeVeque (1979) do it, so that no digits are lost for
columns far from zero: with δ the difference of two means,

    n = n₁ + n₂,    mean = mean₁ + δ n₂/n,    squares = squares₁ + squares₂ + δ² n₁n₂/n.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corebayes.types import Array


class ColumnMoments(NamedTuple):
    """Of the columns of a design, and behind them of target and offset, (d + 2,) each."""

    count: float  # pyright: ignore[reportIncompatibleMethodOverride]
    """Σ c_n."""
    mean: Array
    squares: Array
    """Σ c_n (x_n − mean)²."""
    lowest: Array
    highest: Array

    @classmethod
    def of(cls, values: Array, counts: Array | None) -> ColumnMoments:
        """Of the columns (d + 2, n) of rows, which are overwritten. Cost: 3·n·d flops."""
        width, num_rows = values.shape
        if not num_rows:
            nothing = np.zeros(width)
            return cls(0.0, nothing, nothing, np.full(width, np.inf), np.full(width, -np.inf))
        count = float(num_rows if counts is None else counts.sum())
        lowest, highest = values.min(axis=1), values.max(axis=1)
        # A number too large to square says that there is no scale: see `deviations`.
        with np.errstate(over="ignore", invalid="ignore"):
            mean = values.mean(axis=1) if counts is None else values @ (counts / count)
            values -= mean[:, None]
            counted = values if counts is None else values * counts
            squares = np.vecdot(counted, values)
        # The mean of one value is that value, to the last digit.
        return cls(count, np.where(lowest == highest, lowest, mean), squares, lowest, highest)

    def plus(self, other: ColumnMoments) -> ColumnMoments:
        count = self.count + other.count
        if not self.count or not other.count:
            return self if self.count else other
        with np.errstate(over="ignore", invalid="ignore"):
            shift = other.mean - self.mean
            mean = self.mean + shift * (other.count / count)
            across = np.square(shift) * (self.count * other.count / count)
            squares = self.squares + other.squares + across
        return ColumnMoments(
            count,
            mean,
            squares,
            np.minimum(self.lowest, other.lowest),
            np.maximum(self.highest, other.highest),
        )

    @property
    def constant(self) -> Array:
        """Which columns have one value only."""
        return self.lowest == self.highest

    @property
    def deviations(self) -> Array:
        """Standard deviations; zero exactly where there is one value, half the range where squares
        are too large for a number."""
        with np.errstate(over="ignore", invalid="ignore"):
            deviations = np.sqrt(self.squares / max(self.count, 1e-300))
            half = 0.5 * self.highest - 0.5 * self.lowest
        usable = np.isfinite(deviations) & (deviations > 0.0)
        return np.where(self.constant, 0.0, np.where(usable, deviations, half))
