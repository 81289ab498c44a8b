"""What all figures share, and the paper's figures of KL against size and CPU time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corebayes.experiments.catalogue import NAMES
from corebayes.experiments.datasets import EXTENT, HOUSES
from corebayes.experiments.measure import Quartiles, Results
from corebayes.figures.methods import FLOOR, line_style, place_of
from corebayes.figures.plots import BLACK, KL_LABEL, grid_lines, save_figure
from corebayes.types import Array

# Our default goes far below what the paper compares; the axis ends this factor below that.
ROOM = 1e-4
# Above this multiple of the prior's KL, height says nothing.
CEILING = 1e2
TITLES = {
    "synth_lr": "synthetic",
    "ds1": "chemical reactivity",
    "phishing": "phishing websites",
    "synth_poiss": "synthetic",
    "biketrips": "bike trips",
    "airportdelays": "airport delays",
}


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

    def save(self, size: tuple[float, float], draw: Callable[[Any], None]) -> Figure:
        save_figure((self.png, self.svg), size, draw)
        return self


def kl_figure(stem: Path, results: Results, experiment: str) -> Figure:
    """The paper's figure 2a ("gaussian") or 3a ("rbf"): exact KL against size."""
    (data,) = results.sets(experiment)
    houses = data in HOUSES
    number, what = (
        ("3a", "Radial basis regression of house prices")
        if houses
        else ("2a", "Synthetic Gaussian")
    )
    panel = (experiment, data, house_heading(data) if houses else "")
    return Figure(
        stem,
        f"Figure {number}. {what}: KL against coreset size",
        f"Exact KL(π_w ‖ π). {which_houses(data)}{_trials(results, experiment)}",
    ).save((5.2, 4.6 if houses else 4.4), _panels(results, [[panel]], "kl", KL_LABEL, ncols=2))


def regression_figure(stem: Path, results: Results, *, against: str) -> Figure:
    """The paper's figure 4 (`against` = "size") or 5 ("time"): one panel for each data set."""
    lines = [
        [
            (experiment, data, f"{experiment.capitalize()}: {TITLES[data]}")
            for data in TITLES
            if data in results.sets(experiment)
        ]
        for experiment in ("logistic", "poisson")
        if experiment in results.experiments()
    ]
    caption = "KL(π_w ‖ π) between Laplace fits, divided by that of the prior. "
    caption += _trials(results, lines[0][0][0])
    if against == "time":
        caption += (
            " CPU time is that of building the coreset, on one thread; SparseVI and GIGA are read "
            "off on the way, the others are built once for every size."
        )
    number, what = ("5", "CPU time") if against == "time" else ("4", "coreset size")
    title = f"Figure {number}. Logistic and Poisson regression: KL against {what}"
    draw = _panels(results, lines, "kl_normalised", "KL / KL of the prior", against, ncols=5)
    return Figure(stem, title, caption).save((9.5, 0.4 + 2.7 * len(lines)), draw)


def _panels(
    results: Results,
    lines: Sequence[Sequence[tuple[str, str, str]]],
    column: str,
    label: str,
    against: str = "size",
    *,
    ncols: int,
) -> Callable[[Any], None]:
    """Draws a panel for each experiment, set and title, below one legend."""
    below = "CPU time of construction (s)" if against == "time" else "coreset size, at most"

    def draw(figure: Any) -> None:
        axes = figure.subplots(len(lines), len(lines[0]), squeeze=False, sharex=against == "size")
        handles: dict[str, Any] = {}
        for row, line in zip(axes, lines, strict=True):
            for axis, (experiment, data, title) in zip(row, line, strict=True):
                handles = _draw_curves(axis, results.curves(experiment, data, column), against)
                axis.set_title(title, fontsize=9)
            row[0].set_ylabel(label)
        for axis in axes[-1]:
            axis.set_xlabel(below)
        where: dict[str, Any] = {"loc": "outside upper center", "ncols": ncols, "fontsize": 8.5}
        figure.legend(list(handles.values()), [NAMES[name] for name in handles], **where)

    return draw


def house_heading(data: str) -> str:
    """The data, on the figure."""
    return f"{data}: {HOUSES[data]}" + ("" if data == "uk_prices" else " (stands in for the UK's)")


def which_houses(data: str) -> str:
    """The data, in a sentence."""
    if data not in HOUSES:
        return ""
    if data == "uk_prices":
        return "The data is the paper's: house sales in England and Wales, 2018. "
    return (
        "The data is a stand-in for the paper's: house sales in King County, Washington, "
        f"2014–2015, on a map stretched to {EXTENT[0]}° by {EXTENT[1]}°, the size of England and "
        "Wales. "
    )


def mark_points(axis: Any, where: Array, weights: Array, *, largest: float) -> None:
    """Coreset points in black, with a radius that grows with their weight."""
    if weights.size:
        # Areas go as squares of radii; the smallest stay visible.
        areas = 2.0 + 70.0 * (weights / largest) ** 2
        axis.scatter(*where.T, s=areas, color=BLACK, alpha=0.75, linewidths=0, zorder=4)


def _draw_curves(axis: Any, curves: Mapping[str, Quartiles], against: str) -> dict[str, Any]:
    """Medians as lines and quartiles as bands, against "size" or "time"; handles by method."""
    prior, time = next(iter(curves.values())).at(0), against == "time"
    paper = [curve.median for label, curve in curves.items() if label != "AnnealedSparseVI"]
    bottom = max(FLOOR, ROOM * float(np.min(paper)))
    handles: dict[str, Any] = {}
    # The methods of the paper last, so that nothing lies over them.
    for label in sorted(curves, key=place_of):
        curve, style = curves[label], line_style(label)
        shown = curve.sizes > (0 if time else -1)
        x = (curve.seconds if time else curve.sizes)[shown]
        lower, median, upper = (
            np.clip(values[shown], 0.1 * bottom, CEILING * prior)
            for values in (curve.lower, curve.median, curve.upper)
        )
        if time:
            # Time need not grow with size, so there is no band along it.
            axis.vlines(x, lower, upper, color=style["color"], alpha=0.4, lw=1.5)
        else:
            axis.fill_between(x, lower, upper, color=style["color"], alpha=0.18, linewidth=0)
        every = max(1, x.size // 8)
        handles[label] = axis.plot(x, median, markevery=every, lw=1.5, **style)[0]
    axis.set_yscale("log")
    axis.set_ylim(bottom, None)
    if time:
        axis.set_xscale("log")
    else:
        axis.set_xlim(0.0, None)
    grid_lines(axis)
    return handles


def _trials(results: Results, experiment: str) -> str:
    number = results.num_trials(experiment)
    if number == 1:
        return "One trial."
    return f"Medians of {number} trials, shaded from the 25th to the 75th percentile."
