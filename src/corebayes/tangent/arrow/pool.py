"""Candidates for a coreset of a mixed model: some rows of every group, found in one pass.

Every row has a key from its number; the rows with the smallest keys of each group are a random
sample of it. Divided by the length of the row's vector, exponential keys make the sample one in
proportion to these lengths, without replacement (Efraimidis and Spirakis 2006): rare labels and
outlying rows are in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from corebayes.arrow.expectation import expected
from corebayes.arrow.gaussian import ArrowGaussian
from corebayes.arrow.layout import Layout
from corebayes.arrow.sums import ArrowSums, arrow_sums
from corebayes.models.structure import StructuredModel
from corebayes.types import Array, Block, Indices, Points

# Few merges of many candidates.
BLOCK_ROWS = 16_384


class Pool(NamedTuple):
    """Rows with their keys and groups."""

    points: Points
    keys: Array
    groups: Indices
    """(n, terms)."""

    def kept(self, per_group: tuple[int, ...]) -> Pool:
        """Those among the smallest keys of a group of any term, in the order of the data."""
        if not self.groups.shape[1]:
            near = _rank(self.keys, np.zeros(self.keys.size, dtype=np.int64)) < per_group[0]
        else:
            near = np.zeros(self.keys.size, dtype=bool)
            for term, number in enumerate(per_group):
                near |= _rank(self.keys, self.groups[:, term]) < number
        kept = np.flatnonzero(near & np.isfinite(self.keys))
        return Pool(self.points.take(kept), self.keys[kept], self.groups[kept])

    def append(self, other: Pool) -> Pool:
        return Pool(
            self.points.append(other.points),
            np.concatenate([self.keys, other.keys]),
            np.concatenate([self.groups, other.groups]),
        )


class Looked(NamedTuple):
    """What a pass found."""

    sums: ArrowSums | None
    pool: Pool | None
    counts: Array
    """Σ c of each group of the main term."""
    heights: Array | None
    """Σ c f at each of the draws."""


@dataclass(frozen=True, eq=False)
class GroupLook:
    """One pass: sums of the rows' expected derivatives under a Gaussian, and candidates.

    Without a Gaussian candidates are uniform within groups and there are no sums. Cost: N·p² flops,
    N·S potentials, and a sort of the candidates for every block.
    """

    model: StructuredModel
    layout: Layout
    gaussian: ArrowGaussian | None
    per_group: tuple[int, ...] | None
    """Candidates of every group of each term; None for no candidates."""
    seed: int
    draws: Array | None = None
    """(S, d): where the potentials are summed as well."""

    @property
    def width(self) -> int:
        return 6 * self.layout.num_wide + 40

    @property
    def block_rows(self) -> int:
        return max(64, min(BLOCK_ROWS, 4_000_000 // self.width))

    def answer(self, block: Block, numbers: Indices) -> Looked:
        split = self.layout.split(self.model, block)
        counted = block.multiplicity()
        counts = np.bincount(split.groups, counted, self.layout.num_groups).astype(np.float64)
        sums, lengths, heights = None, None, None
        if self.draws is not None:
            with np.errstate(over="ignore"):
                heights = self.model.sum_potentials(self.draws, block, block.counts)
        if self.gaussian is not None:
            whitened = self.gaussian.whiten(split)
            jets = expected(self.model, block, self.gaussian, whitened)
            sums = arrow_sums(split, jets, block.counts, self.layout.num_groups)
            # ‖g‖² = c₁ᵀKc₁ + ½ tr (C₂K)², K the covariance of the row's predictors
            covariance = np.matmul(whitened.wide, whitened.wide.transpose(0, 2, 1))
            covariance += np.matmul(whitened.own, whitened.own.transpose(0, 2, 1))
            bent = np.matmul(jets.second, covariance)
            lengths = np.einsum("nk,nkj,nj->n", jets.first, covariance, jets.first)
            lengths += 0.5 * np.einsum("nkj,njk->n", bent, bent)
        if self.per_group is None:
            return Looked(sums, None, counts, heights)
        keys = _exponentials(numbers, self.seed)
        if lengths is not None:
            with np.errstate(divide="ignore"):
                keys = keys / np.sqrt(lengths)
        keys[counted <= 0.0] = np.inf
        groups = np.asarray(self.model.touch(block).groups, dtype=np.int64)
        pool = Pool(Points(numbers, block), keys, groups)
        return Looked(sums, pool.kept(self.per_group), counts, heights)

    def merge(self, first: Looked, second: Looked) -> Looked:
        sums, pool = first.sums, first.pool
        if sums is not None and second.sums is not None:
            sums = sums.plus(second.sums)
        if pool is not None and second.pool is not None and self.per_group is not None:
            pool = pool.append(second.pool).kept(self.per_group)
        heights = first.heights
        if heights is not None and second.heights is not None:
            heights = heights + second.heights
        return Looked(sums, pool, first.counts + second.counts, heights)


def _rank(keys: Array, groups: Indices) -> Indices:
    """How many of its group have a smaller key."""
    order = np.lexsort((keys, groups))
    sorted_groups = groups[order]
    first = np.r_[True, sorted_groups[1:] != sorted_groups[:-1]]
    places = np.arange(order.size)
    starts = np.maximum.accumulate(np.where(first, places, 0))
    ranks = np.empty(order.size, dtype=np.int64)
    ranks[order] = places - starts
    return ranks


def _exponentials(numbers: Indices, seed: int) -> Array:
    """Exponential random numbers of the rows' numbers and the seed alone (splitmix64)."""
    with np.errstate(over="ignore"):
        state = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        state += np.uint64(seed) * np.uint64(0xD1B54A32D192ED03)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
        state ^= state >> np.uint64(31)
    return -np.log((state >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54)
