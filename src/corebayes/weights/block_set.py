"""Least squares on many vectors that enter and leave in blocks, as products of matrices.

What `ActiveSet` does for one vector at a time, here for hundreds, where memory traffic would
decide: with the Gram matrix UᵀU = LLᵀ of the unit vectors in the set, a block enters by one
triangular solve; a block leaves by being pinned to zero,

    x − K_Z (K_ZZ)⁻¹ x_Z,      K = (UᵀU)⁻¹, its columns K_Z by two triangular solves,

and the factor is made afresh only when many are pinned.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, lapack, solve_triangular

from corebayes.types import Array, Indices
from corebayes.weights.active_set import DEPENDENT


class BlockSet:
    """min_x ‖b − Σ_i x_i u_i‖² over unit vectors u_i, some pinned to x_i = 0.

    Cost: M²·k flops for k vectors to enter or to be pinned, M² for a solution; all but the last
    as products of matrices. Memory: M² numbers, twice while a block enters.
    """

    def __init__(self) -> None:
        self._lower: Array = np.empty((0, 0), order="F")
        self._cross: Array = np.empty(0)
        self.unpin()

    def __len__(self) -> int:
        return self._cross.size

    def enter(self, products: Array, gram: Array, cross: Array) -> Indices:
        """Let a block enter, given ⟨u_new, u_i⟩ (k, M), ⟨u_new, u_new'⟩ and ⟨u_new, b⟩.

        Gives the positions in the block of those that did: of vectors that depend on others some
        stay outside. Pins are gone.
        """
        size = len(self)
        beside = np.empty((cross.size, 0))
        if size:
            beside = solve_triangular(self._lower, products.T, lower=True, check_finite=False).T
        height = gram - beside @ beside.T
        taken, corner = _independent(height)
        grown = np.zeros((size + taken.size, size + taken.size), order="F")
        grown[:size, :size] = self._lower
        grown[size:, :size] = beside[taken]
        grown[size:, size:] = corner
        self._lower = grown
        self._cross = np.concatenate([self._cross, cross[taken]])
        self.unpin()
        return taken

    def refill(self, gram: Array, cross: Array) -> Indices:
        """Exactly these vectors, but for those that depend on others to the last digits.

        Gives the positions of those inside. Cost: M³/3 flops.
        """
        taken, lower = _independent(gram)
        self._lower, self._cross = np.asfortranarray(lower), cross[taken]
        self.unpin()
        return taken

    def pin(self, positions: Indices) -> None:
        """From now on x is zero at these positions, too."""
        first, last = self._pinned.size, self._pinned.size + positions.size
        if last > self._columns.shape[1]:
            grown = np.empty((len(self), 2 * last), order="F")
            grown[:, :first] = self._columns[:, :first]
            self._columns = grown
        units = np.zeros((len(self), positions.size), order="F")
        units[positions, np.arange(positions.size)] = 1.0
        self._columns[:, first:last] = self._solved(units)
        self._pinned = np.concatenate([self._pinned, positions])

    def solve(self) -> Array:
        """The x of the least squares."""
        if self._free is None:
            self._free = self._solved(self._cross)
        if self._pinned.size == 0:
            return self._free.copy()
        columns, free = self._columns[:, : self._pinned.size], self._free
        solution = free - columns @ np.linalg.solve(columns[self._pinned], free[self._pinned])
        solution[self._pinned] = 0.0
        return solution

    def _solved(self, values: Array) -> Array:
        """(UᵀU)⁻¹ times these columns."""
        return lapack.dpotrs(self._lower, values, lower=1)[0] if len(self) else values

    def unpin(self) -> None:
        """No vector is pinned."""
        self._pinned: Indices = np.empty(0, dtype=np.int64)
        self._columns: Array = np.empty((len(self), 0))
        self._free: Array | None = None


def _independent(height: Array) -> tuple[Indices, Array]:
    """Positions whose vectors do not depend on others, and the factor of their block."""
    root, failed = lapack.dpotrf(height, lower=1, clean=1)
    if not failed and np.diag(root).min(initial=1.0) ** 2 > DEPENDENT:
        return np.arange(len(height)), root
    _, pivots, rank, _ = lapack.dpstrf(height, tol=DEPENDENT, lower=1)
    taken = np.sort(pivots[:rank] - 1).astype(np.int64)
    return taken, cholesky(height[np.ix_(taken, taken)], lower=True, check_finite=False)
