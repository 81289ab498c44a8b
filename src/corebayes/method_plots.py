"""How each construction looks in every figure, and KL against size, time and passes.

A method keeps its colour, marker and dashes wherever it is drawn. Colours are those of Okabe and
Ito (2008) and, beyond them, of Paul Tol's muted scheme; markers tell apart what colours do not.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corebayes.constructions import Construction, exported
from corebayes.constructions.construction import Style
from corebayes.plots import GREY, STYLE, import_matplotlib
from corebayes.types import Array

# A log axis has no room for less, and a KL this small is round-off.
FLOOR = 1e-13


STYLES = {name: kind.style for name, kind in exported().items()}


class MethodCurve(NamedTuple):
    """Medians of one method by size."""

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


def draw_methods(
    stem: Path, title: str, curves: Mapping[str, MethodCurve], prior_kl: float
) -> tuple[Path, Path]:
    """KL against size, CPU time and passes over the rows, as `stem`.png and `stem`.svg."""
    matplotlib = import_matplotlib()
    figure_module: Any = importlib.import_module("matplotlib.figure")
    # Text stays text, and the same figure has the same bytes.
    style: dict[str, Any] = {**STYLE, "svg.fonttype": "none", "svg.hashsalt": "corebayes"}
    with matplotlib.rc_context(style):
        figure = figure_module.Figure(figsize=(13.5, 4.6), layout="constrained")
        axes = figure.subplots(1, 3, sharey=True)
        handles = [_draw(axes, label, curve, prior_kl) for label, curve in curves.items()]
        left, middle, right = axes
        for axis in axes:
            axis.axhline(prior_kl, color=GREY, lw=0.8)
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.grid(axis="y", color="#E6E6E6", lw=0.6)
            axis.set_axisbelow(True)
        left.annotate(
            "prior",
            (0.995, prior_kl),
            xycoords=("axes fraction", "data"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="right",
            fontsize=8,
        )
        sizes = sorted({int(size) for curve in curves.values() for size in curve.sizes})
        left.set_xticks(sizes, [str(size) for size in sizes])
        left.set_xticks([], minor=True)
        left.set_xlabel("rows asked for")
        left.set_ylabel("KL divergence from the full posterior (nats)")
        middle.set_xlabel("CPU time of construction (s)")
        right.set_xlabel("passes over the rows")
        figure.suptitle(title, fontsize=10)
        figure.legend(handles, list(curves), loc="outside right center", fontsize=8)
        paths = stem.with_suffix(".png"), stem.with_suffix(".svg")
        figure.savefig(paths[0], dpi=150, pil_kwargs={"optimize": True})
        figure.savefig(paths[1], metadata={"Date": None})
    return paths


def _draw(axes: Any, label: str, curve: MethodCurve, prior_kl: float) -> Any:
    style = style_of(label)
    options = {
        "color": style.color,
        "marker": style.marker,
        "ls": style.dashes,
        "lw": 1.4,
        "ms": 4.5,
        "fillstyle": style.fill,
        "markerfacecoloralt": "white",
    }
    # A KL far above the prior's says nothing by its height: it is drawn at the edge.
    kls = np.clip(curve.kls, FLOOR, 1e3 * prior_kl)
    axes[1].plot(curve.seconds, kls, **options)
    axes[2].plot(curve.passes, kls, **options)
    return axes[0].plot(curve.sizes, kls, **options)[0]
