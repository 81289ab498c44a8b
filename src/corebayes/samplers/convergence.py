"""What draws are worth: agreement of chains, errors of means.

Vehtari et al., "Rank-normalization, folding, and localization: an improved R̂ for assessing
convergence of MCMC" (2021), through arviz-stats, whose import takes a second: it waits for chains.
Values are (chains, draws) or (chains, draws, …).
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from corebayes.types import Array


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


def _stats() -> Any:
    return importlib.import_module("arviz_stats.base").array_stats
