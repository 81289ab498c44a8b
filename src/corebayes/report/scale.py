"""From numbers to places on a drawing, and the round numbers to write beside an axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from corebayes.types import Array

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Tick(NamedTuple):
    """A number on an axis and how it is written."""

    value: float
    label: str


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Maps [low, high] to [start, stop] in pixels, evenly in the number or in its logarithm."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, values: Any) -> Array:
        values = np.asarray(values, dtype=np.float64)
        low, high = self.low, self.high
        if self.log:
            values, low, high = np.log10(values), np.log10(low), np.log10(high)
        return self.start + (values - low) * ((self.stop - self.start) / (high - low))

    def ticks(self, most: int = 5) -> list[Tick]:
        """At most `most` round numbers between low and high."""
        return self._log_ticks(most) if self.log else self._even_ticks(most)

    def _even_ticks(self, most: int) -> list[Tick]:
        raw = (self.high - self.low) / most
        power = 10.0 ** np.floor(np.log10(raw))
        step = next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= raw * (1 - 1e-12))
        first, last = np.ceil(self.low / step - 1e-9), np.floor(self.high / step + 1e-9)
        decimals = max(0, -int(np.floor(np.log10(step))))
        values: Array = step * np.arange(float(first), float(last) + 1.0)
        return [Tick(float(value), _number(float(value), decimals)) for value in values]

    def _log_ticks(self, most: int) -> list[Tick]:
        first = int(np.ceil(np.log10(self.low) - 1e-9))
        last = int(np.floor(np.log10(self.high) + 1e-9))
        if last - first < 1:
            # Less than a decade: 1, 2 and 5 times a power of ten.
            inside = [m * 10.0**p for p in range(first - 1, last + 1) for m in (1.0, 2.0, 5.0)]
            return [Tick(v, f"{v:g}") for v in inside if self.low <= v <= self.high][:most]
        step = -(-(last - first + 1) // most)
        return [Tick(10.0**p, _power(p)) for p in range(first, last + 1, step)]


def spanning(
    values: Any, *, start: float, stop: float, log: bool = False, margin: float = 0.05
) -> Scale:
    """A scale that shows all these numbers, with some room at both ends."""
    values = np.asarray(values, dtype=np.float64)
    low, high = float(values.min()), float(values.max())
    if log:
        room = max((np.log10(high) - np.log10(low)) * margin, 0.1)
        low, high = low / 10.0**room, high * 10.0**room
    else:
        room = (high - low) * margin or 0.5 * abs(low) or 0.5
        low, high = low - room, high + room
    return Scale(low=low, high=high, start=start, stop=stop, log=log)


def _number(value: float, decimals: int) -> str:
    if decimals > 4 or abs(value) >= 1e6:
        return f"{value:.3g}"
    # −0 is 0.
    return f"{value + 0.0:,.{decimals}f}".replace("-", "−")


def _power(power: int) -> str:
    """1, 10, 100, 1,000 and 0.1, 0.01, then 10⁴ and 10⁻³."""
    if -2 <= power <= 3:
        return f"{10.0**power:,g}"
    return "10" + str(power).translate(SUPERSCRIPTS)
