"""Radial basis features for linear regression (Campbell and Beronov 2019, section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from corebayes.types import Array

PAPER_SCALES = (0.2, 0.4, 0.8, 1.2, 1.6, 2.0)
# So wide that the function is nearly constant on the data: the regression's intercept.
CONSTANT_SCALE = 100.0


class RadialBasis(NamedTuple):
    """Centres (K, p) and scales (K,) of K radial functions."""

    centers: Array
    scales: Array


def radial_basis(X: ArrayLike, centers: ArrayLike, scales: ArrayLike) -> Array:
    """Features b_k(x) = exp(−‖x − μ_k‖² / (2σ_k²)), shape (n, K). Cost: n·K·p flops, n·K exp."""
    points, middles = _locations(X, "X"), _locations(centers, "centers")
    widths = np.broadcast_to(np.asarray(scales, dtype=np.float64), len(middles))
    if points.shape[1] != middles.shape[1]:
        raise ValueError(
            f"X has {points.shape[1]} columns but centers have {middles.shape[1]}; "
            "both must have the same coordinates"
        )
    if not np.all(widths > 0.0):
        raise ValueError(f"scales must be positive, the smallest is {widths.min()}")
    # Squared distances lose no digits when the coordinates are small.
    origin = middles.mean(axis=0)
    points, middles = points - origin, middles - origin
    # ‖x − μ‖² = ‖x‖² − 2 x·μ + ‖μ‖²
    squared = np.einsum("ni,ni->n", points, points)[:, None] - 2.0 * (points @ middles.T)
    squared += np.einsum("ki,ki->k", middles, middles)
    np.maximum(squared, 0.0, out=squared)
    squared *= -0.5 / widths**2
    return np.exp(squared, out=squared)


def paper_radial_basis(
    rng: np.random.Generator,
    X: ArrayLike,
    per_scale: int = 50,
    scales: Sequence[float] = PAPER_SCALES,
) -> RadialBasis:
    """The paper's basis: `per_scale` rows of X as centres of each scale, and at last one nearly
    constant function around the mean of X; 301 functions by default."""
    points = _locations(X, "X")
    if not 0 < per_scale <= len(points):
        raise ValueError(
            f"per_scale must be between 1 and the {len(points)} rows of X, got {per_scale}"
        )
    centers = [points[rng.choice(len(points), size=per_scale, replace=False)] for _ in scales]
    centers.append(points.mean(axis=0, keepdims=True))
    return RadialBasis(
        np.concatenate(centers), np.append(np.repeat(scales, per_scale), CONSTANT_SCALE)
    )


def _locations(values: ArrayLike, argument: str) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or not len(array):
        raise ValueError(f"{argument} must be rows of coordinates, got shape {array.shape}")
    return array
