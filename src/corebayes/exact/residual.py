"""r(θ) = Σ_n c_n f_n(θ) − Σ_i w_i f_i(θ) at many θ, in one pass over the rows.

Sums over millions of rows lose the digits in which neighbouring θ differ, so every block subtracts
what it has at one θ that all passes share, the anchor, before anything is added up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from corebayes.coreset import Coreset
from corebayes.rows import Rows
from corebayes.scan.query import BadPotentialError, OfWidth
from corebayes.types import Array, Block, Indices, Model

# Draws of one pass. A block has at least 64 rows, so these are blocks of 17 MB.
PASS_DRAWS = 32_768


class AnchoredSums(NamedTuple):
    """Of some rows: Σ c_n (f_n(θ_s) − f_n(anchor)), Σ c_n f_n(anchor) and Σ c_n log_base_n."""

    relative: Array
    at_anchor: float
    base: float


@dataclass(frozen=True)
class LogLikelihoods(OfWidth):
    """The log-likelihood of all rows at draws (S, d). Cost: N·(S + 1) potentials.

    What is not a finite number at a draw, but is at the anchor, makes that draw's sum so too.
    """

    model: Model
    anchor: Array
    draws: Array

    @property
    def width(self) -> int:
        return len(self.draws) + 1

    def answer(self, block: Block, numbers: Indices) -> AnchoredSums:
        # The anchor comes with the others: a model may compare rows with the middle of the draws.
        draws = np.concatenate([self.anchor[None], self.draws])
        with np.errstate(all="ignore"):
            sums = self.model.sum_potentials(draws, block, block.counts)
            if not np.isfinite(sums[0]):
                raise BadPotentialError(self._bad_row(block, numbers))
            base = float(block.multiplicity() @ self.model.log_base(block))
            return AnchoredSums(sums[1:] - sums[0], float(sums[0]), base)

    def merge(self, first: AnchoredSums, second: AnchoredSums) -> AnchoredSums:
        with np.errstate(all="ignore"):
            both: Any = zip(first, second, strict=True)
            return AnchoredSums(*(a + b for a, b in both))

    def _bad_row(self, block: Block, numbers: Indices) -> int:
        potentials = self.model.potentials(self.anchor[None], block)[:, 0]
        return int(numbers[int(np.argmax(~np.isfinite(potentials)))])


@dataclass
class Residual:
    """r of a coreset and the rows it stands for, and how often all rows were evaluated."""

    coreset: Coreset
    rows: Rows
    anchor: Array
    """A θ at which every row has a finite density, in the middle of π_w."""
    at_anchor: float = np.nan
    """r(anchor), once anything was asked."""
    base: float = np.nan
    """Σ_n c_n (log p(x_n | θ) − f_n(θ)), which no θ changes."""
    num_passes: int = field(default=0)
    num_evaluations: int = field(default=0)

    def at(self, draws: Array) -> Array:
        """r(θ_s) − r(anchor), shape (S,); −∞ where a row has no density.

        Cost: one pass of N·S potentials for every 32,768 draws.
        """
        parts = [
            self._pass(draws[first : first + PASS_DRAWS])
            for first in range(0, len(draws), PASS_DRAWS)
        ]
        return np.concatenate([np.empty(0), *parts])

    def _pass(self, draws: Array) -> Array:
        coreset = self.coreset
        heights = self.rows.ask(LogLikelihoods(coreset.model, self.anchor, draws))
        self.num_passes += 1
        self.num_evaluations += len(draws)
        with np.errstate(all="ignore"):
            both = np.concatenate([self.anchor[None], draws])
            ours = coreset.model.sum_potentials(both, coreset.rows, coreset.weights)
            values = heights.relative - (ours[1:] - ours[0])
        self.at_anchor = heights.at_anchor - float(ours[0])
        self.base = heights.base
        return np.where(np.isfinite(values), values, -np.inf)
