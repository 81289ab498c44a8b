"""Nonnegative least squares from inner products, by Lawson and Hanson's active set (1974)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from corebayes.types import Array


def nonnegative_least_squares(gram: Array, cross: Array, start: Array | None = None) -> Array:
    """argmin_{v ≥ 0} ½ vᵀ gram v − crossᵀ v, warm-started at the support of `start`.

    Rows are scaled to unit norm, so the answer does not depend on the vectors' lengths; rows of
    norm zero get weight zero. A relative ridge of 1e-12 settles duplicate and collinear vectors.
    Cost: M³/3 flops for every change of the support; few after a warm start.
    """
    norms = np.sqrt(np.maximum(np.diag(gram), 0.0))
    alive = norms > 0.0
    scale = np.where(alive, norms, 1.0)
    unit_gram = gram / np.outer(scale, scale)
    unit_gram.flat[:: len(norms) + 1] = 1.0 + 1e-12
    unit_cross = np.where(alive, cross / scale, 0.0)

    values = np.zeros_like(cross) if start is None else np.where(alive, start * scale, 0.0)
    passive = values > 0.0
    values = _descend(unit_gram, unit_cross, values, passive)
    tolerance = 1e-12 * max(float(np.abs(unit_cross).max(initial=0.0)), 1e-300)
    blocked = np.zeros_like(passive)
    # Each change of the support lowers the objective, so it never comes back; round-off can
    # undo an entry at once, and such a row is blocked until another one has moved.
    for _ in range(10 * len(norms) + 10):
        slopes = unit_cross - unit_gram @ values
        slopes[passive | blocked | ~alive] = -np.inf
        best = int(np.argmax(slopes)) if slopes.size else 0
        if slopes.size == 0 or slopes[best] <= tolerance:
            break
        passive[best] = True
        moved = _descend(unit_gram, unit_cross, values, passive)
        if passive[best]:
            blocked[:] = False
        else:
            blocked[best] = True
        values = moved
    return values / scale


def _descend(gram: Array, cross: Array, values: Array, passive: NDArray[np.bool_]) -> Array:
    """Minimise over the passive set, dropping (in place) every entry that reaches zero."""
    while True:
        support = np.flatnonzero(passive)
        if support.size == 0:
            return np.zeros_like(values)
        solution = _solve(gram[np.ix_(support, support)], cross[support])
        if solution.min() > 0.0:
            values = np.zeros_like(values)
            values[support] = solution
            return values
        current = values[support]
        falling = solution <= 0.0
        gaps = current[falling] - solution[falling]
        shares = np.divide(current[falling], gaps, out=np.zeros_like(gaps), where=gaps > 0.0)
        share = float(shares.min())
        current = current + share * (solution - current)
        current[np.flatnonzero(falling)[shares <= share]] = 0.0
        values = np.zeros_like(values)
        values[support] = np.maximum(current, 0.0)
        passive[support[values[support] <= 0.0]] = False


def _solve(gram: Array, cross: Array) -> Array:
    root, failed = lapack.dpotrf(gram, lower=1)
    if failed:
        return np.asarray(np.linalg.lstsq(gram, cross, rcond=1e-12)[0], dtype=np.float64)
    return lapack.dpotrs(root, cross, lower=1)[0]
