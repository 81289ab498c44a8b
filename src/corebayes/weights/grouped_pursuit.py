"""Nonnegative pursuit of a total by vectors of many groups, a batch at a time.

Greedy for min_{w ≥ 0, ‖w‖_0 ≤ M} ‖b − Σ_i w_i g_i‖². In each round the vector of every group that
is best aligned with what is missing enters, where it is among the best of all; then all weights are
solved for jointly, and vectors whose weight would become negative leave, each group going as far as
its first one allows (Lawson and Hanson 1974, in all groups at once). It goes beyond the size that
is wanted and comes back, those leaving whose loss costs least, so that rows are spent where they
pay. Last, some leave for others as long as that helps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from corebayes.deadline import check_time
from corebayes.tangent.arrow.coordinates import GroupedElement
from corebayes.types import Array, Indices
from corebayes.weights.grouped import GroupedVectors, Solver
from corebayes.weights.pursuit import Choice

# How far beyond the largest size the pursuit goes before it comes back.
OVERSHOOT = 1.5
# Shares of the vectors taken that may enter, leave, or be exchanged at a time. Half of any made no
# difference beyond a tenth of what is missing.
ENTERING, LEAVING, EXCHANGED = 0.15, 0.03, 0.1
# So many rounds that leave more than this share of what was missing are the last.
STALLED, PATIENCE = 0.97, 8
MOST_ROUNDS, MOST_EXCHANGES = 400, 8
# What is missing below this is round-off.
PRECISION = 1e-13


def grouped_pursuit(vectors: GroupedVectors, sizes: Sequence[int]) -> list[Choice]:
    """Vectors and weights (of the unit vectors) for each of the sizes, smallest first.

    Cost: some dozens of solutions, each M·P² flops, and alignments of all n vectors.
    """
    largest = max(sizes)
    taken, values = _grown(vectors, int(np.ceil(OVERSHOOT * largest)))
    choices: dict[int, Choice] = {}
    for size in sorted(sizes, reverse=True):
        taken, values = _pruned(vectors, taken, values, size, LEAVING)
        choices[size] = Choice(*_exchanged(vectors, taken, values, size))
    return [choices[size] for size in sizes]


def _grown(vectors: GroupedVectors, size: int) -> tuple[Indices, Array]:
    """Vectors enter until there are `size`, or what is missing no longer gets smaller.

    Groups that move at once may get in each other's way: if what is missing grows, half as many
    enter, at last one alone, which always helps.
    """
    taken, values = np.empty(0, dtype=np.int64), np.empty(0)
    missing = vectors.total
    level = start = missing.half_square
    most, last = size, np.inf
    for number in range(MOST_ROUNDS):
        check_time()
        entering = _entering(vectors, taken, missing, min(size - taken.size, most))
        if entering.size == 0:
            break
        alone = entering.size == 1
        tried = _solved(vectors, *_joined(vectors, taken, values, entering), together=alone)
        found = vectors.residual(*tried)
        if found.half_square >= level:
            if alone:
                break
            most = entering.size // 2
            continue
        (taken, values), missing, level = tried, found, found.half_square
        most = 2 * entering.size
        if level <= PRECISION * start:
            break
        if number % PATIENCE == PATIENCE - 1:
            if level > STALLED * last:
                break
            last = level
    return taken, values


def _entering(
    vectors: GroupedVectors, taken: Indices, missing: GroupedElement, room: int
) -> Indices:
    """The best-aligned vector of every group, those of the best groups if there are too many."""
    if room <= 0:
        return np.empty(0, dtype=np.int64)
    alignments = vectors.alignments(missing)
    alignments[taken] = -np.inf
    best = _first_of_groups(vectors.groups, -alignments)
    best = best[alignments[best] > 0.0]
    most = max(int(ENTERING * taken.size), vectors.num_groups)
    return best[np.argsort(-alignments[best], kind="stable")][: min(room, most)]


def _joined(
    vectors: GroupedVectors, taken: Indices, values: Array, entering: Indices
) -> tuple[Indices, Array]:
    """All of them, ordered by group; those that enter have no weight yet."""
    taken = np.concatenate([taken, entering])
    values = np.concatenate([values, np.zeros(entering.size)])
    order = np.argsort(vectors.groups[taken], kind="stable")
    return taken[order], values[order]


def _solved(
    vectors: GroupedVectors, taken: Indices, values: Array, *, together: bool = False
) -> tuple[Indices, Array]:
    """The nonnegative least squares near these values, vectors at zero leaving.

    Each group goes as far as its first vector at zero allows, or `together` all go as far as the
    first of all: slower, but what is missing never grows.
    """
    for _ in range(MOST_ROUNDS):
        check_time()
        solution = Solver(vectors, taken).solve()
        falling = solution <= 0.0
        if not np.any(falling):
            return taken, solution
        gaps = values - solution
        shares = np.ones(taken.size)
        shares[falling] = np.divide(
            values[falling],
            gaps[falling],
            out=np.zeros(int(falling.sum())),
            where=gaps[falling] > 0.0,
        )
        groups = vectors.groups[taken]
        of_group = np.ones(vectors.num_groups)
        np.minimum.at(of_group, groups, shares)
        if together:
            of_group[:] = of_group.min()
        values = values + of_group[groups] * (solution - values)
        staying = ~(falling & (shares <= of_group[groups]))
        taken, values = taken[staying], np.maximum(values[staying], 0.0)
    return taken, values


def _pruned(
    vectors: GroupedVectors, taken: Indices, values: Array, size: int, share: float
) -> tuple[Indices, Array]:
    """Down to the size, the least useful leaving a few at a time.

    At most one of a group: what two of them would cost together is not the sum.
    """
    while taken.size > size:
        check_time()
        losses = Solver(vectors, taken).losses(values)
        number = min(taken.size - size, max(1, int(share * taken.size)))
        least = _first_of_groups(vectors.groups[taken], losses)
        leaving = least[np.argsort(losses[least], kind="stable")][:number]
        staying = np.ones(taken.size, dtype=bool)
        staying[leaving] = False
        taken, values = _solved(vectors, taken[staying], values[staying])
    return taken, values


def _first_of_groups(groups: Indices, keys: Array) -> Indices:
    """The position with the smallest key in each group."""
    order = np.lexsort((keys, groups))
    sorted_groups = groups[order]
    return order[np.r_[True, sorted_groups[1:] != sorted_groups[:-1]]]


def _exchanged(
    vectors: GroupedVectors, taken: Indices, values: Array, size: int
) -> tuple[Indices, Array]:
    """Some leave for others, as long as that brings the total nearer."""
    missing = vectors.residual(taken, values)
    for _ in range(MOST_EXCHANGES):
        alignments = vectors.alignments(missing)
        alignments[taken] = -np.inf
        number = min(max(1, int(EXCHANGED * size)), alignments.size)
        entering = np.argpartition(-alignments, number - 1)[:number]
        entering = entering[alignments[entering] > 0.0]
        if entering.size == 0 or missing.half_square <= PRECISION:
            break
        other, solved = _solved(vectors, *_joined(vectors, taken, values, entering))
        other, solved = _pruned(vectors, other, solved, size, LEAVING)
        found = vectors.residual(other, solved)
        stalled = found.half_square >= STALLED * missing.half_square
        if found.half_square < missing.half_square:
            taken, values, missing = other, solved, found
        if stalled:
            break
    return taken, values
