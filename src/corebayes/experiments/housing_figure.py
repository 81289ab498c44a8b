"""Figure 3: KL on the house prices, and posterior means over the map."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corebayes.experiments import figures, housing
from corebayes.experiments.datasets import HousePrices
from corebayes.experiments.measure import Yardstick
from corebayes.experiments.results import Results
from corebayes.models.radial_basis import radial_basis
from corebayes.rows import open_rows
from corebayes.types import Array, Indices

# Sizes of the small panels, as shares of the largest.
SHARES = (0.0, 1 / 30, 1 / 6, 1 / 3, 2 / 3)
# Points of the grid a side, and how far from the next sale a mean is still shown, as a share of
# the map, which ends where sales are rare.
GRID, REACH, EDGE = 140, 0.025, 0.002
NUM_LEVELS = 13


class Map(NamedTuple):
    """Posterior means on a grid, where there are sales nearby."""

    latitudes: Array
    longitudes: Array
    features: Array
    near: NDArray[np.bool_]


def kl_figure(stem: Path, results: Results) -> figures.Figure:
    """Figure 3a."""
    (data,) = results.sets("rbf")

    def draw(figure: Any) -> None:
        axis = figure.subplots()
        handles = figures.draw_curves(axis, results.curves("rbf", data), against="size")
        axis.set_xlabel("coreset size, at most")
        axis.set_ylabel("KL divergence from the full posterior (nats)")
        axis.set_title(heading(data), fontsize=9)
        figures.add_legend(figure, handles, ncols=2)

    figures.save(stem, (5.2, 4.6), draw)
    return figures.Figure(
        stem,
        "Figure 3a. Radial basis regression of house prices: KL against coreset size",
        f"Exact KL(π_w ‖ π). {which_data(data)} " + figures.trials_text(results.num_trials("rbf")),
    )


def heading(data: str) -> str:
    """The data, on the figure."""
    stand_in = "" if data == housing.SETS[0] else " (stands in for the UK's)"
    return f"{data}: {housing.PLACES[data]}{stand_in}"


def which_data(data: str) -> str:
    """The data, in a sentence."""
    if data == housing.SETS[0]:
        return "The data is the paper's: house sales in England and Wales, 2018."
    return (
        "The data is a stand-in for the paper's: house sales in King County, Washington, "
        "2014–2015, "
        f"on a map stretched to {housing.EXTENT[0]}° by {housing.EXTENT[1]}°, the size of England "
        "and Wales."
    )


def map_figure(
    stem: Path,
    name: str,
    path: Path,
    coresets: Mapping[int, tuple[Indices, Array]],
    *,
    quick: bool,
) -> figures.Figure:
    """Figure 3b, from the coresets that SparseVI passed in the first trial."""
    prices = housing.sales(name, path, 0, quick=quick)
    data = open_rows((prices.features, prices.y))
    yardstick = Yardstick.of(housing.model_of(prices.y), data)
    grid = _grid(prices)
    last = max(coresets)
    small = [min(coresets, key=lambda size: abs(size - share * last)) for share in SHARES]
    fitted = prices.features @ yardstick.full.mean
    lowest, highest = (float(value) for value in np.quantile(fitted, [0.02, 0.98]))
    levels = np.linspace(lowest, highest, NUM_LEVELS)
    largest = float(coresets[last][1].max())

    def panel(axis: Any, size: int | None) -> Any:
        indices, weights = coresets[0 if size is None else size]
        fit = yardstick.full if size is None else yardstick.fit(data.take(indices), weights)
        drawn = _contours(axis, grid, fit.mean, levels)
        where = prices.where[indices]
        figures.mark_points(axis, where[:, 1], where[:, 0], weights, largest=largest)
        axis.set_xlim(grid.longitudes[0], grid.longitudes[-1])
        axis.set_ylim(grid.latitudes[0], grid.latitudes[-1])
        axis.set_xticks([])
        axis.set_yticks([])
        axis.set_aspect("equal")
        for spine in axis.spines.values():
            spine.set_visible(False)
        return drawn

    def draw(figure: Any) -> None:
        top, bottom = figure.subfigures(2, 1, height_ratios=[1.75, 1.0])
        left, right = top.subplots(1, 2)
        panel(left, None)
        left.set_title(f"exact posterior, all {len(prices.y):,} sales", fontsize=9)
        drawn = panel(right, last)
        indices, weights = coresets[last]
        kl = yardstick.kl(data.take(indices), weights)
        right.set_title(f"M = {last}, {weights.size} points, KL = {kl:.2g}", fontsize=9)
        bar = top.colorbar(drawn, ax=[left, right], shrink=0.85, pad=0.01, format="%.1f")
        bar.set_label("posterior mean of the log price", fontsize=8.5)
        for axis, size in zip(bottom.subplots(1, len(small), squeeze=False)[0], small, strict=True):
            panel(axis, size)
            kl = yardstick.kl(data.take(coresets[size][0]), coresets[size][1])
            axis.set_title(f"M = {size}, KL = {kl:.2g}", fontsize=8.5)
        figure.suptitle(heading(name), fontsize=10)

    figures.save(stem, (9.5, 6.8), draw)
    return figures.Figure(
        stem,
        "Figure 3b. Posterior mean of the log price over the map, coresets by SparseVI",
        f"{which_data(name)} Coreset points are black with a radius that grows with their weight; "
        "colours are the same in all panels, and end where the exact posterior's do.",
    )


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
