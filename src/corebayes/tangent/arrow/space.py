"""The tangent space of a mixed model whose rows have all their coordinates written out.

Vectors of different groups meet in the common coordinates only, so a row has P of these and F of
its own group; see `coordinates` for what they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corebayes.arrow.expectation import expected, whitened_split
from corebayes.tangent.arrow.coordinates import ArrowCoordinates
from corebayes.types import Array, Block, Indices


class Grouped(NamedTuple):
    """Vectors of rows."""

    common: Array
    """(n, P)."""
    own: Array
    """(n, F): in the coordinates of the row's own group."""
    groups: Indices

    def squared_norms(self) -> Array:
        common = np.einsum("np,np->n", self.common, self.common)
        return common + np.einsum("nf,nf->n", self.own, self.own)


class ArrowSpace(ArrowCoordinates):
    """Rows by their P + F coordinates."""

    @property
    def width(self) -> int:
        """While it is embedded a row has its vector, and its predictors' designs twice."""
        return self.num_common + self.num_own + 4 * self.layout.num_wide

    def embed(self, block: Block, *, reuse: bool = False) -> Grouped:
        """Cost: n·(P + F) numbers."""
        split = self.layout.split(self.model, block)
        whitened, _ = whitened_split(self.gaussian, split)
        _, first, second, third = expected(self.model, block, self.gaussian, whitened)
        a, e = whitened.wide, whitened.own
        # C₂ a and C₂ e, (n, k, ·)
        bent = np.einsum("nkj,njp->nkp", second, a)
        bent_own = np.einsum("nkj,njq->nkq", second, e)
        i, j, scales = self._pairs
        common = np.empty((len(block), self.num_common))
        p = self.layout.num_wide
        common[:, :p] = np.einsum("nk,nkp->np", first, a)
        common[:, p:] = _products(a, bent, i, j) * scales
        i, j, scales = self._own_pairs
        own = [
            np.einsum("nk,nkq->nq", first, e),
            _products(e, bent_own, i, j) * scales,
            np.einsum("nkq,nkp->nqp", e, bent).reshape(len(block), e.shape[2] * p),
        ]
        if third is not None:
            i, j, k, scales = self._own_triples
            own.append(third[:, None] * e[:, 0][:, i] * e[:, 0][:, j] * e[:, 0][:, k] * scales)
        return Grouped(common, np.concatenate(own, axis=1), split.groups)

    def take(self, vectors: Grouped, positions: Indices) -> Grouped:
        return Grouped(vectors.common[positions], vectors.own[positions], vectors.groups[positions])

    def combine(self, vectors: Grouped, weights: Array) -> Array:
        own = np.zeros((self.layout.num_groups, self.num_own))
        np.add.at(own, vectors.groups, vectors.own * weights[:, None])
        return np.concatenate([weights @ vectors.common, own.ravel()])

    def project(self, vectors: Grouped, element: Array) -> Array:
        missing = self.in_parts(element)
        own = np.einsum("nf,nf->n", vectors.own, missing.own[vectors.groups])
        return vectors.common @ missing.common + own

    def squared_norms(self, vectors: Grouped) -> Array:
        return vectors.squared_norms()

    def gram(self, vectors: Grouped, others: Grouped | None = None) -> Array:
        others = vectors if others is None else others
        same = vectors.groups[:, None] == others.groups
        return vectors.common @ others.common.T + same * (vectors.own @ others.own.T)


def _products(rows: Array, bent: Array, i: Indices, j: Indices) -> Array:
    """Σ_k rows_{k,i} bent_{k,j}."""
    result = rows[:, 0][:, i] * bent[:, 0][:, j]
    for k in range(1, rows.shape[1]):
        result += rows[:, k][:, i] * bent[:, k][:, j]
    return result
