"""Drawings as SVG text: scales from numbers to pixels, marks, axes, and words that describe them.

Colours are classes of the page's style sheet, so that one drawing serves light, dark and print.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from corebayes.report.html import escape
from corebayes.types import Array

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
EXPONENT = re.compile(r"(?<=\d)e([+-]\d+)")
NEGATIVE = re.compile(r"(?<![\w.)\]])-(?=\d)")
# Pixels of a character of a tick's label, and between two labels.
CHARACTER, GAP = 6.6, 8.0


def number(value: float, digits: int = 4) -> str:
    """As people write it: 29,960 and 0.0123; a power of ten only beyond four zeros."""
    if value == 0.0 or not math.isfinite(value):
        return f"{value + 0.0:g}"
    power = math.floor(math.log10(abs(value)))
    if not -4 <= power < 9:
        share, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{_shortest(share)}×10{str(int(exponent)).translate(SUPERSCRIPTS)}"
    return _shortest(f"{value:,.{max(digits - 1 - power, 0)}f}")


def with_powers(text: str) -> str:
    """Words with numbers in them: 2.5×10⁷ where they have 2.5e+07, and a minus before numbers."""
    text = NEGATIVE.sub("−", text)
    return EXPONENT.sub(lambda e: f"×10{str(int(e[1])).translate(SUPERSCRIPTS)}", text)


def _shortest(text: str) -> str:
    text = text.replace("-", "−")
    return text.rstrip("0").rstrip(".") if "." in text else text


class Tick(NamedTuple):
    """A number on an axis and how it is written."""

    value: float
    label: str


@dataclass(frozen=True, kw_only=True)
class AxisScale:
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

    def apart_ticks(self, most: int) -> list[Tick]:
        """As many of them as can stand side by side, and two rather than one."""
        every = self.ticks(most)
        choices = [every, *(self.ticks(k) for k in range(most - 1, 1, -1)), [every[0], every[-1]]]
        return next((few for few in choices if len(few) > 1 and self._apart(few)), every[:1])

    def _apart(self, ticks: Sequence[Tick]) -> bool:
        places = [float(self(tick.value)) for tick in ticks]
        halves = [CHARACTER * len(tick.label) / 2 for tick in ticks]
        room = zip(places[1:], places, halves[1:], halves, strict=False)
        return all(right - left >= GAP + a + b for right, left, a, b in room)

    def _even_ticks(self, most: int) -> list[Tick]:
        raw = (self.high - self.low) / most
        power = 10.0 ** np.floor(np.log10(raw))
        steps = power * np.array([0.5, 1.0, 2.0, 5.0, 10.0])
        place = int(np.argmax(steps >= raw * (1 - 1e-12)))
        first, last = self._multiples(steps[place])
        if last < first:
            # Two of the next smaller step always lie inside.
            place -= 1
            first, last = self._multiples(steps[place])
        step = steps[place]
        decimals = max(0, -int(np.floor(np.log10(step))))
        values: Array = step * np.arange(first, last + 1.0)
        return [Tick(value, _label(value, decimals)) for value in values.tolist()]

    def _multiples(self, step: float) -> tuple[float, float]:
        """The first and the last multiple of `step` from low to high, in steps."""
        return np.ceil(self.low / step - 1e-9), np.floor(self.high / step + 1e-9)

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
) -> AxisScale:
    """A scale that shows all these numbers, with some room at both ends."""
    values = np.asarray(values, dtype=np.float64)
    low, high = float(values.min()), float(values.max())
    if log:
        room = max((np.log10(high) - np.log10(low)) * margin, 0.1)
        low, high = low / 10.0**room, high * 10.0**room
    else:
        room = (high - low) * margin or 0.5 * abs(low) or 0.5
        low, high = low - room, high + room
    return AxisScale(low=low, high=high, start=start, stop=stop, log=log)


def _label(value: float, decimals: int) -> str:
    if decimals > 4 or abs(value) >= 1e6:
        return number(value, 3)
    # −0 is 0.
    return f"{value + 0.0:,.{decimals}f}".replace("-", "−")


def _power(power: int) -> str:
    """1, 10, 100, 1,000 and 0.1, 0.01, then 10⁴ and 10⁻³."""
    if -2 <= power <= 3:
        return f"{10.0**power:,g}"
    return "10" + str(power).translate(SUPERSCRIPTS)


def picture(
    name: str, size: tuple[int, int], title: str, description: str, marks: Sequence[str]
) -> str:
    """The drawing, with a title and a description for those who do not see it."""
    return (
        f'<svg viewBox="0 0 {size[0]} {size[1]}" role="img" aria-labelledby="{name}-t {name}-d">'
        f'<title id="{name}-t">{escape(title)}</title>'
        f'<desc id="{name}-d">{escape(description)}</desc>{"".join(marks)}</svg>'
    )


def path(places: str, css: str, more: str = "") -> str:
    return f'<path class="{css}"{more} d="{places}"/>'


def line(x: Array, y: Array, css: str) -> str:
    return path("M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True)), css)


def area(x: Array, y: Array, base: float, css: str) -> str:
    """What lies between a line and the base."""
    return line(np.append(x, [x[-1], x[0]]), np.append(y, [base, base]), css)


def stems(x: Array, y: Array, base: float, css: str) -> str:
    """A line from the base to each value."""
    return path("".join(f"M{a:.1f} {base:.1f}V{b:.1f}" for a, b in zip(x, y, strict=True)), css)


def dots(x: Array, y: Array, radius: float, css: str) -> str:
    """Many equal dots in one path: strokes of no length with round ends."""
    places = "".join(f"M{a:.1f} {b:.1f}h.01" for a, b in zip(x, y, strict=True))
    return path(places, css, f' stroke-width="{2 * radius:.1f}"')


def circle(x: float, y: float, radius: float, css: str, label: str) -> str:
    """A disc, with words that a pointer shows."""
    return (
        f'<circle class="{css}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.2f}">'
        f"<title>{escape(label)}</title></circle>"
    )


def triangle(x: float, y: float, css: str) -> str:
    """Points upwards: what does not fit on the drawing."""
    return path(f"M{x - 4:.1f} {y + 4:.1f}h8l-4 -8Z", css)


def text(x: float, y: float, words: str, *, css: str = "", anchor: str = "start") -> str:
    kind = f' class="{css}"' if css else ""
    return f'<text{kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def horizontal_axis(scale: AxisScale, y: float, label: str = "", most: int = 5) -> list[str]:
    """A line with ticks below it."""
    marks = [path(f"M{scale.start:.1f} {y:.1f}H{scale.stop:.1f}", "axis")]
    for tick in scale.apart_ticks(most):
        x = float(scale(tick.value))
        marks.append(path(f"M{x:.1f} {y:.1f}v4", "axis"))
        marks.append(text(x, y + 17, tick.label, css="tick", anchor="middle"))
    if label:
        marks.append(text((scale.start + scale.stop) / 2, y + 36, label, anchor="middle"))
    return marks


def vertical_axis(scale: AxisScale, x: float, stop: float, label: str) -> list[str]:
    """Grid lines with their numbers at the left, and what they mean above them."""
    marks = [text(2, 13, label)] if label else []
    for tick in scale.ticks():
        y = float(scale(tick.value))
        marks.append(path(f"M{x:.1f} {y:.1f}H{stop:.1f}", "grid"))
        marks.append(text(x - 6, y + 4, tick.label, css="tick", anchor="end"))
    return marks
