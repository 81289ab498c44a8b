"""Rows' predictors in many wide parameters, most of which a row does not touch.

Of crossed terms a row touches one group each, so among hundreds of wide parameters its design has
the shared columns and a few others that are not zero. Products cost what these are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from corebayes.types import Array, Indices


@dataclass(frozen=True, eq=False)
class SparseWide:
    """(n, k, p) numbers of which s + J are kept for each predictor."""

    shared: Array
    """(n, k, s): the first s columns."""
    values: Array
    """(n, k, J): further entries,"""
    columns: Indices
    """(n, J): and the columns that they are in."""
    num_columns: int

    @property
    def shape(self) -> tuple[int, int, int]:
        return *self.shared.shape[:2], self.num_columns

    def __matmul__(self, other: Array) -> Array:
        """With (p,) or (p, c). Cost: n·k·(s + J)·c flops."""
        result = self.shared @ other[: self.shared.shape[2]]
        for place in range(self.columns.shape[1]):
            rows, values = other[self.columns[:, place]], self.values[:, :, place]
            result += (
                values * rows[:, None] if other.ndim == 1 else values[..., None] * rows[:, None]
            )
        return result

    def dense(self) -> Array:
        """All n·k·p numbers."""
        result = np.zeros(self.shape)
        num_shared, rows = self.shared.shape[2], np.arange(len(self.shared))
        result[:, :, :num_shared] = self.shared
        for place in range(self.columns.shape[1]):
            result[rows, :, self.columns[:, place]] = self.values[:, :, place]
        return result

    def matrices(self) -> list[Any]:
        """The designs of each predictor as sparse matrices, (n, p)."""
        num_rows, _, num_shared = self.shared.shape
        every = np.tile(np.arange(num_shared, dtype=np.int64), (num_rows, 1))
        columns = np.concatenate([every, self.columns], axis=1)
        ends = np.arange(num_rows + 1, dtype=np.int64) * columns.shape[1]
        shape = (num_rows, self.num_columns)
        entries = np.concatenate([self.shared, self.values], axis=2)
        return [
            csr_array((entries[:, k].ravel(), columns.ravel(), ends), shape)
            for k in range(entries.shape[1])
        ]


def sparse_sums(
    wide: SparseWide, own: Array, first: Array, second: Array, chooser: Any
) -> tuple[Array, Array, Array]:
    """Σ_n of A_nᵀc_n (p,), A_nᵀC_nA_n (p, p) and, by group, own_nᵀC_nA_n (G, q, p).

    `chooser` (n, G) has a one at each row's group. Cost: n·k²·(s + J)² flops, and the numbers.
    """
    designs, num_predictors, q = wide.matrices(), first.shape[1], own.shape[2]
    gradient = np.zeros(wide.num_columns)
    pairs = np.zeros((wide.num_columns, wide.num_columns))
    beside = np.zeros((chooser.shape[1], q, wide.num_columns))
    # C_n own_n, (n, k, q)
    leaning = np.einsum("nkj,njq->nkq", second, own)
    for k, design in enumerate(designs):
        gradient += design.T @ first[:, k]
        for j in range(num_predictors):
            pairs += (design.T @ design_times(designs[j], second[:, k, j])).toarray()
        for effect in range(q):
            beside[:, effect] += (chooser.T @ design_times(design, leaning[:, k, effect])).toarray()
    return gradient, pairs, beside


def design_times(design: Any, factors: Array) -> Any:
    """Each row of a sparse matrix times its factor."""
    entries = design.data * np.repeat(factors, np.diff(design.indptr))
    return csr_array((entries, design.indices, design.indptr), design.shape)
