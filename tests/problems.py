"""Generated problems that many tests share."""

from __future__ import annotations

import numpy as np

from corebayes.types import Array


def coins(rng: np.random.Generator, eta: Array) -> Array:
    """Labels of a logistic regression: true with probability 1 / (1 + e^−η)."""
    return rng.random(eta.shape) < 1.0 / (1.0 + np.exp(-eta))
