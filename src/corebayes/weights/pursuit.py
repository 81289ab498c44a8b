"""Nonnegative orthogonal pursuit: few of many vectors whose weighted sum is close to a total.

Greedy for min_{w ≥ 0, ‖w‖_0 ≤ M} ‖total − Σ_i w_i g_i‖²: take the vector best aligned with what is
missing, then solve the nonnegative least squares on all taken ones; vectors whose weight becomes
zero leave again. It works in any tangent space, through its inner products alone.
"""

from __future__ import annotations

import numpy as np

from corebayes.types import Array, Block, Indices, TangentSpace
from corebayes.weights.nnls import nonnegative_least_squares


def orthogonal_pursuit(
    space: TangentSpace, pool: Block, total: Array, size: int
) -> tuple[Indices, Array]:
    """Positions in the pool and their positive weights, at most `size`.

    Stops early when no vector of the pool is aligned with what is missing.
    Cost of a point: one projection of the pool, M²·d and M³/3 flops.
    """
    vectors = space.embed(pool)
    norms = np.sqrt(space.squared_norms(vectors))
    reach = np.where(norms > 0.0, norms, np.inf)
    taken, weights = np.empty(0, dtype=np.int64), np.empty(0)
    residual, smallest = total, 1e-12 * float(np.linalg.norm(total))
    # Points may leave, so more points enter than stay; twice as many bounds the work.
    for _ in range(2 * size):
        scores = space.project(vectors, residual) / reach
        scores[taken] = -np.inf
        best = int(np.argmax(scores))
        if scores[best] <= smallest:
            break
        taken, weights = np.append(taken, best), np.append(weights, 0.0)
        chosen = space.embed(pool.take(taken))
        weights = nonnegative_least_squares(
            space.gram(chosen), space.project(chosen, total), weights
        )
        residual = total - space.combine(chosen, weights)
        taken, weights = taken[weights > 0.0], weights[weights > 0.0]
        if taken.size >= size:
            break
    return taken, weights
