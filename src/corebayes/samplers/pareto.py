"""The tails of importance ratios: their shape k̂, and Pareto smoothing of many sets at once.

The largest ratios of each set are replaced by quantiles of the generalised Pareto distribution that
fits them (Vehtari et al., "Pareto smoothed importance sampling", 2024), with its parameters as by
Zhang and Stephens, "A new and efficient estimation method for the generalized Pareto distribution"
(2009): b is averaged over a grid of values in proportion to their profile likelihood, and
k(b) = mean log(1 − b x). What `arviz_stats.psislw` does for one row at a time, for blocks of rows.
"""

from __future__ import annotations

import numpy as np

from corebayes.types import Array

# Shapes are drawn towards ½ as if by so many more values in the tail.
PRIOR_VALUES, PRIOR_SHAPE = 10.0, 0.5
FEWEST_TAIL = 5
# Ratios this far below the largest are zero in any sum.
NEGLIGIBLE = -700.0
# Log ratios that vary by less than this are given no shape.
FLAT = 1e-4
# The heaviest tail that an error can be given for.
HEAVY = 0.9


def tail_length(num_draws: int, efficiency: float = 1.0) -> int:
    """How many of the largest ratios are the tail: 3 √(S / efficiency), a fifth at most."""
    return int(min(num_draws / 5.0, 3.0 * np.sqrt(num_draws / efficiency)))


def pareto_k(log_ratios: Array, efficiency: float) -> float:
    """k̂ of the right tail of e^r; zero when r is constant, infinite when no tail can be fitted.

    `efficiency` is what a draw is worth beside an independent one.
    """
    if np.ptp(log_ratios) < FLAT:
        return 0.0
    number = tail_length(log_ratios.size, efficiency)
    tail = np.sort(log_ratios, axis=None)[-number:]
    if tail[tail.size // 4] < tail[-1] + np.log(np.finfo(float).eps):
        # One ratio is all of the tail, as far as numbers go: no shape fits it.
        return np.inf
    if number < FEWEST_TAIL:
        return np.inf
    with np.errstate(invalid="ignore"):
        _, shapes = smooth(log_ratios.reshape(1, -1).copy(), number)
    return float(shapes[0])


def smooth(log_ratios: Array, num_tail: int) -> tuple[Array, Array]:
    """Smoothed log weights (n, S), each row of sum one, and the shape k̂ of each row's tail (n,).

    Written into `log_ratios`. k̂ is zero where all ratios of a row are the same, and infinite where
    no distribution fits; such rows are left as they are.
    Cost: S comparisons and about 40 · num_tail logarithms a row.
    """
    values = log_ratios
    values -= values.max(axis=1, keepdims=True)
    np.maximum(values, NEGLIGIBLE, out=values)
    num_rows, num_draws = values.shape
    shapes = np.zeros(num_rows)
    if num_tail >= FEWEST_TAIL:
        first = num_draws - num_tail
        order = np.argpartition(values, (first - 1, first), axis=1)[:, first - 1 :]
        cutoffs = np.take_along_axis(values, order[:, :1], axis=1)
        tail = np.take_along_axis(values, order[:, 1:], axis=1)
        ranks = np.argsort(tail, axis=1)
        places = np.take_along_axis(order[:, 1:], ranks, axis=1)
        smoothed, shapes = _smoothed(np.take_along_axis(tail, ranks, axis=1), cutoffs)
        np.put_along_axis(values, places, smoothed, axis=1)
    values -= np.log(np.exp(values).sum(axis=1, keepdims=True))
    return values, shapes


def _smoothed(tail: Array, cutoffs: Array) -> tuple[Array, Array]:
    """Sorted log ratios (n, T) in place of these, and their shapes."""
    base = np.exp(cutoffs)
    # What exceeds the cutoff, without cancellation where all ratios are near one.
    excess = base * np.expm1(tail - cutoffs)
    flat = excess[:, -1] <= 0.0
    with np.errstate(all="ignore"):
        shapes, scales = _fit(excess)
        ticks = (np.arange(tail.shape[1], dtype=np.float64) + 0.5) / tail.shape[1]
        # The quantile function: σ ((1 − p)^(−k) − 1) / k
        steps = -np.log1p(-ticks)
        k = shapes[:, None]
        growth = np.broadcast_to(steps, tail.shape).copy()
        np.divide(np.expm1(k * steps), k, out=growth, where=k != 0.0)
        smoothed = np.log(base + scales[:, None] * growth)
    fitted = np.isfinite(shapes) & (scales > 0.0) & ~flat
    shapes = np.where(flat, 0.0, np.where(fitted, shapes, np.inf))
    # No ratio becomes larger than the largest that was seen.
    smoothed = np.minimum(smoothed, tail[:, -1:])
    return np.where(fitted[:, None], smoothed, tail), shapes


def _fit(excess: Array) -> tuple[Array, Array]:
    """Shapes k and scales σ of generalised Pareto distributions, for sorted excesses (n, T)."""
    num_tail = excess.shape[1]
    num_grid = 30 + int(np.sqrt(num_tail))
    quartile = excess[:, int(num_tail / 4 + 0.5) - 1]
    grid = 1.0 - np.sqrt(num_grid / (np.arange(num_grid) + 0.5))
    b = 1.0 / excess[:, -1:] + grid / (3.0 * quartile[:, None])
    # One value of the grid after the other keeps what is computed in the nearest cache.
    k = np.stack([np.log1p(-b[:, [j]] * excess).mean(axis=1) for j in range(num_grid)], axis=1)
    likelihood = num_tail * (np.log(-b / k) - k - 1.0)
    weights = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    mean = np.einsum("nj,nj->n", weights, b)
    shape = np.log1p(-mean[:, None] * excess).mean(axis=1)
    scale = -shape / mean
    total = num_tail + PRIOR_VALUES
    return (num_tail * shape + PRIOR_VALUES * PRIOR_SHAPE) / total, scale


def tail_inflation(shape: float, num_draws: int) -> float:
    """What a standard error must be multiplied with when ratios have a tail of shape k̂ in (0, 1).

    The error of a mean falls like S^(−rate/2), where rate < 1 even for k̂ < ½ and finite S
    (Vehtari et al. 2024, section on the convergence rate): S^((1 − rate)/2).
    """
    k, n = shape, float(num_draws)
    if k <= 0.0:
        return 1.0
    if k >= 1.0:
        return np.inf
    if abs(k - 0.5) < 1e-3:
        rate = 1.0 - 1.0 / np.log(n)
    else:
        top = 2.0 * (k - 1.0) * n ** (2.0 * k + 1.0) + (1.0 - 2.0 * k) * n ** (2.0 * k) + n**2
        rate = top / ((n - 1.0) * (n - n ** (2.0 * k)))
    return float(n ** (0.5 * (1.0 - min(max(rate, 0.0), 1.0))))
