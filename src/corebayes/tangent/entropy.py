"""The entropy of draws in one or several places, up to a constant.

A Gaussian has the entropy ½ log |Σ|. Of two places far apart the covariance of all draws has their
distance, and a distribution with a spurious mode would seem to be the widest of all. There

    H = Σ_k p_k (½ log |Σ_k| − log p_k),      p_k the share of the draws that lie in place k.

Errors of p_k, and of Σ_k, cancel to first order in the free energy near π, since the same draws
are in both of its terms.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from corebayes.samplers.parts import squared_distances
from corebayes.types import Array, Gaussian


def log_volume(draws: Array, modes: Sequence[Gaussian] = ()) -> float:
    """The entropy less ½ d log 2πe; −∞ when there are too few draws. Cost: S·d² for each mode."""
    if len(modes) < 2:
        return _half_log_determinant(draws)
    volumes = np.array([float(np.linalg.slogdet(fit.factor)[1]) for fit in modes])
    distances = np.stack([squared_distances(fit, draws) for fit in modes])
    nearest = np.argmin(distances + 2.0 * volumes[:, None], axis=0)
    total = 0.0
    for place, volume in enumerate(volumes):
        mine = draws[nearest == place]
        if len(mine) == 0:
            continue
        share = len(mine) / len(draws)
        # Few draws have no covariance, but then their share is small.
        own = _half_log_determinant(mine) if len(mine) > 4 * draws.shape[1] else volume
        total += share * (own - np.log(share))
    return total


def _half_log_determinant(draws: Array) -> float:
    covariance = np.atleast_2d(np.cov(draws, rowvar=False, bias=True))
    sign, log_determinant = np.linalg.slogdet(covariance)
    return 0.5 * float(log_determinant) if sign > 0.0 else -np.inf
