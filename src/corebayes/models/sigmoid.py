"""The logistic function and its integral, without overflow and to full relative precision."""

from __future__ import annotations

import numpy as np

from corebayes.models.scratch import scratch
from corebayes.types import Array


def sigmoid_pair(x: Array) -> tuple[Array, Array]:
    """σ(x) and 1 − σ(x) = σ(−x), both accurate when small."""
    # exp(700) is finite; beyond it σ(x) is as good as zero.
    odds_against = np.exp(-np.maximum(x, -700.0))
    sigma = 1.0 / (1.0 + odds_against)
    return sigma, odds_against * sigma


def softplus(x: Array) -> Array:
    """log(1 + eˣ)."""
    # max(x, 0) + log(1 + e^{−|x|})
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def log1p_exp_minus_abs(x: Array, name: str) -> Array:
    """log(1 + e^{−|x|}) in the scratch buffer of this name."""
    result = np.abs(x, out=scratch(name, x.shape))
    np.negative(result, out=result)
    np.exp(result, out=result)
    return np.log1p(result, out=result)
