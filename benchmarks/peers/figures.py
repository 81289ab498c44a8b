"""The figures of docs/peers.md."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.peers.measure import METHODS
from benchmarks.peers.problems import TITLES
from benchmarks.summaries import apart

from corebayes.figures.plots import BLUE, GREY, ORANGE, save_figure

Rows = Mapping[str, Mapping[str, Any]]
# A logarithmic axis has no room for nothing.
LEAST_SECONDS = 0.02


def numbers(row: Mapping[str, Any], truth: Mapping[str, Any]) -> dict[str, Any] | None:
    if "parameters" not in row or "parameters" not in truth:
        return None
    return apart(row["parameters"], truth["parameters"], truth["parameters"])


def draw_errors(rows: Rows, shown: list[str], path: Path) -> None:
    """Error of the worst mean against CPU seconds, a panel a problem."""
    high = -(-len(shown) // 2)

    def panels(figure: Any) -> None:
        for place, problem in enumerate(shown):
            axes = figure.add_subplot(high, 2, place + 1)
            truth = rows[f"{problem} truth"]
            axes.set_title(TITLES[problem], fontsize=9, loc="left")
            axes.set(xscale="log", yscale="log")
            if place // 2 == high - 1:
                axes.set_xlabel("CPU seconds")
            if place % 2 == 0:
                axes.set_ylabel("largest mean error, sd")
            for number, (seconds, error, name) in enumerate(sorted(_points(rows, problem, truth))):
                ours = name == METHODS["coreset"][1]
                axes.plot(seconds, error, "o", ms=8 if ours else 5, c=ORANGE if ours else BLUE)
                axes.annotate(
                    name,
                    (seconds, error),
                    xytext=(5, 4) if number % 2 else (5, -9),
                    textcoords="offset points",
                    fontsize=6.5,
                )
            axes.margins(x=0.25, y=0.2)

    path.parent.mkdir(parents=True, exist_ok=True)
    save_figure((path,), (10.0, 2.6 * high), panels)


def _points(rows: Rows, problem: str, truth: Mapping[str, Any]) -> list[tuple[float, float, str]]:
    """CPU seconds, error and short name of the methods that ended."""
    found: list[tuple[float, float, str]] = []
    for method, (_, name) in METHODS.items():
        off = numbers(rows.get(f"{problem} {method}", {}), truth) if method != "truth" else None
        if off is not None:
            seconds = max(rows[f"{problem} {method}"]["seconds"], LEAST_SECONDS)
            short = name.removesuffix(", all rows").replace("with importance sampling", "+ IS")
            found.append((seconds, off["mean"], short.replace(" with control variates", "")))
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
