"""Levels of few rows in a coreset: all of their rows, or few that stand for them.

Of a level that is too large to be kept whole a few rows are matched to all of them where the
posterior lies,

    min_{v ≥ 0} ½ Var_π[Σ_{n ∈ level} c_n f_n − Σ_i v_i f_i],

at draws that know its walls (`samplers.wide`). Potentials of one level depend on its own
coefficient and on few others, so a handful of rows is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from corebayes.build.rare import RareLevels, looked_at
from corebayes.problem import Problem
from corebayes.samplers.independence import try_proposal
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.wide import WideProposal, wide_proposal
from corebayes.tangent.geometry import half_square
from corebayes.tangent.monte_carlo import MonteCarloSpace
from corebayes.types import Array, Block, Points, WeightedPoints
from corebayes.weights.pursuit import orthogonal_pursuit

# Rows of a level that is kept whole if there is room, whether its rows agree or not; and where
# nobody said how many rows there may be, so that they are to be few.
WHOLE, WHOLE_OF_OPEN = 32, 8
# Rows that may stand for a level, and the nats at which they do.
FEWEST, MOST, ENOUGH = 3, 10, 1e-6
# Draws at which they are matched.
NUM_DRAWS = 500


class OfLevel(NamedTuple):
    """A level, and what a coreset has of it."""

    level: Points
    points: WeightedPoints
    nats: float = 0.0
    """What these miss of the others."""


def in_coreset(
    problem: Problem, rare: RareLevels, most: int, *, is_open: bool = False
) -> list[OfLevel]:
    """Levels, and what a coreset has of each: as many as can be with `most` rows together.

    Cost: densities of some thousand rows at a thousand draws, where not all levels are kept whole.
    """
    whole = [OfLevel(level, level.weighted(level.rows.multiplicity())) for level in rare.levels]
    largest = WHOLE_OF_OPEN if is_open else WHOLE
    sizes = [own.points.size for own in whole]
    if sum(sizes) <= most and max(sizes) <= largest:
        return whole
    fewer = _stand_ins(problem, rare.levels)
    found = [
        min(fewer[number] or own, own, key=lambda one: one.points.size)
        for number, own in enumerate(whole)
        if fewer[number] is not None or own.points.size <= largest
    ]
    found.sort(key=lambda one: one.points.size)
    together = np.cumsum([one.points.size for one in found])
    return [one for one, size in zip(found, together, strict=True) if size <= most]


def _stand_ins(problem: Problem, levels: Sequence[Points]) -> list[OfLevel | None]:
    """For each level a few of its rows; None where none will do, or it needs none."""
    draws, proposal = _draws(problem, levels)
    if draws is None or proposal is None:
        return [None] * len(levels)
    space = MonteCarloSpace(problem.model, draws)
    return [_stand_in(space, level) if proposal.sees(level.rows) else None for level in levels]


def _stand_in(space: MonteCarloSpace, level: Points) -> OfLevel | None:
    if level.indices.size <= FEWEST:
        return None
    total = space.total(level.rows).element
    sizes = range(1, min(MOST, level.indices.size) + 1)
    for choice in orthogonal_pursuit(space, level.rows, total, list(sizes)):
        points = level.take(choice.taken).weighted(choice.weights)
        nats = half_square(total - space.combine(space.embed(points.rows), points.weights))
        if nats <= ENOUGH:
            return OfLevel(level, points, nats)
    return None


def _draws(problem: Problem, levels: Sequence[Points]) -> tuple[Array | None, WideProposal | None]:
    """Of the posterior of some rows, which stand for all, and of every row of the levels."""
    own = np.concatenate([level.indices for level in levels])
    points = problem.points(np.setdiff1d(looked_at(problem), own))
    weights = points.rows.multiplicity()
    rows, count = points.rows, problem.data.total_count / max(float(weights.sum()), 1.0)
    for level in levels:
        rows = rows.append(level.rows)
    every = [count * weights, *(level.rows.multiplicity() for level in levels)]
    posterior = Posterior(problem.model, Block(rows.fields), np.concatenate(every))
    rng = np.random.default_rng(problem.data.num_rows)
    with np.errstate(all="ignore"):
        proposal = wide_proposal(posterior)
        if proposal is None:
            return None, None
        pilot = try_proposal(rng, posterior, proposal)
    if not np.isfinite(pilot.time):
        return None, None
    shares = np.exp(pilot.log_ratios - pilot.log_ratios.max())
    # Evenly spaced along the running sum: a draw comes as often as its share says, to within one.
    places = (np.arange(NUM_DRAWS) + 0.5) / NUM_DRAWS * shares.sum()
    return pilot.draws[np.searchsorted(np.cumsum(shares), places)], proposal
