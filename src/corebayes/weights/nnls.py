"""Nonnegative least squares from inner products."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corebayes.deadline import check_time
from corebayes.types import Array, Indices
from corebayes.weights.block_pursuit import BlockPursuit
from corebayes.weights.pursuit import ONE_BY_ONE, PRECISION, Pursuit


def nonnegative_least_squares(gram: Array, cross: Array, start: Array | None = None) -> Array:
    """argmin_{v ≥ 0} ½ vᵀ gram v − crossᵀ v, warm-started at the support of `start`.

    Rows are scaled to unit norm, so the answer does not depend on the vectors' lengths; rows of
    norm zero get weight zero, and of duplicates one is used. Cost: O(M²) flops for each row that
    enters or leaves the support.
    """
    squared_norms = np.diag(gram)
    alive = squared_norms > 0.0
    norms = np.sqrt(np.where(alive, squared_norms, 1.0))
    unit_gram = gram / np.outer(norms, norms)
    unit_cross = np.where(alive, cross / norms, -np.inf)
    support = np.flatnonzero(alive & (start > 0.0)) if start is not None else np.empty(0, np.int64)
    values = np.empty(0) if start is None else start[support] * norms[support]
    solve = _in_blocks if cross.size > ONE_BY_ONE else _one_by_one
    taken, values = solve(unit_gram, unit_cross, support, values)
    weights = np.zeros_like(cross)
    weights[taken] = values / norms[taken]
    return weights


def _one_by_one(
    gram: Array, cross: Array, support: Indices, values: Array
) -> tuple[Indices, Array]:
    pursuit = Pursuit(lambda number: gram[:, number], cross)
    if support.size:
        pursuit.start_from(support, values, gram[:, support])
    # Each change of the support lowers the objective, so the number of changes is finite.
    for _ in range(10 * cross.size + 10):
        check_time()
        if not pursuit.advance():
            break
    return pursuit.taken, pursuit.values


def _in_blocks(gram: Array, cross: Array, support: Indices, values: Array) -> tuple[Indices, Array]:
    largest = float(np.abs(cross[np.isfinite(cross)]).max(initial=0.0))
    pursuit = BlockPursuit(Dense(gram, cross), PRECISION * largest)
    if support.size:
        pursuit.start_from(support, values)
    for _ in range(10 * cross.size + 10):
        if not pursuit.advance(cross.size):
            break
    return pursuit.reached[:2]


class Dense(NamedTuple):
    """Candidates whose inner products are all there."""

    all_products: Array
    cross: Array

    def slopes(self, taken: Indices, values: Array) -> Array:
        return self.cross - self.all_products[:, taken] @ values

    def gram(self, these: Indices, others: Indices) -> Array:
        return self.all_products[np.ix_(these, others)]
