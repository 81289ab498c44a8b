"""The regularised horseshoe on all rows of a linear regression, by a Gibbs sampler.

Every conditional is a normal one or one of a single number, drawn on a fine grid that is shifted at
random each time; so there is no step size, no tuning and nothing that diverges, and the local
scales have no smallest value. It knows the rows by XᵀX and Xᵀy alone. Slow to mix, quick to run.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

# Grids of log λ and log τ, of log c², and of log σ: half widths and steps.
WIDE, WIDE_STEP = 14.0, 0.1
SLAB_WIDE, SLAB_STEP = 8.0, 0.05
NOISE_WIDE, NOISE_STEP = 1.0, 0.002
MIDDLE_SD = 2.5


class Scales(NamedTuple):
    """Of the prior: τ ~ C⁺(global), c² ~ InvGamma(df/2, df·slab²/2), σ ~ t⁺_noise_df(1)."""

    overall: float
    slab: float
    slab_df: float
    noise_df: float


def horseshoe_gibbs(
    X: Any, y: Any, scales: Scales, *, draws: int, chains: int, thin: int = 10, seed: int = 0
) -> np.ndarray:
    """Draws of (β, log σ), (chains, draws, D + 1), of standardised columns and target.

    Cost: D³ + 280·D exponentials an iteration, and `thin` of these a draw, a tenth more to warm up.
    """
    design = np.column_stack([X, np.ones(len(y))])
    sums = design.T @ design, design.T @ y, float(y @ y), float(len(y))
    number, warm_up = draws * thin, draws * thin // 10
    runs = [
        _run(seed + chain, number + warm_up, *sums, np.array(scales))[warm_up::thin]
        for chain in range(chains)
    ]
    return np.stack(runs)


@numba.njit
def _pick(values: Any, heights: Any) -> float:
    """One of the values, in proportion to e^height."""
    masses = np.cumsum(np.exp(heights - heights.max()))
    return values[np.searchsorted(masses, masses[-1] * np.random.random())]


@numba.njit
def _grid(middle: float, wide: float, step: float) -> Any:
    return middle + np.arange(-wide, wide, step) + step * (np.random.random() - 0.5)


@numba.njit
def _run(
    seed: int, number: int, gram: Any, cross: Any, square: float, rows: float, scales: Any
) -> Any:
    np.random.seed(seed)
    overall, slab, slab_df, noise_df = scales
    size = len(gram) - 1
    local, tau, width, noise = np.zeros(size), np.log(overall), 2.0 * np.log(slab), 0.0
    found = np.empty((number, size + 1))
    for place in range(number):
        # β | λ, τ, c, σ is normal.
        precision = gram * np.exp(-2.0 * noise)
        for j in range(size):
            precision[j, j] += np.exp(-2.0 * (tau + local[j])) + np.exp(-width)
        precision[size, size] += MIDDLE_SD**-2
        root = np.linalg.cholesky(precision)
        beta = np.linalg.solve(precision, cross * np.exp(-2.0 * noise))
        beta += np.linalg.solve(root.T, np.random.randn(size + 1))
        squares = beta[:size] ** 2
        for j in range(size):
            at = _grid(0.0, WIDE, WIDE_STEP)
            local[j] = _pick(
                at, at - np.log1p(np.exp(2.0 * at)) + _normal(squares[j], tau + at, width)
            )
        at = _grid(np.log(overall), WIDE, WIDE_STEP)
        heights = at - np.log1p(np.exp(2.0 * at) / overall**2)
        for j in range(size):
            heights += _normal(squares[j], at + local[j], width)
        tau = _pick(at, heights)
        at = _grid(2.0 * np.log(slab), SLAB_WIDE, SLAB_STEP)
        heights = -0.5 * slab_df * (at + slab**2 * np.exp(-at))
        for j in range(size):
            precise = np.exp(-2.0 * (tau + local[j])) + np.exp(-at)
            heights += 0.5 * np.log(precise) - 0.5 * squares[j] * precise
        width = _pick(at, heights)
        left = square - 2.0 * (beta @ cross) + beta @ (gram @ beta)
        at = _grid(0.5 * np.log(left / rows), NOISE_WIDE, NOISE_STEP)
        heights = (1.0 - rows) * at - 0.5 * left * np.exp(-2.0 * at)
        heights -= 0.5 * (noise_df + 1.0) * np.log1p(np.exp(2.0 * at) / noise_df)
        noise = _pick(at, heights)
        found[place, :size], found[place, size] = beta[:size], noise
    return found


@numba.njit
def _normal(square: float, scales: Any, width: float) -> Any:
    """log N(x; 0, v) with 1/v = 1/scale² + 1/c², up to a constant."""
    precise = np.exp(-2.0 * scales) + np.exp(-width)
    return 0.5 * np.log(precise) - 0.5 * square * precise
