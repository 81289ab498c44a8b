"""What all figures share, and KL against size and against CPU time."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corebayes.data.atomic import write_atomically
from corebayes.experiments.experiment import NAMES
from corebayes.experiments.results import Curve, Results
from corebayes.method_plots import FLOOR, place_of, style_of
from corebayes.plots import BLACK, STYLE, import_matplotlib
from corebayes.types import Array

# Our default goes far below what the paper compares; the axis ends this factor below that.
ROOM = 1e-4
# Above this multiple of the prior's KL, height says nothing.
CEILING = 1e2


class Figure(NamedTuple):
    """A figure on disk, and what it shows in a sentence or two."""

    stem: Path
    title: str
    caption: str

    @property
    def png(self) -> Path:
        return self.stem.with_suffix(".png")

    @property
    def svg(self) -> Path:
        return self.stem.with_suffix(".svg")


def save(stem: Path, size: tuple[float, float], draw: Callable[[Any], None]) -> None:
    """Draw on an empty figure of `size` inches and write PNG and SVG, the same bytes every time."""
    matplotlib = import_matplotlib()
    module: Any = importlib.import_module("matplotlib.figure")
    # Text stays text, and identifiers do not depend on the clock.
    style = {**STYLE, "svg.fonttype": "none", "svg.hashsalt": stem.name}
    with matplotlib.rc_context(style):
        figure = module.Figure(figsize=size, layout="constrained")
        draw(figure)
        picture, drawing = io.BytesIO(), io.BytesIO()
        figure.savefig(picture, format="png", dpi=160)
        figure.savefig(drawing, format="svg", dpi=160, metadata={"Date": None})
    write_atomically(stem.with_suffix(".png"), picture.getvalue())
    write_atomically(stem.with_suffix(".svg"), drawing.getvalue())


def draw_curves(axis: Any, curves: Mapping[str, Curve], *, against: str) -> dict[str, Any]:
    """Medians as lines and quartiles as bands, against "size" or "time"; handles by method."""
    prior = next(iter(curves.values())).at(0)
    paper = [curve.median for label, curve in curves.items() if label != "AnnealedSparseVI"]
    bottom = max(FLOOR, ROOM * float(np.min(paper)))
    handles: dict[str, Any] = {}
    # The methods of the paper last, so that nothing lies over them.
    for label in sorted(curves, key=place_of):
        curve, look = curves[label], style_of(label)
        shown = curve.sizes > 0 if against == "time" else curve.sizes >= 0
        x = (curve.seconds if against == "time" else curve.sizes)[shown]
        lower, median, upper = (
            np.clip(values[shown], 0.1 * bottom, CEILING * prior)
            for values in (curve.lower, curve.median, curve.upper)
        )
        if against == "time":
            # Time need not grow with size, so there is no band along it.
            axis.vlines(x, lower, upper, color=look.color, alpha=0.4, lw=1.5)
        else:
            axis.fill_between(x, lower, upper, color=look.color, alpha=0.18, linewidth=0)
        handles[label] = axis.plot(
            x,
            median,
            color=look.color,
            ls=look.dashes,
            marker=look.marker,
            fillstyle=look.fill,
            markerfacecoloralt="white",
            markevery=max(1, x.size // 8),
            ms=4.5,
            lw=1.5,
        )[0]
    axis.set_yscale("log")
    axis.set_ylim(bottom, None)
    if against == "time":
        axis.set_xscale("log")
    else:
        axis.set_xlim(0.0, None)
    axis.grid(axis="y", color="#E6E6E6", lw=0.6)
    axis.set_axisbelow(True)
    return handles


def add_legend(figure: Any, handles: Mapping[str, Any], *, ncols: int = 5) -> None:
    """Above the panels, methods by their names."""
    names = [NAMES[label] for label in handles]
    figure.legend(
        list(handles.values()), names, loc="outside upper center", ncols=ncols, fontsize=8.5
    )


def trials_text(num_trials: int) -> str:
    """For captions."""
    if num_trials == 1:
        return "One trial."
    return f"Medians of {num_trials} trials, shaded from the 25th to the 75th percentile."


def regression_figure(
    stem: Path, results: Results, titles: Mapping[str, str], *, against: str
) -> Figure:
    """The paper's figure 4 (`against` = "size") or 5 ("time"): one panel for each data set."""
    experiments = [name for name in ("logistic", "poisson") if name in results.experiments()]

    def draw(figure: Any) -> None:
        axes = figure.subplots(len(experiments), 3, squeeze=False, sharex=against == "size")
        handles: dict[str, Any] = {}
        for line, experiment in zip(axes, experiments, strict=True):
            sets = [name for name in titles if name in results.sets(experiment)]
            for axis, data in zip(line, sets, strict=True):
                curves = results.curves(experiment, data, "kl_normalised")
                handles = draw_curves(axis, curves, against=against)
                axis.set_title(f"{experiment.capitalize()}: {titles[data]}", fontsize=9)
            line[0].set_ylabel("KL / KL of the prior")
        for axis in axes[-1]:
            axis.set_xlabel(
                "CPU time of construction (s)" if against == "time" else "coreset size, at most"
            )
        add_legend(figure, handles)

    save(stem, (9.5, 0.4 + 2.7 * len(experiments)), draw)
    number, what = ("5", "CPU time") if against == "time" else ("4", "coreset size")
    return Figure(
        stem,
        f"Figure {number}. Logistic and Poisson regression: KL against {what}",
        "KL(π_w ‖ π) between Laplace fits, divided by that of the prior. "
        + trials_text(results.num_trials(experiments[0]))
        + (
            " CPU time is that of building the coreset, on one thread; SparseVI and GIGA are read "
            "off "
            "on the way, the others built anew for every size."
            if against == "time"
            else ""
        ),
    )


def mark_points(axis: Any, x: Array, y: Array, weights: Array, *, largest: float) -> None:
    """Coreset points in black, with a radius that grows with their weight."""
    if weights.size:
        # Areas go as squares of radii; the smallest stay visible.
        areas = 2.0 + 70.0 * (weights / largest) ** 2
        axis.scatter(x, y, s=areas, color=BLACK, alpha=0.75, linewidths=0, zorder=4)


def shown_sizes(wanted: Sequence[int], kept: Sequence[int]) -> list[int]:
    """The wanted sizes that were kept, and always the last one."""
    sizes = [size for size in wanted if size in kept]
    return sizes if kept[-1] in sizes or len(sizes) == len(wanted) else [*sizes, kept[-1]]
