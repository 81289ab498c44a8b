"""How high the full posterior is at draws, above a place that all of them are compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from corebayes.scan.query import OfWidth
from corebayes.types import Array, Block, Indices, Model


@dataclass(frozen=True)
class Heights(OfWidth):
    """Σ_n c_n (f_n(θ_s) − f_n(θ_0)) for all draws. Cost: N·S potentials.

    A draw where a row has no finite log-likelihood gets −∞ and spoils no other.
    """

    model: Model
    draws: Array
    """θ_0 first."""

    @property
    def width(self) -> int:
        return len(self.draws)

    def answer(self, block: Block, numbers: Indices) -> Array:
        with np.errstate(all="ignore"):
            sums = self.model.sum_potentials(self.draws, block, block.counts)
            # Differences within a block, so that nothing is lost in the sum over many.
            return sums - sums[0]

    def merge(self, first: Array, second: Array) -> Array:
        with np.errstate(all="ignore"):
            return first + second


def log_posterior(ask: Callable[[Any], Array], model: Model, places: Array) -> Array:
    """log π of all rows at places (K, d), up to a constant. Cost: one pass of N·K potentials."""
    with np.errstate(all="ignore"):
        return ask(Heights(model, places)) + model.log_prior(places)
