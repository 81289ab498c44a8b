"""The picture of a predictive check: the data in bins, and replicates of them."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import numpy as np

from corebayes.types import Array


class Bins(NamedTuple):
    """Where the bins are, and how high: the data, and the middle 90 % of the replicates."""

    places: Array
    data: Array
    low: Array
    high: Array
    roots: bool
    """Whether heights are roots of the shares: for counts, so that rare ones are seen."""

    @property
    def num_outside(self) -> int:
        """Bins in which the data are outside of what is replicated."""
        return int(np.count_nonzero((self.data < self.low) | (self.data > self.high)))


def bins_of(edges: Array, shares: Array) -> Bins:
    """The bins between the edges, and the open ones beyond them."""
    counts = bool(np.all(edges == np.rint(edges - 0.5) + 0.5))
    heights = np.sqrt(shares) if counts else shares
    step = float(np.median(np.diff(edges))) if edges.size > 1 else 1.0
    middle = 0.5 * (edges[1:] + edges[:-1])
    places = np.concatenate([[edges[0] - 0.5 * step], middle, [edges[-1] + 0.5 * step]])
    low, high = np.quantile(heights[1:], [0.05, 0.95], axis=0)
    return Bins(places, heights[0], low, high, counts)


def plot_bins(bins: Bins, target_name: str, axes: Any = None) -> Any:
    """By matplotlib, on these axes or new ones, which are returned."""
    if axes is None:
        pyplot: Any = importlib.import_module("matplotlib.pyplot")
        _, axes = pyplot.subplots(figsize=(6.0, 3.6), layout="constrained")
    axes.vlines(
        bins.places, bins.low, bins.high, color="#56B4E9", linewidth=6.0, label="replicated, 90 %"
    )
    axes.plot(bins.places, bins.data, "o", color="#000000", markersize=4.0, label="data")
    axes.set(xlabel=target_name, ylabel="√ share of rows" if bins.roots else "share of rows")
    axes.set_ylim(bottom=0.0)
    axes.legend(frameon=False)
    return axes
