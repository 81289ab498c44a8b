"""Which pursuit chooses the rows of a mixed model, and from how many.

One row at a time where few are wanted; a batch of all groups at a time where rows of different
groups meet in few coordinates; and by inner products alone, in blocks, where crossed terms make
these coordinates many (`corebayes.tangent.arrow.implicit`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from corebayes.arrow.layout import Layout
from corebayes.constructions.construction import no_direction
from corebayes.data.warn import warn
from corebayes.models.mixed.regression import MixedRegression
from corebayes.models.structure import StructuredModel
from corebayes.tangent.arrow.coordinates import GroupedElement
from corebayes.tangent.arrow.implicit import ImplicitSpace
from corebayes.tangent.arrow.space import ArrowSpace, Grouped
from corebayes.types import Array, Points, WeightedPoints
from corebayes.weights.grouped import GroupedVectors
from corebayes.weights.grouped_pursuit import grouped_pursuit
from corebayes.weights.pursuit import orthogonal_pursuit

# Up to so many rows a pursuit of one row at a time is quick, and a little better.
ONE_BY_ONE = 300
# Common coordinates from which on a pursuit by inner products, of M³ flops, is quicker than one of
# M·P² flops a round: with fewer rows than this share of them.
MANY_COMMON, MORE_ROWS = 600, 3
# How far a pursuit goes beyond what is asked before it comes back.
OVERSHOOT_OF_FEW, OVERSHOOT_OF_MANY = 2.0, 1.5
# Nats at which a pursuit of many crossed rows ends: the last few take as long as all before.
NEAR_ENOUGH = 5e-4
# Candidates of a group: some times the coordinates that its rows must match, and no fewer than
# this; enough in all that few groups have many; and no more numbers than a few hundred megabytes.
POOL_SHARE, POOL_LEAST, POOL_ROWS, POOL_NUMBERS = 4, 40, 4_000, 40_000_000
# Where pairs are many there are more coordinates than anyone's rows: so many times those asked for,
# and no fewer of a group than can match what is its own.
POOL_TIMES, POOL_ENOUGH = 8, 200
# Where nothing else says how many: for each row that is wanted.
POOL_ROWS_A_POINT = 3
# Rows of a pursuit by inner products, at most: its time grows with their cube.
MOST_ROWS = 6_000
# Common coordinates beyond which more rows than these cannot be chosen in batches either.
MOST_COMMON = 2_500


def is_implicit(layout: Layout, size: int) -> bool:
    """Whether a pursuit of so many rows goes by inner products."""
    common = _num_common(layout)
    return common > MANY_COMMON and size <= min(MORE_ROWS * common, MOST_ROWS)


def check_size(layout: Layout, size: int) -> None:
    """Refuse more rows than can be chosen where crossed terms have many pairs."""
    if size > MOST_ROWS and _num_common(layout) > MOST_COMMON:
        groups = " × ".join(f"{term.num_groups:,}" for term in layout.structure.terms)
        raise ValueError(
            f"size must be at most {MOST_ROWS:,} where group terms are crossed as here ({groups} "
            f"groups), got {size:,}: with so many pairs of groups there is no quick choice of more "
            "rows. Ask for fewer, make the smaller terms coarser, or use all rows"
        )


def warn_of_few(model: StructuredModel, size: int, matched: int) -> None:
    """Some groups will have no row: nobody should take what is then said of them for what rows
    say."""
    terms = model.structure.terms
    largest = max(terms, key=lambda term: term.num_groups, default=None)
    if largest is None or size >= largest.num_groups:
        return
    whole_groups = isinstance(model, MixedRegression) and len(terms) == 1
    warn(
        f"size={size:,} is less than the {largest.num_groups:,} groups of {largest.name!r}: groups "
        "without rows keep the prior of their effects, like groups that were never seen, and what "
        f"all rows share is off with them. {matched:,} rows match everything, some two thirds of "
        "them come close: give a larger size, or rows_per_group"
        + ("; unit='group' keeps some whole groups, for what they share" if whole_groups else "")
    )


def largest_open(layout: Layout, matched: int) -> int:
    """The size around which an open one is looked for."""
    many = _num_common(layout) > MANY_COMMON
    return min(matched, MOST_ROWS * 2 // 3) if many else matched


def candidates(layout: Layout, size: int) -> tuple[int, ...]:
    """How many rows of every group of each term are candidates for a coreset of `size`."""
    p, q, num_groups = layout.num_wide, layout.num_own, layout.num_groups
    own, common = q + q * (q + 1) // 2 + p * q, _num_common(layout)
    number = max(POOL_SHARE * own, POOL_LEAST, POOL_ROWS // num_groups)
    if num_groups == 1:
        number = max(number, POOL_SHARE * common, POOL_ROWS_A_POINT * size)
    if is_implicit(layout, size):
        enough = max(POOL_TIMES * size, POOL_ROWS, POOL_ENOUGH * num_groups)
        most = min(enough, POOL_NUMBERS // p)
    else:
        most = POOL_NUMBERS // (common + own)
    number = min(number, max(most // num_groups, 10))
    # Groups of the other terms must be in the pool as well, if they are rare.
    return tuple(
        number if place == layout.structure.main else max(POOL_LEAST, number // 4)
        for place in range(len(layout.structure.terms))
    ) or (number,)


def pursued(
    space: ArrowSpace, pool: Points, total: Array, sizes: Sequence[int]
) -> list[WeightedPoints]:
    """Points of each size."""
    largest = max(sizes)
    if largest > ONE_BY_ONE and not is_implicit(space.layout, largest):
        return in_batches(embedded(space, pool), space.in_parts(total), pool, sizes)
    many = is_implicit(space.layout, largest) and largest > ONE_BY_ONE
    overshoot = OVERSHOOT_OF_MANY if many else OVERSHOOT_OF_FEW
    seen = as_seen(space, largest)
    enough = NEAR_ENOUGH if many else 0.0
    choices = orthogonal_pursuit(seen, pool.rows, total, sizes, overshoot=overshoot, enough=enough)
    return [pool.take(choice.taken).weighted(choice.weights) for choice in choices]


def as_seen(space: ArrowSpace, size: int) -> ArrowSpace | ImplicitSpace:
    """The space in the form in which so many rows are handled."""
    if is_implicit(space.layout, size):
        return ImplicitSpace(space.model, space.gaussian, space.prior)
    return space


def in_batches(
    vectors: Grouped, total: GroupedElement, pool: Points, sizes: Sequence[int]
) -> list[WeightedPoints]:
    """Points of each size whose vectors, those of the pool, come to the total."""
    units, lengths = GroupedVectors.of(vectors, total)
    if not np.any(lengths > 0.0):
        raise no_direction()
    return [
        pool.take(choice.taken).weighted(choice.weights / lengths[choice.taken])
        for choice in grouped_pursuit(units, sizes)
    ]


def embedded(space: ArrowSpace, pool: Points) -> Grouped:
    """The vectors of the pool, some thousand rows at a time."""
    parts = [
        space.embed(pool.rows.take(slice(first, first + 4096)))
        for first in range(0, pool.indices.size, 4096)
    ]
    return Grouped(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _num_common(layout: Layout) -> int:
    p = layout.num_wide
    return p + p * (p + 1) // 2
