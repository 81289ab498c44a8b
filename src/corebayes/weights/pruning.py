"""Backward elimination: from many weighted vectors to few, giving up as little as possible."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np

from corebayes.deadline import check_time
from corebayes.types import Array, Indices

# One vector of so many leaves at a time.
SHARE = 100
# 1 / K_ii is the squared distance of a unit vector from the others' span: below a millionth of it
# the inverse has lost half of its digits. What is then added to the squared lengths.
NEARLY_DEPENDENT, DAMPING = 1e7, 1e-8


class Remaining(NamedTuple):
    """Positions that stay, and the least-squares weights there, all positive."""

    positions: Indices
    values: Array


def prune(gram: Array, values: Array, sizes: Collection[int]) -> dict[int, Remaining]:
    """Let vectors leave; what is kept when no more than each of the `sizes` are left.

    Without vector i the squared distance of the least squares grows by x_i² / K_ii, K = gram⁻¹,
    and the others' weights change by −(x_i / K_ii) K_i. Each time the vector with the least growth
    leaves, of many vectors one in a hundred, and then those whose weight would be negative.
    `values` are the least-squares weights of all, and `gram` the inner products of the (linearly
    independent) unit vectors.
    Cost: M³ flops for K, once, and M² for each vector that leaves.
    """
    if values.size <= min(sizes):
        return {size: Remaining(np.arange(values.size), values) for size in sizes}
    inverse: Array = np.asarray(np.linalg.inv(gram), dtype=np.float64)
    if not np.diag(inverse).max() < NEARLY_DEPENDENT:
        # Round-off would decide who leaves: weights that are damped where nothing holds them.
        damped = gram + np.diag(np.full(values.size, DAMPING))
        inverse = np.asarray(np.linalg.inv(damped), dtype=np.float64)
        values = inverse @ (gram @ values)
    positions = np.arange(values.size)
    kept: dict[int, Remaining] = {}
    for size in sorted(sizes, reverse=True):
        while positions.size > size:
            check_time()
            growth = np.where(values > 0.0, np.square(values), -np.inf) / np.diag(inverse)
            # A weight below zero leaves first: −∞ is the least growth of all.
            number = min(positions.size - size, max(1, positions.size // SHARE))
            out = np.sort(np.argsort(growth, kind="stable")[:number])
            positions, values, inverse = _without(out, positions, values, inverse)
        while values.size and values.min() <= 0.0:
            out = np.flatnonzero(values <= 0.0)
            out = out if positions.size > SHARE else out[np.argmin(values[out]), None]
            positions, values, inverse = _without(out, positions, values, inverse)
        kept[size] = Remaining(positions, values)
    return kept


def _without(
    out: Indices, positions: Indices, values: Array, inverse: Array
) -> tuple[Indices, Array, Array]:
    rest = np.delete(np.arange(values.size), out)
    across = inverse[np.ix_(rest, out)]
    # K_r,o K_oo⁻¹
    solved: Any = np.linalg.solve(inverse[np.ix_(out, out)], across.T)
    shares: Array = solved.T
    remaining = inverse[np.ix_(rest, rest)]
    remaining -= shares @ across.T
    return positions[rest], values[rest] - shares @ values[out], remaining
