"""Drawings as SVG text: marks in pixels, two axes, and the words that describe them.

Colours are classes of the page's style sheet, so that one drawing serves light, dark and print.
"""

from __future__ import annotations

from collections.abc import Sequence

from corebayes.report.html import escape
from corebayes.report.scale import Scale
from corebayes.types import Array


def picture(
    width: int, height: int, marks: Sequence[str], *, name: str, title: str, description: str
) -> str:
    """The drawing, with a title and a description for those who do not see it."""
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-labelledby="{name}-t {name}-d">'
        f'<title id="{name}-t">{escape(title)}</title>'
        f'<desc id="{name}-d">{escape(description)}</desc>{"".join(marks)}</svg>'
    )


def line(x: Array, y: Array, css: str) -> str:
    return f'<path class="{css}" d="{_path(x, y)}"/>'


def area(x: Array, y: Array, base: float, css: str) -> str:
    """What lies between a line and the base."""
    closed = f"{_path(x, y)}L{x[-1]:.1f} {base:.1f}L{x[0]:.1f} {base:.1f}Z"
    return f'<path class="{css}" d="{closed}"/>'


def stems(x: Array, y: Array, base: float, css: str) -> str:
    """A line from the base to each value."""
    parts = "".join(f"M{a:.1f} {base:.1f}V{b:.1f}" for a, b in zip(x, y, strict=True))
    return f'<path class="{css}" d="{parts}"/>'


def segment(x: tuple[float, float], y: tuple[float, float], css: str) -> str:
    return f'<path class="{css}" d="M{x[0]:.1f} {y[0]:.1f}L{x[1]:.1f} {y[1]:.1f}"/>'


def dots(x: Array, y: Array, radius: float, css: str) -> str:
    """Many equal dots in one path: strokes of no length with round ends."""
    parts = "".join(f"M{a:.1f} {b:.1f}h.01" for a, b in zip(x, y, strict=True))
    return f'<path class="{css}" stroke-width="{2 * radius:.1f}" d="{parts}"/>'


def circle(x: float, y: float, radius: float, css: str, label: str = "") -> str:
    """A disc, with words that a pointer shows."""
    words = f"<title>{escape(label)}</title>" if label else ""
    return f'<circle class="{css}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.2f}">{words}</circle>'


def triangle(x: float, y: float, css: str) -> str:
    """Points upwards: what does not fit on the drawing."""
    return f'<path class="{css}" d="M{x - 4:.1f} {y + 4:.1f}h8l-4 -8Z"/>'


def text(x: float, y: float, words: str, *, css: str = "", anchor: str = "start") -> str:
    kind = f' class="{css}"' if css else ""
    return f'<text{kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def horizontal_axis(scale: Scale, y: float, label: str = "", most: int = 5) -> list[str]:
    """A line with ticks below it."""
    marks = [f'<path class="axis" d="M{scale.start:.1f} {y:.1f}H{scale.stop:.1f}"/>']
    for tick in scale.ticks(most):
        x = float(scale(tick.value))
        marks.append(f'<path class="axis" d="M{x:.1f} {y:.1f}v4"/>')
        marks.append(text(x, y + 17, tick.label, css="tick", anchor="middle"))
    if label:
        marks.append(text((scale.start + scale.stop) / 2, y + 36, label, anchor="middle"))
    return marks


def vertical_axis(scale: Scale, x: float, stop: float, label: str = "") -> list[str]:
    """Grid lines with their numbers at the left, and what they mean above them."""
    marks: list[str] = []
    for tick in scale.ticks():
        y = float(scale(tick.value))
        marks.append(f'<path class="grid" d="M{x:.1f} {y:.1f}H{stop:.1f}"/>')
        marks.append(text(x - 6, y + 4, tick.label, css="tick", anchor="end"))
    if label:
        marks.append(text(2, 13, label))
    return marks


def _path(x: Array, y: Array) -> str:
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))
