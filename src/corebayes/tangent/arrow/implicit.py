"""The tangent space of a mixed model where pairs of wide parameters are too many to write down.

Crossed terms with hundreds of groups have tens of thousands of pairs of wide parameters, and a row
has a coordinate for each. Rows are then known by their predictors a and e in whitened coordinates
alone: with K = a aʹᵀ, and e eʹᵀ added for rows of one group,

    ⟨g, gʹ⟩ = c₁ᵀ K c₁ʹ + ½ tr (C₂ K C₂ʹ Kᵀ) + c₃ c₃ʹ (e·eʹ)³ / 6.

Only single elements, totals and residuals, have all their coordinates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corebayes.arrow.expectation import expected
from corebayes.arrow.layout import Split
from corebayes.arrow.sums import Expected, arrow_sums
from corebayes.tangent.arrow.coordinates import ArrowCoordinates
from corebayes.types import Array, Block, Indices

# Rows that are embedded, combined or projected at a time.
ROWS_AT_ONCE = 2_048
# Curvatures below this share of a row's largest are round-off.
PRECISION = 1e-9


class ArrowRidges(NamedTuple):
    """Rows by their predictors in whitened coordinates, and their expected derivatives."""

    wide: Array
    """(n, k, p): a."""
    own: Array
    """(n, k, q): e."""
    first: Array
    """(n, k)."""
    second: Array
    """(n, k, k)."""
    third: Array
    """(n,); zero with several predictors."""
    groups: Indices


class ImplicitSpace(ArrowCoordinates):
    """The polynomials of `ArrowSpace`, with rows that are never written out.

    Cost of inner products: n·m·k²·p flops; of one with an element: n·k·p² flops, if a row bends
    in k directions, at most as many as it has predictors.
    """

    @property
    def width(self) -> int:
        return 6 * self.model.num_predictors * self.layout.num_wide

    def embed(self, block: Block, *, reuse: bool = False) -> ArrowRidges:
        """Cost: n·k·p numbers."""
        parts = [self._embedded(block.take(part)) for part in _parts(len(block))]
        rows = ArrowRidges(*(np.concatenate(entries) for entries in zip(*parts, strict=True)))
        return _turned(rows) if self.model.num_predictors > 1 else rows

    def _embedded(self, block: Block) -> ArrowRidges:
        split = self.layout.split(self.model, block)
        whitened = self.gaussian.whiten(split)
        _, first, second, third = expected(self.model, block, self.gaussian, whitened)
        third = np.zeros(len(block)) if third is None else third
        return ArrowRidges(whitened.wide, whitened.own, first, second, third, split.groups)

    def take(self, vectors: ArrowRidges, positions: Indices | slice) -> ArrowRidges:
        *numbers, groups = vectors
        wide, own, first, second, third = (one[positions] for one in numbers)
        return ArrowRidges(wide, own, first, second, third, groups[positions])

    def combine(self, vectors: ArrowRidges, weights: Array) -> Array:
        total = np.zeros(self.num_common + self.layout.num_groups * self.num_own)
        for part in _parts(weights.size):
            total += self._combined(self.take(vectors, part), weights[part])
        return total

    def _combined(self, vectors: ArrowRidges, weights: Array) -> Array:
        wide, own, first, second, third, groups = vectors
        cubic = third if self._own_triples[3].size else None
        jets = Expected(np.zeros(weights.size), first, second, cubic)
        sums = arrow_sums(Split(wide, own, groups), jets, weights, self.layout.num_groups)
        return self.total_of(sums).element

    def project(self, vectors: ArrowRidges, element: Array) -> Array:
        common, own = self.in_parts(element)
        i, j, scales = self._pairs
        p = self.layout.num_wide
        pairs = np.zeros((p, p))
        pairs[i, j] = common[p:] * scales
        parts = _parts(len(vectors.groups))
        return np.concatenate(
            [self._projected(self.take(vectors, part), common[:p], pairs, own) for part in parts]
        )

    def _projected(self, vectors: ArrowRidges, single: Array, pairs: Array, own: Array) -> Array:
        a, e, first, second, third, groups = vectors
        p, q = self.layout.num_wide, self.layout.num_own
        bent = np.matmul(second, a)
        result = np.einsum("nk,nk->n", first, a @ single)
        result += np.einsum("nkp,nkp->n", a @ pairs, bent)
        if not q:
            return result
        missing = own[groups]
        result += np.einsum("nk,nkq,nq->n", first, e, missing[:, :q])
        i, j, scales = self._own_pairs
        bent_own = np.matmul(second, e)
        stop = q + i.size
        result += np.einsum(
            "nkf,nkf,nf->n", e[..., i], bent_own[..., j], missing[:, q:stop] * scales
        )
        beside = missing[:, stop : stop + q * p].reshape(-1, q, p)
        result += np.einsum("nkq,nkq->n", e, np.matmul(bent, beside.transpose(0, 2, 1)))
        i, j, k, scales = self._own_triples
        if scales.size:
            cubes = e[:, 0, i] * e[:, 0, j] * e[:, 0, k] * scales
            result += third * np.einsum("nf,nf->n", cubes, missing[:, stop + q * p :])
        return result

    def squared_norms(self, vectors: ArrowRidges) -> Array:
        inner = np.matmul(vectors.wide, vectors.wide.transpose(0, 2, 1))
        own = np.matmul(vectors.own, vectors.own.transpose(0, 2, 1))
        bent = np.matmul(vectors.second, inner + own)
        result = np.einsum("nk,nkj,nj->n", vectors.first, inner + own, vectors.first)
        result += 0.5 * np.einsum("nkj,njk->n", bent, bent)
        # Zero with several predictors, where there are no cubes.
        return result + np.square(vectors.third) * own[:, 0, 0] ** 3 / 6.0

    def gram(self, vectors: ArrowRidges, others: ArrowRidges | None = None) -> Array:
        others = vectors if others is None else others
        result = np.empty((vectors.groups.size, others.groups.size))
        for part in _parts(len(result)):
            result[part] = _inner(self.take(vectors, part), others)
        return result


def _turned(rows: ArrowRidges) -> ArrowRidges:
    """The same vectors by other predictors: one that has the whole slope, and the directions of
    curvature, which have one number each. A model whose parameters are its predictors touches many
    and bends in few."""
    curvatures, axes = np.linalg.eigh(rows.second)
    turn = axes.transpose(0, 2, 1)
    wide, own = np.matmul(turn, rows.wide), np.matmul(turn, rows.own)
    squares = np.square(wide).sum(axis=2) + np.square(own).sum(axis=2)
    sizes = np.abs(curvatures) * squares
    seen = sizes > PRECISION * sizes.max(axis=1, initial=0.0, keepdims=True)
    number = int(seen.sum(axis=1).max(initial=0))
    largest = np.argsort(-sizes, axis=1, kind="stable")[:, :number]
    slope = rows.first[:, None]
    second = np.zeros((len(sizes), 1 + number, 1 + number))
    places = np.arange(1, 1 + number)
    second[:, places, places] = np.take_along_axis(curvatures, largest, axis=1)
    return ArrowRidges(
        np.concatenate([slope @ rows.wide, _taken(wide, largest)], axis=1),
        np.concatenate([slope @ rows.own, _taken(own, largest)], axis=1),
        np.repeat([[1.0, *np.zeros(number)]], len(sizes), axis=0),
        second,
        rows.third,
        rows.groups,
    )


def _taken(predictors: Array, places: Indices) -> Array:
    return np.take_along_axis(predictors, places[:, :, None], axis=1)


def _inner(these: ArrowRidges, others: ArrowRidges) -> Array:
    """Curvatures of several predictors are diagonal; see `_turned`."""
    same = these.groups[:, None] == others.groups
    result = np.zeros(same.shape)
    for k, j in np.ndindex(these.first.shape[1], others.first.shape[1]):
        slopes = these.first[:, k], others.first[:, j]
        bends = these.second[:, k, k], others.second[:, j, j]
        steep, bent = (all(one.any() for one in pair) for pair in (slopes, bends))
        if not steep and not bent:
            continue
        # K_kj of every pair of rows, (n, m)
        inner = these.wide[:, k] @ others.wide[:, j].T
        inner += same * (these.own[:, k] @ others.own[:, j].T)
        if steep:
            result += np.outer(*slopes) * inner
        if bent:
            result += 0.5 * np.outer(*bends) * np.square(inner)
    if these.third.any():
        cubes = (these.own[:, 0] @ others.own[:, 0].T) ** 3
        result += same * np.outer(these.third, others.third) * cubes / 6.0
    return result


def _parts(num_rows: int) -> list[slice]:
    return [
        slice(first, first + ROWS_AT_ONCE) for first in range(0, max(num_rows, 1), ROWS_AT_ONCE)
    ]
