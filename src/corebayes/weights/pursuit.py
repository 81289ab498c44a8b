"""Nonnegative orthogonal pursuit: few of many vectors whose weighted sum is close to a total.

Greedy for min_{w ≥ 0, ‖w‖_0 ≤ M} ‖b − Σ_i w_i g_i‖²: the vector best aligned with what is missing
enters, then the least squares on all that have entered is solved again; vectors whose weight
would become negative leave (Lawson and Hanson 1974). Ended by a size it is a pursuit; left to run
until no vector is aligned with what is missing, it is nonnegative least squares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from corebayes.deadline import check_time
from corebayes.types import Array, Block, Indices, TangentSpace
from corebayes.weights.active_set import DEPENDENT, ActiveSet
from corebayes.weights.block_pursuit import BlockPursuit
from corebayes.weights.pruning import prune

# Alignments below this share of the largest ⟨u_n, b⟩ are round-off.
PRECISION = 1e-12
# Vectors in a row that round-off throws out at once, after which it is over: each costs a column.
VAIN = 20
# Up to so many vectors enter one by one; more of them in blocks.
ONE_BY_ONE = 256
# Inner products of a pool with those taken that are kept: 256 MB, twice that while they grow.
REMEMBERED = 1 << 25
# In blocks it is over when ½ ‖b − Σ x_i u_i‖² is at most this: no certificate sees so few nats.
NOTHING_LEFT = 1e-6
# Over too when so many rounds together bring less than this share of what is missing, and less
# than what may be left: no candidates match the rest, and each round tries a block in vain.
STALLED, PATIENCE = 0.03, 8


class Choice(NamedTuple):
    """Positions of the vectors taken, and their positive weights."""

    taken: Indices
    weights: Array


class Pursuit:
    """A pursuit under way, on unit vectors u_n = g_n/‖g_n‖.

    `column(n)` gives ⟨u_m, u_n⟩ for all m and is asked once for each vector that enters; `cross` is
    ⟨u_n, b⟩. A vector that may never enter has cross −∞. Cost of an entry: a column, n·M flops for
    the alignments, and O(M²) for the least squares.
    """

    def __init__(self, column: Callable[[int], Array], cross: Array):
        self._column = column
        self._cross = cross
        self._active = ActiveSet()
        self._columns = np.empty((cross.size, 0), order="F")
        self._blocked = cross == -np.inf
        best = float(np.abs(cross[~self._blocked]).max(initial=0.0))
        self._smallest = PRECISION * best
        self.taken: Indices = np.empty(0, dtype=np.int64)
        self.values: Array = np.empty(0)
        """Weights of the unit vectors taken: w_n ‖g_n‖."""

    def advance(self) -> bool:
        """Let one more vector enter; False when none is aligned with what is missing."""
        for _ in range(VAIN):
            check_time()
            slopes = self._cross - self._columns[:, : self.taken.size] @ self.values
            slopes[self.taken] = -np.inf
            slopes[self._blocked] = -np.inf
            best = int(np.argmax(slopes)) if slopes.size else -1
            if best < 0 or not slopes[best] > self._smallest:
                return False
            before = self.taken
            if self._enter(best, 0.0):
                self._descend()
                if best in self.taken:
                    # Others may fit again now that something has moved.
                    self._blocked = self._cross == -np.inf
                    return True
            # Round-off threw it out again at once: do not try it until another one has moved.
            self._blocked[best] = True
            if not np.array_equal(before, self.taken):
                return True
        return False

    def start_from(self, taken: Indices, values: Array, columns: Array) -> None:
        """Take these vectors, with these columns of inner products, before the first step."""
        if self._active.fill(columns[taken], self._cross[taken]):
            self.taken, self.values = taken, values
            self._columns = np.array(columns, order="F")
        else:
            for number, value in zip(taken, values, strict=True):
                self._enter(int(number), float(value))
        self._descend()

    def _enter(self, number: int, value: float) -> bool:
        column = self._column(number)
        if not self._active.add(column[self.taken], float(self._cross[number])):
            return False
        size = self.taken.size
        if size == self._columns.shape[1]:
            grown = np.empty((self._cross.size, max(8, 2 * size)), order="F")
            grown[:, :size] = self._columns
            self._columns = grown
        self._columns[:, size] = column
        self.taken = np.append(self.taken, number)
        self.values = np.append(self.values, value)
        return True

    def _descend(self) -> None:
        """Go to the least squares on the vectors taken; on the way, those that reach zero leave."""
        while self.taken.size:
            solution = self._active.solve()
            if solution.min() > 0.0:
                self.values = solution
                return
            falling = np.flatnonzero(solution <= 0.0)
            gaps = self.values[falling] - solution[falling]
            shares = np.divide(
                self.values[falling], gaps, out=np.zeros_like(gaps), where=gaps > 0.0
            )
            share = float(shares.min())
            self.values = self.values + share * (solution - self.values)
            leaving = falling[shares <= share]
            for position in leaving[::-1]:
                self._leave(int(position))

    def _leave(self, position: int) -> None:
        self._active.remove(position)
        last = self.taken.size - 1
        self._columns[:, position:last] = self._columns[:, position + 1 : last + 1]
        self.taken = np.delete(self.taken, position)
        self.values = np.delete(self.values, position)

    @property
    def gain(self) -> float:
        """By how much ½ ‖b − Σ x_i u_i‖² is below ½ ‖b‖²."""
        return 0.5 * float(self.values @ self._cross[self.taken])

    def gram(self) -> Array:
        """Inner products of the vectors taken."""
        return self._columns[self.taken, : self.taken.size]


def orthogonal_pursuit(
    space: TangentSpace,
    pool: Block,
    total: Array,
    sizes: Sequence[int],
    *,
    overshoot: float = 1.0,
    enough: float = 0.0,
) -> list[Choice]:
    """The pursuit's answer at each of the `sizes`, all on the one path to the largest.

    Ends early when no vector of the pool is aligned with what is missing. With an `overshoot` of
    two the path goes on to twice the largest size and comes back, the least useful vectors leaving
    first; at each size the better of the two ways counts. Cost of a point, with few of them: n·M
    flops, n·d (or n·S) for its inner products with the pool of n rows; the n × M inner products
    are kept. With many, `block_pursuit`: it ends when ½ ‖b − Σ w_i g_i‖² is `enough`, or what no
    certificate sees.
    """
    vectors = UnitVectors.of(space, space.embed(pool), total)
    largest = int(np.ceil(overshoot * max(sizes)))
    if largest > ONE_BY_ONE:
        choices, gram, end = _in_blocks(vectors, sizes, largest, enough or NOTHING_LEFT)
    else:
        choices, gram, end = _one_by_one(vectors, sizes, largest, enough)
    # With least-squares weights x the squared distance is ‖b‖² − Σ_i x_i ⟨u_i, b⟩.
    for size, (positions, values) in prune(gram, end.weights, sizes).items():
        whole = values.size == end.weights.size
        back = end if whole else Choice(end.taken[positions], values)
        if _gain(back, vectors.cross) > _gain(choices[size], vectors.cross):
            choices[size] = back
    # Sizes beyond the end of the path share one choice.
    refined = {id(choice): _refined(vectors, choice) for choice in choices.values()}
    return [refined[id(choices[size])] for size in sizes]


@dataclass(frozen=True)
class UnitVectors:
    """The unit vectors u_n = g_n/‖g_n‖ of some rows, and the total to be matched."""

    space: TangentSpace
    vectors: Any
    norms: Array
    total: Array
    cross: Array
    """⟨u_n, b⟩; −∞ for a row whose potential is constant."""

    @classmethod
    def of(cls, space: TangentSpace, vectors: Any, total: Array) -> UnitVectors:
        squared_norms = space.squared_norms(vectors)
        alive = squared_norms > 0.0
        norms = np.sqrt(np.where(alive, squared_norms, 1.0))
        cross = np.where(alive, space.project(vectors, total) / norms, -np.inf)
        return cls(space, vectors, norms, total, cross)

    def gram(self, these: Indices | None, others: Indices) -> Array:
        """⟨u_n, u_m⟩; None stands for all rows."""
        space, norms = self.space, self.norms
        first = self.vectors if these is None else space.take(self.vectors, these)
        products = space.gram(first, space.take(self.vectors, others))
        products /= (norms if these is None else norms[these])[:, None]
        products /= norms[others]
        return products

    def missing(self, choice: Choice) -> Array:
        """b − Σ_i x_i u_i, computed from the vectors."""
        taken, values = choice
        chosen = self.space.take(self.vectors, taken)
        return self.total - self.space.combine(chosen, values / self.norms[taken])

    def slopes(self, taken: Indices, values: Array) -> Array:
        """⟨u_n, b − Σ_i x_i u_i⟩ for all n. Cost: that of projecting one element."""
        missing = self.missing(Choice(taken, values))
        slopes = self.space.project(self.vectors, missing) / self.norms
        slopes[self.cross == -np.inf] = -np.inf
        return slopes


class RememberedPool:
    """A pool that keeps the inner products of all its n rows with those that were ever taken, as
    long as they fit: n·M flops for the slopes, whatever an element of the space costs."""

    def __init__(self, pool: UnitVectors):
        self._pool = pool
        self.cross = pool.cross
        self._columns = np.empty((pool.cross.size, 0), order="F")
        self._slots = np.full(pool.cross.size, -1)
        self._used = 0
        self._full = False

    def gram(self, these: Indices, others: Indices) -> Array:
        """⟨u_n, u_m⟩, looked up where one side has been taken."""
        for first, second, turned in ((these, others, False), (others, these, True)):
            slots = self._slots[second]
            if np.all(slots >= 0):
                products = self._columns[np.ix_(first, slots)]
                return products.T if turned else products
        return self._pool.gram(these, others)

    def slopes(self, taken: Indices, values: Array) -> Array:
        fresh = taken[self._slots[taken] < 0]
        if (self._used + fresh.size) * self.cross.size > REMEMBERED:
            self._full = True
            self._columns, self._used = self._columns[:, :0].copy(), 0
            self._slots[:] = -1
        if self._full:
            return self._pool.slopes(taken, values)
        if fresh.size:
            self._remember(fresh)
        spread = np.zeros(self._used)
        spread[self._slots[taken]] = values
        return self.cross - self._columns[:, : self._used] @ spread

    def _remember(self, fresh: Indices) -> None:
        used = self._used + fresh.size
        if used > self._columns.shape[1]:
            grown = np.empty((self.cross.size, 2 * used), order="F")
            grown[:, : self._used] = self._columns[:, : self._used]
            self._columns = grown
        self._columns[:, self._used : used] = self._pool.gram(None, fresh)
        self._slots[fresh] = np.arange(self._used, used)
        self._used = used


class Path(NamedTuple):
    """What a pursuit passed at each size, and where it ended, with the inner products there."""

    choices: dict[int, Choice]
    gram: Array
    end: Choice


def _one_by_one(vectors: UnitVectors, sizes: Sequence[int], largest: int, enough: float) -> Path:
    """To the largest size, and beyond the sizes asked for only while more than `enough` is left."""
    pursuit = Pursuit(lambda number: vectors.gram(None, np.array([number]))[:, 0], vectors.cross)
    choices = {size: Choice(pursuit.taken, pursuit.values) for size in sizes}
    whole, wanted = 0.5 * float(vectors.total @ vectors.total), max(sizes)
    # Points may leave, so more enter than stay; this many bounds the work.
    for _ in range(3 * largest):
        if pursuit.taken.size == largest or not pursuit.advance():
            break
        if pursuit.taken.size == wanted < largest and whole - pursuit.gain <= enough:
            choices[wanted] = Choice(pursuit.taken, pursuit.values)
            break
        if pursuit.taken.size in choices:
            choices[pursuit.taken.size] = Choice(pursuit.taken, pursuit.values)
    return Path(choices, pursuit.gram(), Choice(pursuit.taken, pursuit.values))


def _in_blocks(vectors: UnitVectors, sizes: Sequence[int], largest: int, left: float) -> Path:
    """Until ½ ‖b − Σ x_i u_i‖² is what may be left, or is seen to stay."""
    pursuit = BlockPursuit(RememberedPool(vectors), PRECISION * _largest_of(vectors.cross))
    choices = {size: Choice(*pursuit.reached[:2]) for size in sizes}
    stops, gains = sorted({*sizes, largest}), dict.fromkeys(sizes, 0.0)
    whole = 0.5 * float(vectors.total @ vectors.total)
    past = [-np.inf] * PATIENCE
    # As many rounds as a pursuit that lets in single vectors to the end would take.
    for _ in range(3 * largest):
        size = pursuit.size
        missing = whole - pursuit.gain
        stalled = pursuit.gain - past[-PATIENCE] < min(STALLED * missing, left)
        if size >= largest or missing <= left or stalled:
            break
        past.append(pursuit.gain)
        if not pursuit.advance(next(stop for stop in stops if stop > size) - size):
            break
        taken, values, gain = pursuit.reached
        here = Choice(taken, values)
        for size in sizes:
            if taken.size <= size and gain > gains[size]:
                choices[size], gains[size] = here, gain
    taken, values, _ = pursuit.reached
    needed = taken.size > min(sizes)
    gram = vectors.gram(taken, taken) if needed else np.empty((0, 0))
    return Path(choices, gram, Choice(taken, values))


def _largest_of(cross: Array) -> float:
    """The largest |⟨u_n, b⟩|, beside which round-off is small."""
    return float(np.abs(cross[np.isfinite(cross)]).max(initial=0.0))


def _gain(choice: Choice, cross: Array) -> float:
    return float(choice.weights @ cross[choice.taken])


def _refined(vectors: UnitVectors, choice: Choice) -> Choice:
    """The choice with weights of the vectors themselves, to full precision.

    Inner products lose half of the digits; what is missing, computed from the vectors, gives
    them back.
    """
    taken, values = choice
    lengths = vectors.norms[taken]
    chosen = vectors.space.take(vectors.vectors, taken)
    slopes = vectors.space.project(chosen, vectors.missing(choice)) / lengths
    root, failed = lapack.dpotrf(vectors.gram(taken, taken), lower=1, clean=0)
    if taken.size and not failed and np.diag(root).min() ** 2 > DEPENDENT:
        better = values + lapack.dpotrs(root, slopes, lower=1)[0]
        values = better if better.min() > 0.0 else values
    return Choice(taken, values / lengths)
