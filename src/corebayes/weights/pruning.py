"""Backward elimination: from many weighted vectors to few, giving up as little as possible."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from corebayes.deadline import check_time
from corebayes.types import Array, Indices


class Kept(NamedTuple):
    """Positions that stay, and the least-squares weights there, all positive."""

    positions: Indices
    values: Array


def prune(gram: Array, values: Array, sizes: Collection[int]) -> dict[int, Kept]:
    """Let vectors leave one by one; what is kept when no more than each of the `sizes` are left.

    Without vector i the squared distance of the least squares grows by x_i² / K_ii, K = gram⁻¹,
    and the others' weights change by −(x_i / K_ii) K_i. Each time the vector with the least growth
    leaves, and then those whose weight would be negative. `values` are the least-squares weights of
    all, and `gram` the inner products of the (linearly independent) unit vectors.
    Cost: M³ flops for K, once, and M² for each vector that leaves.
    """
    inverse: Array = np.asarray(np.linalg.inv(gram), dtype=np.float64)
    positions = np.arange(values.size)
    kept: dict[int, Kept] = {}
    for size in sorted(sizes, reverse=True):
        while positions.size > size:
            check_time()
            heights = np.diag(inverse)
            growth = np.where(values > 0.0, np.square(values), -np.inf) / heights
            # A weight below zero leaves first: −∞ is the least growth of all.
            out = int(np.argmin(growth))
            positions, values, inverse = _without(out, positions, values, inverse)
        while values.size and values.min() <= 0.0:
            out = int(np.argmin(values))
            positions, values, inverse = _without(out, positions, values, inverse)
        kept[size] = Kept(positions, values)
    return kept


def _without(
    out: int, positions: Indices, values: Array, inverse: Array
) -> tuple[Indices, Array, Array]:
    rest = np.delete(np.arange(values.size), out)
    column = inverse[rest, out] / inverse[out, out]
    remaining = inverse[np.ix_(rest, rest)] - np.outer(column, inverse[out, rest])
    return positions[rest], values[rest] - values[out] * column, remaining
