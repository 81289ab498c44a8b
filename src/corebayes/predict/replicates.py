"""Replicated data sets beside the data, in one pass that never holds N × S numbers.

For draws θ_s of the posterior every row gets a target y_ns ~ p(· | x_n, θ_s): S data sets as the
model would have them. Of each, and of the data, only sums, extremes and a histogram are kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from corebayes.scan.passes import rows_of_width
from corebayes.types import Array, Block, Indices

# Bins of measurements; from so many different whole numbers on they are measurements.
NUM_BINS, MOST_WHOLE = 400, 100


class ReplicateSums(NamedTuple):
    """Of one column for the data and S for the replicates, (1 + S,); the histogram (1 + S, B)."""

    weight: float
    total: Array
    squares: Array
    zeros: Array
    lowest: Array
    highest: Array
    histogram: Array


@dataclass(frozen=True)
class Replicates:
    """Sums over rows, around `middle`. Cost: N·S draws of y, and as many comparisons."""

    predictive: Any
    edges: Array
    """Inner edges of the B = len(edges) + 1 bins, of which the outer two are open."""
    middle: float
    binary: bool
    seed: int

    @property
    def width(self) -> int:
        return 4 * (1 + self.predictive.num_draws)

    @property
    def block_rows(self) -> int:
        return rows_of_width(self.width)

    def answer(self, block: Block, numbers: Indices) -> ReplicateSums:
        # A function of the rows alone, whoever reads them.
        rng = np.random.default_rng([self.seed, int(numbers[0]) if numbers.size else 0])
        observed = (block.y > 0.0).astype(np.float64) if self.binary else block.y
        values = np.column_stack([observed, self.predictive.predict(rng, block)[1]])
        counts = block.multiplicity()
        kept = counts > 0.0
        values, counts = values[kept], counts[kept]
        apart = values - self.middle
        bins: Any = np.searchsorted(self.edges, values.ravel(), side="right")
        columns, number = int(values.shape[1]), int(self.edges.size) + 1
        starts: Any = np.arange(0, number * columns, number)
        flat = bins + np.tile(starts, len(values))
        weights = np.repeat(counts, columns)
        histogram = np.bincount(flat, weights, minlength=number * columns)
        return ReplicateSums(
            float(counts.sum()),
            counts @ apart,
            counts @ np.square(apart),
            counts @ (values == 0.0),
            values.min(axis=0, initial=np.inf),
            values.max(axis=0, initial=-np.inf),
            histogram.astype(np.float64).reshape(columns, number),
        )

    def merge(self, first: ReplicateSums, second: ReplicateSums) -> ReplicateSums:
        both: Any = zip(first, second, strict=True)
        added = ReplicateSums(*(a + b for a, b in both))
        return added._replace(
            lowest=np.minimum(first.lowest, second.lowest),
            highest=np.maximum(first.highest, second.highest),
        )


def edges_of(y: Array) -> Array:
    """Inner edges of bins that show targets like these: whole numbers where they are such."""
    whole = bool(np.all(y == np.rint(y)))
    low, high = (float(end) for end in np.quantile(y, [0.001, 0.999]))
    if whole and high - low <= MOST_WHOLE:
        return 0.5 + np.arange(math.floor(low), math.ceil(high) + 1, dtype=np.float64)
    spread = (high - low) or abs(low) or 1.0
    return np.linspace(low - 0.1 * spread, high + 0.1 * spread, NUM_BINS - 1)


def quantiles(sums: ReplicateSums, edges: Array, shares: Array) -> Array:
    """Quantiles of every data set from its histogram, (1 + S, shares): exact for whole numbers
    that each have a bin, else to a small part of a bin."""
    whole = bool(edges.size and np.all(np.rint(edges - 0.5) == edges - 0.5))
    found = np.empty((len(sums.total), shares.size))
    for place, (heights, low, high) in enumerate(
        zip(sums.histogram, sums.lowest, sums.highest, strict=True)
    ):
        cumulated = np.cumsum(heights) / max(float(heights.sum()), 1e-300)
        if whole:
            bins = np.searchsorted(cumulated, shares - 1e-12)
            found[place] = np.clip(edges[0] - 0.5 + bins, low, high)
        else:
            ends = np.concatenate([[min(low, edges[0])], edges, [max(high, edges[-1])]])
            found[place] = np.interp(shares, np.concatenate([[0.0], cumulated]), ends)
    return found
