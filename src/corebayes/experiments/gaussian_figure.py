"""Figure 2: KL on the synthetic Gaussian, and coresets as SparseVI grows them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from corebayes.experiments import figures, gaussian
from corebayes.experiments.measure import Yardstick
from corebayes.experiments.results import Results
from corebayes.plots import BLACK, BLUE, GREY
from corebayes.rows import open_rows
from corebayes.types import Array, Gaussian, Indices

ITERATIONS = (0, 1, 5, 20, 50, 100)
QUICK_ITERATIONS = (0, 1, 5, 10, 20, 50)


def kl_figure(stem: Path, results: Results) -> figures.Figure:
    """Figure 2a."""

    def draw(figure: Any) -> None:
        axis = figure.subplots()
        handles = figures.draw_curves(axis, results.curves("gaussian", "gaussian"), against="size")
        axis.set_xlabel("coreset size, at most")
        axis.set_ylabel("KL divergence from the full posterior (nats)")
        figures.add_legend(figure, handles, ncols=2)

    figures.save(stem, (5.2, 4.4), draw)
    return figures.Figure(
        stem,
        "Figure 2a. Synthetic Gaussian: KL against coreset size",
        "Exact KL(π_w ‖ π). " + figures.trials_text(results.num_trials("gaussian")),
    )


def coreset_figure(
    stem: Path, coresets: Mapping[int, tuple[Indices, Array]], *, quick: bool
) -> figures.Figure:
    """Figure 2b, from the coresets that SparseVI passed in the first trial."""
    rows = gaussian.rows(0, quick=quick)
    data = open_rows(rows)
    yardstick = Yardstick.of(gaussian.MODEL, data)
    wanted = QUICK_ITERATIONS if quick else ITERATIONS
    sizes = figures.shown_sizes(wanted, sorted(coresets))
    largest = max(float(coresets[size][1].max(initial=0.0)) for size in sizes)

    def draw(figure: Any) -> None:
        figure.get_layout_engine().set(h_pad=0.08)
        axes = figure.subplots(2, 3, sharex=True, sharey=True).ravel()
        for axis, size in zip(axes, sizes, strict=True):
            indices, weights = coresets[size]
            block = data.take(indices)
            posterior = yardstick.fit(block, weights)
            axis.scatter(
                rows[:, 0], rows[:, 1], s=3, color=GREY, alpha=0.5, linewidths=0, rasterized=True
            )
            for fit, color in ((yardstick.full, BLACK), (posterior, BLUE)):
                _ellipses(axis, fit, color)
            figures.mark_points(axis, rows[indices, 0], rows[indices, 1], weights, largest=largest)
            axis.set_aspect("equal")
            kl = yardstick.kl(block, weights)
            axis.set_title(f"{_iterations(size)}, KL = {kl:.2g}", fontsize=9)
        figure.supxlabel("first coordinate", fontsize=9)
        figure.supylabel("second coordinate", fontsize=9)
        _legend(figure)

    figures.save(stem, (8.2, 6.0), draw)
    return figures.Figure(
        stem,
        "Figure 2b. Coresets by SparseVI on the synthetic Gaussian",
        f"The first two of {rows.shape[1]} coordinates. Posterior (solid) and predictive (dashed) "
        "2σ "
        "ellipses of all rows in black and of the coreset in blue; all rows in grey, coreset "
        "points in "
        "black with a radius that grows with their weight.",
    )


def _ellipses(axis: Any, posterior: Gaussian, color: str) -> None:
    """2σ of the posterior of θ, and of the prediction of a row, which adds Σ = I."""
    covariance = (posterior.factor @ posterior.factor.T)[:2, :2]
    for matrix, dashes in ((covariance, "-"), (covariance + np.eye(2), "--")):
        x, y = ellipse(posterior.mean[:2], matrix, radius=2.0)
        axis.plot(x, y, color=color, ls=dashes, lw=1.3, zorder=3)


def ellipse(mean: Array, covariance: Array, *, radius: float) -> Array:
    """The curve (x − μ)ᵀ Σ⁻¹ (x − μ) = radius², shape (2, n)."""
    angles = np.linspace(0.0, 2.0 * np.pi, 121)
    circle = radius * np.stack([np.cos(angles), np.sin(angles)])
    return mean[:, None] + np.linalg.cholesky(covariance) @ circle


def _legend(figure: Any) -> None:
    lines: Any = importlib.import_module("matplotlib.lines")
    entries = [
        lines.Line2D([], [], color=color, ls=dashes, lw=1.3)
        for color in (BLACK, BLUE)
        for dashes in ("-", "--")
    ]
    points = [
        lines.Line2D([], [], color=color, marker="o", ls="", ms=size)
        for color, size in ((GREY, 3), (BLACK, 5))
    ]
    names = ["posterior, all rows", "predictive", "posterior, coreset", "predictive"]
    figure.legend(
        [*entries, *points],
        [*names, "all rows", "coreset points"],
        loc="outside upper center",
        ncols=3,
        fontsize=8.5,
    )


def _iterations(number: int) -> str:
    return "1 iteration" if number == 1 else f"{number} iterations"
