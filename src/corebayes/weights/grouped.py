"""Least squares on vectors of which a few coordinates are everyone's and the rest one group's.

    min_{x}  ‖b_0 − Σ_i x_i a_i‖² + Σ_g ‖b_g − Σ_{i ∈ g} x_i e_i‖²

The Gram matrix of the vectors is block-diagonal over groups plus a matrix whose rank is the number
of common coordinates P, so with Woodbury's identity the solution for M vectors costs M·P² flops and
one small factorisation a group, not M³.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from corebayes.tangent.arrow.coordinates import GroupedElement
from corebayes.tangent.arrow.space import Grouped
from corebayes.types import Array, Indices

# Added to the squared length, one, of every vector: more vectors of a group than coordinates of its
# own are no basis. Steps of refinement take its effect out again.
RIDGE = 1e-9
REFINEMENTS = 2


@dataclass(frozen=True, eq=False)
class GroupedVectors:
    """Unit vectors u_n = g_n/‖g_n‖ in common and own coordinates, and the total to match."""

    common: Array
    """(n, P)."""
    own: Array
    """(n, F)."""
    groups: Indices
    total: GroupedElement

    @classmethod
    def of(cls, vectors: Grouped, total: GroupedElement) -> tuple[Self, Array]:
        """The vectors divided by their lengths, and the lengths."""
        lengths = np.sqrt(vectors.squared_norms())
        safe = np.where(lengths > 0.0, lengths, 1.0)[:, None]
        return cls(vectors.common / safe, vectors.own / safe, vectors.groups, total), lengths

    @property
    def num_groups(self) -> int:
        return len(self.total.own)

    def residual(self, taken: Indices, values: Array) -> GroupedElement:
        common = self.total.common - self.common[taken].T @ values
        own = self.total.own.copy()
        np.subtract.at(own, self.groups[taken], self.own[taken] * values[:, None])
        return GroupedElement(common, own)

    def alignments(self, missing: GroupedElement) -> Array:
        """⟨u_n, missing⟩ of every vector. Cost: n·(P + F) flops."""
        return self.common @ missing.common + np.einsum(
            "nf,nf->n", self.own, missing.own[self.groups]
        )


class _Bucket(NamedTuple):
    """Groups with about as many vectors, padded to the same number."""

    members: Indices
    """Positions among the vectors taken, (n,)."""
    row: Indices
    place: Indices
    inverse_root: Array
    """R⁻¹ of each group's Gram matrix RRᵀ, (groups, m, m)."""

    def whiten(self, columns: Array) -> Array:
        """R⁻¹ applied to the members' entries of (n, c)."""
        return self._apply(self.inverse_root, columns)

    def unwhiten(self, columns: Array) -> Array:
        """R⁻ᵀ applied to them."""
        return self._apply(self.inverse_root.transpose(0, 2, 1), columns)

    def _apply(self, matrices: Array, columns: Array) -> Array:
        padded = np.zeros((*matrices.shape[:2], columns.shape[1]))
        padded[self.row, self.place] = columns[self.members]
        return (matrices @ padded)[self.row, self.place]


class Solver:
    """The factorised problem on the vectors taken; these are ordered by group.

    Cost: M·P² + Σ_g m_g³ flops to make, M·P for each solution.
    """

    def __init__(self, vectors: GroupedVectors, taken: Indices):
        self._vectors, self._taken = vectors, taken
        self._common = vectors.common[taken]
        self._buckets = _buckets(vectors, taken)
        # R⁻¹A₀, so that I + A₀ᵀB⁻¹A₀ is positive definite however close B is to singular
        self._leaning = self._whiten(self._common)
        inner = np.eye(self._common.shape[1]) + self._leaning.T @ self._leaning
        self._inner = cho_factor(inner, lower=True, check_finite=False)

    def solve(self) -> Array:
        """The least-squares coefficients of the vectors taken."""
        vectors, taken = self._vectors, self._taken
        own = vectors.own[taken]
        groups = vectors.groups[taken]
        values = np.zeros(taken.size)
        for _ in range(1 + REFINEMENTS):
            missing = vectors.residual(taken, values)
            slopes = self._common @ missing.common
            slopes += np.einsum("nf,nf->n", own, missing.own[groups])
            values = values + self._apply(slopes)
        return values

    def losses(self, values: Array) -> Array:
        """How much ½‖missing‖² rises when a vector leaves: x² / (2 [H⁻¹]_ii). Cost: M·P²."""
        # B⁻¹ − B⁻¹A₀(I + A₀ᵀB⁻¹A₀)⁻¹A₀ᵀB⁻¹
        diagonal = np.empty(self._taken.size)
        leaning = np.empty_like(self._leaning)
        for bucket in self._buckets:
            squares = np.einsum("gji,gji->gi", bucket.inverse_root, bucket.inverse_root)
            diagonal[bucket.members] = squares[bucket.row, bucket.place]
            leaning[bucket.members] = bucket.unwhiten(self._leaning)
        correction = cho_solve(self._inner, leaning.T, check_finite=False)
        diagonal -= np.einsum("np,pn->n", leaning, correction)
        return np.square(values) / (2.0 * np.maximum(diagonal, 1e-12))

    def _apply(self, right: Array) -> Array:
        """(B + A₀A₀ᵀ)⁻¹ right."""
        local = self._whiten(right[:, None])[:, 0]
        pulled = cho_solve(self._inner, self._leaning.T @ local, check_finite=False)
        result = (local - self._leaning @ pulled)[:, None]
        for bucket in self._buckets:
            local[bucket.members] = bucket.unwhiten(result)[:, 0]
        return local

    def _whiten(self, columns: Array) -> Array:
        result = np.empty_like(columns)
        for bucket in self._buckets:
            result[bucket.members] = bucket.whiten(columns)
        return result


def _buckets(vectors: GroupedVectors, taken: Indices) -> list[_Bucket]:
    groups = vectors.groups[taken]
    counts = np.bincount(groups, minlength=vectors.num_groups)
    starts = np.cumsum(counts) - counts
    places = np.arange(taken.size) - starts[groups]
    result: list[_Bucket] = []
    lowest = 0
    while lowest < counts.max(initial=0):
        highest = max(4, 2 * lowest)
        chosen = np.flatnonzero((counts > lowest) & (counts <= highest))
        lowest = highest
        if chosen.size == 0:
            continue
        width = int(counts[chosen].max())
        row_of = np.full(vectors.num_groups, -1)
        row_of[chosen] = np.arange(chosen.size)
        members = np.flatnonzero(row_of[groups] >= 0)
        row, place = row_of[groups[members]], places[members]
        padded = np.zeros((chosen.size, width, vectors.own.shape[1]))
        padded[row, place] = vectors.own[taken[members]]
        gram = padded @ padded.transpose(0, 2, 1)
        # Empty places count as vectors that meet nobody.
        diagonal = np.full((chosen.size, width), 1.0)
        diagonal[row, place] = RIDGE
        gram[:, np.arange(width), np.arange(width)] += diagonal
        inverse_root = np.asarray(np.linalg.inv(np.linalg.cholesky(gram)), dtype=np.float64)
        result.append(_Bucket(members, row, place, inverse_root))
    return result
