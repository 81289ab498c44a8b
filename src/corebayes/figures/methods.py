"""How each construction looks in every figure, and KL against size, time and passes.

A method keeps its colour, marker and dashes wherever it is drawn. Colours are those of Okabe and
Ito (2008) and, beyond them, of Paul Tol's muted scheme; markers tell apart what colours do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corebayes.constructions import Construction, exported
from corebayes.constructions.construction import Style
from corebayes.figures.plots import GREY, KL_LABEL, grid_lines, note, save_figure
from corebayes.types import Array

# A log axis has no room for less, and a KL this small is round-off.
FLOOR = 1e-13


STYLES = {name: kind.style for name, kind in exported().items()}


class Medians(NamedTuple):
    """Of one method, by size."""

    sizes: Array
    kls: Array
    seconds: Array
    passes: Array


def style_of(label: str) -> Style:
    """The style of a method; what follows its name ("GIGA + refit") changes dashes and filling."""
    name = _name_in(label)
    if name is None:
        return Construction.style
    if label == name:
        return STYLES[name]
    dashes, fill = (":", "none") if label.endswith("refit") else ("-.", "left")
    return STYLES[name]._replace(dashes=dashes, fill=fill)


def place_of(label: str) -> tuple[int, str]:
    """Where a method stands in legends and tables."""
    name = _name_in(label)
    return (len(STYLES) if name is None else list(STYLES).index(name)), label


def _name_in(label: str) -> str | None:
    names = sorted(STYLES, key=len, reverse=True)
    return next((name for name in names if label.startswith(name)), None)


def line_style(label: str) -> dict[str, Any]:
    """How a method's line and markers are drawn."""
    style = style_of(label)
    return {
        "color": style.color,
        "marker": style.marker,
        "ls": style.dashes,
        "fillstyle": style.fill,
        "markerfacecoloralt": "white",
        "ms": 4.5,
    }


def draw_methods(
    stem: Path, title: str, curves: Mapping[str, Medians], prior_kl: float
) -> tuple[Path, Path]:
    """KL against size, CPU time and passes over the rows, as `stem`.png and `stem`.svg."""

    def draw(figure: Any) -> None:
        axes = figure.subplots(1, 3, sharey=True)
        handles: list[Any] = []
        for label, curve in curves.items():
            # A KL far above the prior's says nothing by its height: it is drawn at the edge.
            kls = np.clip(curve.kls, FLOOR, 1e3 * prior_kl)
            for axis, x in zip(axes, (curve.sizes, curve.seconds, curve.passes), strict=True):
                lines = axis.plot(x, kls, lw=1.4, **line_style(label))
                handles += lines if axis is axes[0] else []
        sizes = sorted({int(size) for curve in curves.values() for size in curve.sizes})
        names = ("rows asked for", "CPU time of construction (s)", "passes over the rows")
        for axis, name in zip(axes, names, strict=True):
            axis.axhline(prior_kl, color=GREY, lw=0.8)
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.set_xlabel(name)
            grid_lines(axis)
        edge: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "ha": "right", "fontsize": 8}
        note(axes[0], "prior", (0.995, prior_kl), (0, 3), **edge)
        axes[0].set_xticks(sizes, [str(size) for size in sizes])
        axes[0].set_xticks([], minor=True)
        axes[0].set_ylabel(KL_LABEL)
        figure.suptitle(title, fontsize=10)
        figure.legend(handles, list(curves), loc="outside right center", fontsize=8)

    paths = stem.with_suffix(".png"), stem.with_suffix(".svg")
    save_figure(paths, (13.5, 4.6), draw, dpi=150)
    return paths
