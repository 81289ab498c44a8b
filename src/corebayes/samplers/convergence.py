"""What draws are worth: agreement of chains, errors of means, tails of importance ratios.

Vehtari et al., "Rank-normalization, folding, and localization: an improved R̂ for assessing
convergence of MCMC" (2021) and "Pareto smoothed importance sampling" (2024), through arviz-stats.
Values are (chains, draws) or (chains, draws, …).
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from corebayes.types import Array

# Importance ratios that vary by less than this are given no shape.
FLAT = 1e-4
# The heaviest tail that an error can be given for.
HEAVY = 0.9


def max_rhat(values: Array) -> float:
    """The largest rank-normalised split-R̂ over all axes but the first two.

    Infinite when chains are stuck at different values, 1 when everything is constant. Of one chain
    the halves count as two.
    """
    values = values.reshape(*values.shape[:2], -1)
    if len(values) == 1 and values.shape[1] > 1:
        half = values.shape[1] // 2
        values = np.concatenate([values[:, :half], values[:, -half:]])
    moving = np.ptp(values, axis=1).min(axis=0) > 0.0
    stuck = values[:, :, ~moving]
    if stuck.size and np.any(np.ptp(stuck, axis=(0, 1)) > 0.0):
        return np.inf
    if not np.any(moving):
        return 1.0
    return float(np.max(_stats().rhat(values[:, :, moving], chain_axis=0, draw_axis=1)))


def mean_ess(values: Array) -> float:
    """The effective sample size for the mean, averaged over all axes but the first two."""
    values = values.reshape(*values.shape[:2], -1)
    moving = values[:, :, np.ptp(values, axis=(0, 1)) > 0.0]
    number = values.shape[0] * values.shape[1]
    if moving.shape[2] == 0:
        return float(number)
    sizes: Array = _stats().ess(moving, chain_axis=0, draw_axis=1, method="mean")
    return float(np.mean(sizes))


def standard_error(values: Array, *, independent: bool) -> float:
    """Of the mean of all values; with their autocorrelation unless they are independent."""
    if np.ptp(values) == 0.0:
        return 0.0
    if independent:
        return float(values.std(ddof=1) / np.sqrt(values.size))
    return float(_stats().mcse(values, chain_axis=0, draw_axis=1, method="mean"))


def efficiency(values: Array, *, independent: bool) -> float:
    """Effective over actual number of values, for their mean, at most 1."""
    if independent or np.ptp(values) == 0.0:
        return 1.0
    share = _stats().ess(values, chain_axis=0, draw_axis=1, method="mean", relative=True)
    return float(min(share, 1.0))


def pareto_k(log_ratios: Array, efficiency: float) -> float:
    """k̂ of the right tail of e^r; zero when r is constant, infinite when no tail can be fitted."""
    if np.ptp(log_ratios) < FLAT:
        return 0.0
    ordered = np.sort(log_ratios, axis=None)
    tail = ordered[-int(min(ordered.size / 5, 3.0 * np.sqrt(ordered.size / efficiency))) :]
    if tail[tail.size // 4] < tail[-1] + np.log(np.finfo(float).eps):
        # One ratio is all of the tail, as far as numbers go: no shape fits it.
        return np.inf
    with np.errstate(all="ignore"):
        try:
            # psislw takes log-likelihoods and negates them: its log ratios are −r.
            _, shape = _stats().psislw(-log_ratios.ravel(), r_eff=efficiency)
        except ValueError:
            return np.inf
    return float(shape) if np.isfinite(shape) else np.inf


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


def _stats() -> Any:
    return importlib.import_module("arviz_stats.base").array_stats
