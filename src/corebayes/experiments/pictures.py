"""Figures 2b and 3b: the coresets that SparseVI passed in its first trial, drawn on their data."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corebayes.experiments import catalogue
from corebayes.experiments.datasets import HousePrices
from corebayes.experiments.figures import Figure, house_heading, mark_points, which_houses
from corebayes.experiments.measure import Yardstick
from corebayes.figures.plots import BLACK, BLUE, GREY
from corebayes.models.radial_basis import radial_basis
from corebayes.rows import open_rows
from corebayes.types import Array, Gaussian, Indices

Coresets = Mapping[int, tuple[Indices, Array]]
# Panels of figure 2b, and its quick version.
ITERATIONS = (0, 1, 5, 20, 50, 100), (0, 1, 5, 10, 20, 50)
# Sizes of the small maps, as shares of the largest.
SHARES = (0.0, 1 / 30, 1 / 6, 1 / 3, 2 / 3)
# Points of the grid a side, and how far from the next sale a mean is still shown, as a share of
# the map, which ends where sales are rare.
GRID, REACH, EDGE = 140, 0.025, 0.002
NUM_LEVELS = 13


def gaussian_figure(stem: Path, coresets: Coresets, *, quick: bool) -> Figure:
    """Figure 2b: the first two coordinates of the synthetic Gaussian."""
    rows = catalogue.gaussian_rows(0, quick=quick)
    data = open_rows(rows)
    yardstick = Yardstick.of(catalogue.GAUSSIAN, data)
    wanted, kept = ITERATIONS[quick], sorted(coresets)
    sizes = [size for size in wanted if size in kept]
    # Always the last one.
    sizes += [kept[-1]] if kept[-1] not in sizes and len(sizes) < len(wanted) else []
    largest = max(float(coresets[size][1].max(initial=0.0)) for size in sizes)
    some: dict[str, Any] = {"s": 3, "alpha": 0.5, "linewidths": 0, "rasterized": True}

    def draw(figure: Any) -> None:
        figure.get_layout_engine().set(h_pad=0.08)
        axes = figure.subplots(2, 3, sharex=True, sharey=True).ravel()
        for axis, size in zip(axes, sizes, strict=True):
            indices, weights = coresets[size]
            block = data.take(indices)
            axis.scatter(rows[:, 0], rows[:, 1], color=GREY, **some)
            _ellipses(axis, yardstick.full, BLACK)
            _ellipses(axis, yardstick.fit(block, weights), BLUE)
            mark_points(axis, rows[indices, :2], weights, largest=largest)
            axis.set_aspect("equal")
            words = "1 iteration" if size == 1 else f"{size} iterations"
            axis.set_title(f"{words}, KL = {yardstick.kl(block, weights):.2g}", fontsize=9)
        figure.supxlabel("first coordinate", fontsize=9)
        figure.supylabel("second coordinate", fontsize=9)
        _legend(figure)

    return Figure(
        stem,
        "Figure 2b. Coresets by SparseVI on the synthetic Gaussian",
        f"The first two of {rows.shape[1]} coordinates. Posterior (solid) and predictive (dashed) "
        "2σ ellipses of all rows in black and of the coreset in blue; all rows in grey, coreset "
        "points in black with a radius that grows with their weight.",
    ).save((8.2, 6.0), draw)


def _ellipses(axis: Any, posterior: Gaussian, color: str) -> None:
    """2σ of the posterior of θ, and of the prediction of a row, which adds Σ = I."""
    covariance = (posterior.factor @ posterior.factor.T)[:2, :2]
    angles = np.linspace(0.0, 2.0 * np.pi, 121)
    circle = 2.0 * np.stack([np.cos(angles), np.sin(angles)])
    for matrix, dashes in ((covariance, "-"), (covariance + np.eye(2), "--")):
        # (x − μ)ᵀ Σ⁻¹ (x − μ) = 2²
        x, y = posterior.mean[:2, None] + np.linalg.cholesky(matrix) @ circle
        axis.plot(x, y, color=color, ls=dashes, lw=1.3, zorder=3)


def _legend(figure: Any) -> None:
    line: Any = importlib.import_module("matplotlib.lines").Line2D
    entries = {
        "posterior, all rows": {"color": BLACK, "ls": "-", "lw": 1.3},
        "predictive, all rows": {"color": BLACK, "ls": "--", "lw": 1.3},
        "posterior, coreset": {"color": BLUE, "ls": "-", "lw": 1.3},
        "predictive, coreset": {"color": BLUE, "ls": "--", "lw": 1.3},
        "all rows": {"color": GREY, "marker": "o", "ls": "", "ms": 3},
        "coreset points": {"color": BLACK, "marker": "o", "ls": "", "ms": 5},
    }
    handles = [line([], [], **look) for look in entries.values()]
    where: dict[str, Any] = {"loc": "outside upper center", "ncols": 3, "fontsize": 8.5}
    figure.legend(handles, list(entries), **where)


class Map(NamedTuple):
    """A grid, the radial functions on it, and where there are sales nearby."""

    latitudes: Array
    longitudes: Array
    features: Array
    near: NDArray[np.bool_]


def house_figure(stem: Path, name: str, path: Path, coresets: Coresets, *, quick: bool) -> Figure:
    """Figure 3b: posterior means of the log price over the map."""
    prices = catalogue.house_sales(name, path, 0, quick=quick)
    data = open_rows((prices.features, prices.y))
    yardstick = Yardstick.of(catalogue.house_model(prices.y), data)
    grid, last = _grid(prices), max(coresets)
    small = [min(coresets, key=lambda size: abs(size - share * last)) for share in SHARES]
    lowest, highest = np.quantile(prices.features @ yardstick.full.mean, [0.02, 0.98])
    levels = np.linspace(float(lowest), float(highest), NUM_LEVELS)
    largest = float(coresets[last][1].max())

    def panel(axis: Any, size: int | None, title: str) -> Any:
        """The exact posterior, or that of a coreset."""
        indices, weights = coresets[0 if size is None else size]
        rows = data.take(indices)
        fit = yardstick.full if size is None else yardstick.fit(rows, weights)
        drawn = _contours(axis, grid, fit.mean, levels)
        mark_points(axis, prices.where[indices, ::-1], weights, largest=largest)
        axis.set_xlim(grid.longitudes[0], grid.longitudes[-1])
        axis.set_ylim(grid.latitudes[0], grid.latitudes[-1])
        axis.set_xticks([])
        axis.set_yticks([])
        axis.set_aspect("equal")
        for spine in axis.spines.values():
            spine.set_visible(False)
        text = title if size is None else f"{title}, KL = {yardstick.kl(rows, weights):.2g}"
        axis.set_title(text, fontsize=8.5 if size in small else 9)
        return drawn

    def draw(figure: Any) -> None:
        top, bottom = figure.subfigures(2, 1, height_ratios=[1.75, 1.0])
        left, right = top.subplots(1, 2)
        panel(left, None, f"exact posterior, all {len(prices.y):,} sales")
        drawn = panel(right, last, f"M = {last}, {coresets[last][1].size} points")
        bar = top.colorbar(drawn, ax=[left, right], shrink=0.85, pad=0.01, format="%.1f")
        bar.set_label("posterior mean of the log price", fontsize=8.5)
        for axis, size in zip(bottom.subplots(1, len(small), squeeze=False)[0], small, strict=True):
            panel(axis, size, f"M = {size}")
        figure.suptitle(house_heading(name), fontsize=10)

    return Figure(
        stem,
        "Figure 3b. Posterior mean of the log price over the map, coresets by SparseVI",
        f"{which_houses(name)}Coreset points are black with a radius that grows with their weight; "
        "colours are the same in all panels, and end where the exact posterior's do.",
    ).save((9.5, 6.8), draw)


def _grid(prices: HousePrices) -> Map:
    from scipy.spatial import cKDTree

    low, high = np.quantile(prices.where, [EDGE, 1.0 - EDGE], axis=0)
    latitudes = np.linspace(float(low[0]), float(high[0]), GRID)
    longitudes = np.linspace(float(low[1]), float(high[1]), GRID)
    points = np.stack(np.meshgrid(latitudes, longitudes, indexing="ij"), axis=-1).reshape(-1, 2)
    distances = cKDTree(prices.where).query(points)[0]
    near = np.asarray(distances) <= REACH * float(np.max(high - low))
    return Map(latitudes, longitudes, radial_basis(points, *prices.basis), near)


def _contours(axis: Any, grid: Map, mean: Array, levels: Array) -> Any:
    values = np.where(grid.near, grid.features @ mean, np.nan).reshape(GRID, GRID)
    where = (grid.longitudes, grid.latitudes, np.ma.masked_invalid(values))
    # As outlines the areas would take two megabytes; below zero they are pixels.
    axis.set_rasterization_zorder(0.0)
    return axis.contourf(*where, levels=levels, cmap="viridis", extend="both", zorder=-1.0)
