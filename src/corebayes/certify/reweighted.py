"""The draws of a certificate, with weights that make them draws of all rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from corebayes.types import Array


class Reweighted(NamedTuple):
    """Draws at which all rows were evaluated; under the weights they are of their posterior."""

    draws: Array
    """Of the unconstrained parameters, (S, d), in the order of `model.parameter_names`."""
    weights: Array
    """∝ π / q, summing to one, (S,)."""

    @classmethod
    def of(cls, draws: Array, log_weights: Array, ratios: Array) -> Reweighted:
        """Draws of q with log π_w / q and log π / π_w, each up to a constant."""
        logs = (log_weights + ratios).ravel()
        return cls(draws.reshape(logs.size, -1), np.exp(logs - logsumexp(logs)))
