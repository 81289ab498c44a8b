"""Least squares on a set of vectors that enter and leave, by updating one triangular factor."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import blas, lapack, qr_delete

from corebayes.types import Array

# A unit vector closer than this (squared) to the span of the others: inner products, with half of
# the digits, cannot tell it from one in the span.
DEPENDENT = 1e-12


class ActiveSet:
    """min_x ‖b − Σ_i x_i u_i‖² over unit vectors u_i, known by their inner products alone.

    With the Gram matrix UᵀU = RᵀR and y = R⁻ᵀUᵀb, the solution is R⁻¹y. R is kept by columns, one
    after the other, so a new vector is a new column at the end. Cost: M² flops to enter, about
    3·M² to leave, M² to solve; never a fresh factorisation.
    """

    def __init__(self) -> None:
        self._columns = np.empty(64)
        self._forward = np.empty(8)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def fill(self, gram: Array, cross: Array) -> bool:
        """Start with all these vectors at once, M³/3 flops; False if some depend on others."""
        root, failed = lapack.dpotrf(gram, lower=1, clean=0)
        if failed or np.diag(root).min(initial=1.0) ** 2 <= DEPENDENT:
            return False
        self._size = cross.size
        self._columns = np.ascontiguousarray(root[np.tril_indices(cross.size)])
        self._forward = np.append(self._solve_transposed(cross), np.empty(8))
        return True

    def add(self, products: Array, cross: float) -> bool:
        """Let u enter, given ⟨u, u_i⟩ and ⟨u, b⟩; False if it lies in the span of the others."""
        column = self._solve_transposed(products)
        height = 1.0 - float(column @ column)
        if height <= DEPENDENT:
            return False
        root = np.sqrt(height)
        entry = (cross - float(column @ self._forward[: self._size])) / root
        self._append(np.append(column, root), entry)
        return True

    def remove(self, position: int) -> None:
        """Let the vector at this position leave: rotations restore the triangle behind it."""
        size = self._size
        # Rᵀ, whose rows are the packed columns.
        rows = np.zeros((size, size))
        rows[np.tri(size, dtype=np.bool_)] = self._packed
        rotation: Any
        triangle: Any
        rotation, triangle = qr_delete(
            np.eye(size - position),
            rows[position:, position:].T,
            0,
            which="col",
            check_finite=False,
        )
        fewer = np.delete(rows, position, axis=0)[:, :-1]
        fewer[position:, position:] = triangle[:-1].T
        self._forward[position : size - 1] = (rotation.T @ self._forward[position:size])[:-1]
        self._size = size - 1
        self._packed[:] = fewer[np.tri(size - 1, dtype=np.bool_)]

    def solve(self) -> Array:
        """The x of the least squares."""
        return self._solve(self._forward[: self._size])

    def correct(self, slopes: Array) -> Array:
        """What to add to x when ⟨u_i, b − Σ_j x_j u_j⟩, known more exactly, are not quite zero."""
        return self._solve(self._solve_transposed(slopes))

    def _append(self, column: Array, entry: float) -> None:
        start = self._size * (self._size + 1) // 2
        stop = start + column.size
        if stop > self._columns.size:
            self._columns = np.concatenate([self._columns, np.empty(max(stop, start))])
        if self._size == self._forward.size:
            self._forward = np.concatenate([self._forward, np.empty(self._size)])
        self._columns[start:stop] = column
        self._forward[self._size] = entry
        self._size += 1

    def _solve(self, values: Array) -> Array:
        if self._size == 0:
            return np.empty(0)
        return blas.dtpsv(self._size, self._packed, values)

    def _solve_transposed(self, values: Array) -> Array:
        if self._size == 0:
            return np.empty(0)
        return blas.dtpsv(self._size, self._packed, values, trans=1)

    @property
    def _packed(self) -> Array:
        return self._columns[: self._size * (self._size + 1) // 2]
