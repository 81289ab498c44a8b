"""The figures of docs/peers.md."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.peers.measure import METHODS
from benchmarks.peers.problems import TITLES
from benchmarks.summaries import apart

from corebayes.figures.plots import BLACK, BLUE, GREY, ORANGE, save_figure

Rows = Mapping[str, Mapping[str, Any]]
# The axes; what is outside is at their ends.
SECONDS, ERRORS = (0.02, 500.0), (0.01, 50.0)
GREEN, PURPLE, BROWN = "#009e73", "#9467bd", "#8c564b"
# By kind: fits at the mode, subsamples, chains of all rows, chains of some rows, variational fits.
MARKS = {
    "coreset": (ORANGE, "o"),
    "laplace": (BLUE, "s"),
    "laplace_is": (BLUE, "D"),
    "quadratic": (BLACK, "x"),
    "uniform": (GREY, "o"),
    "nutpie": (GREEN, "^"),
    "nuts": (GREEN, "v"),
    "hmcecs": (PURPLE, "<"),
    "sgld": (PURPLE, ">"),
    "mean_field": (BROWN, "P"),
    "full_rank": (BROWN, "X"),
    "pathfinder": (BROWN, "*"),
}


def numbers(row: Mapping[str, Any], truth: Mapping[str, Any]) -> dict[str, Any] | None:
    if "parameters" not in row or "parameters" not in truth:
        return None
    return apart(row["parameters"], truth["parameters"], truth["parameters"])


def draw_errors(rows: Rows, shown: list[str], path: Path) -> None:
    """Error of the worst mean against CPU seconds, a panel a problem, and what the marks mean."""
    high = -(-(len(shown) + 1) // 2)

    def panels(figure: Any) -> None:
        for place, problem in enumerate(shown):
            axes = figure.add_subplot(high, 2, place + 1)
            axes.set_title(TITLES[problem], fontsize=9, loc="left")
            # The same in every panel, so that they can be compared.
            axes.set(xscale="log", yscale="log", xlim=SECONDS, ylim=ERRORS)
            axes.grid(alpha=0.3)
            if place >= len(shown) - 2:
                axes.set_xlabel("CPU seconds")
            if place % 2 == 0:
                axes.set_ylabel("largest mean error, sd")
            for method, (seconds, error) in _points(rows, problem).items():
                # Whole also where they stand at the ends of the axes.
                axes.plot(seconds, error, clip_on=False, **_mark(method))
        axes = figure.add_subplot(high, 2, len(shown) + 1)
        axes.axis("off")
        named = [axes.plot([], [], label=METHODS[one][1], **_mark(one))[0] for one in MARKS]
        axes.legend(handles=named, loc="center", ncols=2, fontsize=8, frameon=False)

    path.parent.mkdir(parents=True, exist_ok=True)
    save_figure((path,), (10.0, 2.6 * high), panels)


def _mark(method: str) -> dict[str, Any]:
    color, marker = MARKS[method]
    ours = method == "coreset"
    return {
        "ls": "",
        "c": color,
        "marker": marker,
        "ms": 9 if ours else 6,
        "zorder": 3 if ours or marker == "x" else 2,
    }


def _points(rows: Rows, problem: str) -> dict[str, tuple[float, float]]:
    """CPU seconds and error of the methods that ended, within the panel."""
    found: dict[str, tuple[float, float]] = {}
    truth = rows[f"{problem} truth"]
    for method in MARKS:
        row = rows.get(f"{problem} {method}", {})
        off = numbers(row, truth)
        if off is not None:
            places = np.clip(row["seconds"], *SECONDS), np.clip(off["mean"], *ERRORS)
            found[method] = (float(places[0]), float(places[1]))
    return found


def draw_priors(rows: Rows, path: Path) -> None:
    """The largest error of a mean under each prior, of every way but the exact one."""
    truth = np.array(rows["priors laplace-is"]["moments"])
    styles = {
        "coreset": ("one coreset of 80 rows", BLUE, "o"),
        "quadratic": ("stored quadratic", ORANGE, "s"),
        "reweighted": ("stored draws, reweighted", GREY, "^"),
    }

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for method, (name, color, marker) in styles.items():
            row = rows.get(f"priors {method}", {})
            if "moments" not in row:
                continue
            ours = np.array(row["moments"])
            off = (np.abs(ours[:, 0] - truth[:, 0]) / truth[:, 1]).max(axis=1)
            axes.semilogy(off, marker, color=color, ms=4, label=name)
        axes.set_xlabel("prior: 20 scales, 15 shifts, 15 of both")
        axes.set_ylabel("largest mean error, sd")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))

    save_figure((path,), (9.0, 2.8), draw)
