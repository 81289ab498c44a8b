"""Nonnegative least squares from inner products."""

from __future__ import annotations

import numpy as np

from corebayes.deadline import check_time
from corebayes.types import Array
from corebayes.weights.pursuit import Pursuit


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
    pursuit = Pursuit(lambda number: unit_gram[:, number], unit_cross)
    if start is not None:
        support = np.flatnonzero(alive & (start > 0.0))
        pursuit.start_from(support, start[support] * norms[support], unit_gram[:, support])
    # Each change of the support lowers the objective, so the number of changes is finite.
    for _ in range(10 * cross.size + 10):
        check_time()
        if not pursuit.advance():
            break
    weights = np.zeros_like(cross)
    weights[pursuit.taken] = pursuit.values / norms[pursuit.taken]
    return weights
