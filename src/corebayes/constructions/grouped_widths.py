"""More rows than a mixed model has quadratics: quadratics under two Gaussians at once.

Coresets that match every expected slope and curvature under the fit differ in what remains of the
potentials. The same expectations under a wider Gaussian tell them apart, without draws and their
noise, and have the same few coordinates of every group. Rows of little say near the posterior may
make it higher elsewhere (each row of a t is a mode of its group's effect if it weighs enough, and
all together a spike at scale zero): far out they are matched as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from corebayes.arrow.fit import Fitted, Fitting
from corebayes.constructions.grouped_choice import POOL_NUMBERS, embedded, in_batches, is_implicit
from corebayes.problem import Problem
from corebayes.tangent.arrow.coordinates import GroupedElement
from corebayes.tangent.arrow.pool import GroupLook
from corebayes.tangent.arrow.space import ArrowSpace, Grouped
from corebayes.types import Array, Points, WeightedPoints

# How much wider the second Gaussian is, and how much it counts beside the first.
WIDER, SHARE = 2.0, 0.3


def is_cheap(space: ArrowSpace, pool: Points, size: int) -> bool:
    """Whether vectors of twice the coordinates can be held, and matched in batches."""
    numbers = 2 * pool.indices.size * (space.num_common + space.num_own)
    return numbers <= POOL_NUMBERS and not is_implicit(space.layout, size)


def by_two_widths(
    problem: Problem,
    fitting: Fitting,
    fitted: Fitted,
    space: ArrowSpace,
    total: Array,
    pool: Points,
    sizes: Sequence[int],
) -> list[WeightedPoints]:
    """Points of each size. Cost: a pass of N·p² flops, and a pursuit of twice the coordinates."""
    wide = fitted.gaussian.widened(WIDER)
    look = problem.ask(GroupLook(space.model, fitting.layout, wide, None, 0))
    assert look.sums is not None
    other = ArrowSpace(space.model, wide, fitting.prior)
    there = other.in_parts(other.total_of(wide.whitened_sums(look.sums)).element)
    here, near, far = space.in_parts(total), embedded(space, pool), embedded(other, pool)
    vectors = Grouped(
        np.concatenate([near.common, SHARE * far.common], axis=1),
        np.concatenate([near.own, SHARE * far.own], axis=1),
        near.groups,
    )
    wanted = GroupedElement(
        np.concatenate([here.common, SHARE * there.common]),
        np.concatenate([here.own, SHARE * there.own], axis=1),
    )
    return in_batches(vectors, wanted, pool, sizes)
