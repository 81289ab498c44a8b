"""Rows that say much of some place, in proportion to how much: those that may carry a mode alone.

A mode of the posterior may rest on a handful of rows among a million, and rows at random have none
of them. For places θ_1 … θ_S that are far apart, and θ_0 among the mass, a row says of place s

    g_ns = c_n |f_n(θ_s) − f_n(θ_0)|,

and the rows of the largest g_ns / u_n, with u_n uniform, are a sample with probabilities that are
in proportion to it (priority sampling: Duffield, Lund and Thorup 2007). Each row has one u_n for
all places, so a row is in the sample of some place with probability max_s min(1, g_ns / τ_s).
Places are few, and one may not be near what a row makes high: how unlike others a row is by its
columns (`unlike.py`) counts like what is said of a place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from corebayes.scan.query import OfWidth
from corebayes.scan.unlike import Likeness
from corebayes.types import Array, Block, Indices, Model

# More than any row can say, and still a number when it is divided and squared.
MOST = 1e150


class Telling(NamedTuple):
    """The largest keys g / u of every place, largest first, and their rows; (K, S) each."""

    keys: Array
    numbers: Indices
    heights: Array
    """Σ_n c_n (f_n(θ_s) − f_n(θ_0)), (S,): −∞ where a row has no finite log-likelihood."""


@dataclass(frozen=True)
class TellingRows(OfWidth):
    """So many rows for each place, and one more whose key is the threshold τ. Cost: N·S
    potentials."""

    model: Model
    places: Array
    """θ_0 first."""
    number: int
    seed: int
    likeness: Likeness | None = None
    """What rows are like; None where only places count."""

    @property
    def width(self) -> int:
        return len(self.places) + (0 if self.likeness is None else self.likeness.width)

    def answer(self, block: Block, numbers: Indices) -> Telling:
        said = self._said(block)
        keys = self._gains(block, said) / uniforms(numbers, self.seed)[:, None]
        heights = said.sum(axis=0)
        heights = np.where(np.isfinite(heights), heights, -np.inf)
        return self._largest(keys, np.broadcast_to(numbers[:, None], keys.shape), heights)

    def merge(self, first: Telling, second: Telling) -> Telling:
        keys = np.concatenate([first.keys, second.keys])
        numbers = np.concatenate([first.numbers, second.numbers])
        return self._largest(keys, numbers, first.heights + second.heights)

    def gains(self, block: Block) -> Array:
        """g_ns, (n, S); where a row has no finite log-likelihood it says nothing."""
        return self._gains(block, self._said(block))

    def _said(self, block: Block) -> Array:
        """c_n (f_n(θ_s) − f_n(θ_0)), (n, S)."""
        with np.errstate(all="ignore"):
            potentials = self.model.potentials(self.places, block)
            return (potentials[:, 1:] - potentials[:, :1]) * block.multiplicity()[:, None]

    def _gains(self, block: Block, said: Array) -> Array:
        found = np.abs(said)
        if self.likeness is not None:
            with np.errstate(all="ignore"):
                unlike = self.likeness.unlikeness(block) * block.multiplicity()[:, None]
            found = np.hstack([found, unlike])
        return np.where(np.isfinite(found), np.minimum(found, MOST), 0.0)

    def _largest(self, keys: Array, numbers: Indices, heights: Array) -> Telling:
        number = self.number + 1
        if len(keys) > 2 * number:
            # Of most rows it is enough to know that others have larger keys.
            best = np.argpartition(keys, len(keys) - number, axis=0)[-number:]
            keys = np.take_along_axis(keys, best, axis=0)
            numbers = np.take_along_axis(numbers, best, axis=0)
        order = np.argsort(-keys, axis=0, kind="stable")[:number]
        return Telling(
            np.take_along_axis(keys, order, axis=0),
            np.take_along_axis(numbers, order, axis=0),
            heights,
        )


def uniforms(numbers: Indices, seed: int) -> Array:
    """A number in (0, 1) for each row that every worker knows: SplitMix64 of row and seed."""
    z = numbers.astype(np.uint64) + np.uint64(1)
    z = z * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54
