"""The pursuit in blocks: hundreds of vectors enter at a time, and those below zero leave at once.

One vector at a time, M of n vectors cost M steps whose M·n numbers pass through memory each time.
In blocks of a share of what is there the same work is a few dozen products of matrices; vectors
that compete with others of their block get a weight below zero and leave with it. Every round
ends with the least squares on vectors of positive weight, closer to the total than the last.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import cholesky, lapack, solve_triangular

from corebayes.deadline import check_time
from corebayes.types import Array, Indices
from corebayes.weights.active_set import DEPENDENT


class BlockSet:
    """min_x ‖b − Σ_i x_i u_i‖² over unit vectors u_i, some pinned to x_i = 0.

    With the Gram matrix UᵀU = LLᵀ a block enters by one triangular solve; a block Z leaves by being
    pinned to zero, x − K_Z (K_ZZ)⁻¹ x_Z with K = (UᵀU)⁻¹, its columns by two triangular solves,
    and the factor is made again only when many are pinned.

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


# One vector enters for every so many there are: larger blocks compete with themselves.
SHARE = 16
# Rounds of dropping all that is below zero; after that, and where it does not lower the distance,
# only what reaches zero first on the way to the least squares leaves.
BOLD_ROUNDS = 8
# Of so many vectors one may be pinned before the factor is computed again.
PINNED_SHARE = 8
# Single vectors in a row that brought the sum no closer, after which it is over.
PATIENCE = 10


class Candidates(Protocol):
    """Unit vectors u_n to choose from, known by inner products, and ⟨u_n, b⟩."""

    @property
    def cross(self) -> Array:
        """⟨u_n, b⟩; −∞ where a vector may never enter."""
        ...

    def slopes(self, taken: Indices, values: Array) -> Array:
        """⟨u_n, b − Σ_i x_i u_i⟩ for all n."""
        ...

    def gram(self, these: Indices, others: Indices) -> Array:
        """⟨u_n, u_m⟩."""
        ...


class Reached(NamedTuple):
    """Positions taken, with their weights, and by how much ½ ‖b − Σ x_i u_i‖² is below ½ ‖b‖²."""

    taken: Indices
    values: Array
    gain: float


class BlockPursuit:
    """A pursuit under way. Cost of a round: slopes of all, and M²·(M/16) flops."""

    def __init__(self, candidates: Candidates, smallest: float):
        self._from = candidates
        self._set = BlockSet()
        self._smallest = smallest
        self._block = 1
        self._crowded = False
        """Whether pinned members are in the way: next to others the set is close to dependent."""
        self._members: Indices = np.empty(0, dtype=np.int64)
        """Those in the set: the ones taken and some that are pinned."""
        self._x: Array = np.empty(0)
        self._entering: Indices = np.empty(0, dtype=np.int64)
        self.gain = 0.0
        self._slopes: Array = candidates.cross

    @property
    def reached(self) -> Reached:
        kept = self._x > 0.0
        return Reached(self._members[kept], self._x[kept], self.gain)

    @property
    def size(self) -> int:
        return int(np.count_nonzero(self._x > 0.0))

    def start_from(self, taken: Indices, values: Array) -> None:
        """Take these vectors before the first round, at these weights."""
        self._enter(taken, values)
        self._descend()
        self._measure()

    def advance(self, most: int) -> bool:
        """Let a block enter, `most` vectors at most; False when none brings the sum closer."""
        failed: list[Indices] = []
        while len(failed) < PATIENCE:
            check_time()
            (taken, values, gain), slopes = self.reached, self._slopes
            open_ones = slopes.copy()
            for away in (taken, *failed):
                open_ones[away] = -np.inf
            number = min(most, max(1, min(self._block, taken.size // SHARE)))
            best = _largest(open_ones, number)
            best = best[open_ones[best] > self._smallest]
            if best.size == 0:
                return False
            self._tidy()
            self._enter(best, np.zeros(best.size))
            self._descend()
            self._measure()
            if self.gain > gain:
                self._block = 2 * number
                return True
            self._members, self._x, self._crowded = taken, values, True
            self.gain, self._slopes = gain, slopes
            self._block = number // 2
            if number == 1:
                # In the span of the others, or thrown out again by round-off.
                failed.append(best)
        return False

    def _measure(self) -> None:
        """What is gained, by the inner products themselves: the factor of vectors that are close to
        dependent may say anything."""
        taken, values, _ = self.reached
        self._slopes = self._from.slopes(taken, values)
        # ½ ‖b‖² − ½ ‖b − Σ x_i u_i‖² = ½ Σ_i x_i (⟨u_i, b⟩ + ⟨u_i, b − Σ_j x_j u_j⟩)
        self.gain = 0.5 * float(values @ (self._from.cross[taken] + self._slopes[taken]))

    def _enter(self, numbers: Indices, values: Array) -> None:
        self._entering = numbers
        # A pinned member that comes back is in the set already.
        inside = np.isin(numbers, self._members)
        numbers, values = numbers[~inside], values[~inside]
        gram = self._from.gram
        entered = self._set.enter(
            gram(numbers, self._members), gram(numbers, numbers), self._from.cross[numbers]
        )
        self._crowded |= entered.size < numbers.size
        self._members = np.concatenate([self._members, numbers[entered]])
        self._x = np.concatenate([self._x, values[entered]])

    def _tidy(self) -> None:
        """The set without its pinned members, if they are many or crowd others out."""
        kept = self._x > 0.0
        if np.count_nonzero(~kept) * PINNED_SHARE <= kept.size and not self._crowded:
            return
        self._crowded = False
        self._members, self._x = self._members[kept], self._x[kept]
        gram = self._from.gram(self._members, self._members)
        inside = self._set.refill(gram, self._from.cross[self._members])
        self._members, self._x = self._members[inside], self._x[inside]

    def _descend(self) -> None:
        """To the least squares over nonnegative weights of the members, or some way towards it."""
        solution = self._bold()
        if solution is None:
            solution = self._careful()
        self._x = solution

    def _bold(self) -> Array | None:
        """All below zero leave at once, until none is; None if that ends further away."""
        for _ in range(BOLD_ROUNDS):
            solution = self._set.solve()
            below = np.flatnonzero(solution < 0.0)
            if below.size == 0:
                # With least-squares weights x the squared distance is ‖b‖² − Σ_i x_i ⟨u_i, b⟩.
                gain = 0.5 * float(solution @ self._from.cross[self._members])
                return solution if gain > self.gain else None
            self._set.pin(below)
        return None

    def _careful(self) -> Array:
        """On the way from x to the least squares those that reach zero leave (Lawson, Hanson).

        Only what enters may leave zero: beside members that were pinned before, and would go below
        zero, it would be below zero itself, and a single vector brings the sum closer for certain.
        """
        self._crowded = True
        self._set.unpin()
        x = self._x.copy()
        free = (x > 0.0) | np.isin(self._members, self._entering)
        self._set.pin(np.flatnonzero(~free))
        while True:
            check_time()
            solution = self._set.solve()
            falling = np.flatnonzero((solution <= 0.0) & free)
            if falling.size == 0:
                return solution
            gaps = x[falling] - solution[falling]
            shares = np.divide(x[falling], gaps, out=np.zeros_like(gaps), where=gaps > 0.0)
            share = float(shares.min())
            x += share * (solution - x)
            leaving = falling[shares <= share]
            x[leaving], free[leaving] = 0.0, False
            self._set.pin(leaving)


def _largest(values: Array, number: int) -> Indices:
    if number >= values.size:
        return np.argsort(-values, kind="stable")
    best = np.argpartition(-values, number - 1)[:number]
    return best[np.argsort(-values[best], kind="stable")]
