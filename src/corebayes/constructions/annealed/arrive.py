"""Arriving without a march: Newton's method in the Hermite space of a log-concave model.

The first two degrees of the total at N(μ, LLᵀ) are the mean gradient and Hessian of all rows there,
so every look is also a step towards the Gaussian closest to π,

    μ ← μ + L P⁻¹ g,   L ← L P^(−1/2),     g = Lᵀ E∇ log π,   P = −Lᵀ E∇² log π L,

from the posterior of a subsample that counts for all rows. The first look also says by how much the
subsample errs: with that difference added it stands for all rows as far as the next look, without
a pass; and of few parameters, looked at to degree 3 from close by, it stands for them for good. So
one pass or two as a rule, whatever N and d are, and no pilot on the way; where the steps do not
settle, the march finds the way.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import isfinite
from typing import NamedTuple

import numpy as np

from corebayes.constructions.annealed.heavy import heaviest, with_skewness
from corebayes.constructions.annealed.look import Look
from corebayes.constructions.annealed.surrogate import (
    NEGLIGIBLE,
    Carried,
    Sample,
    Surrogate,
    foreseen,
    total_of,
)
from corebayes.constructions.annealed.view import View
from corebayes.rows import Rows
from corebayes.samplers.laplace import asked_posterior
from corebayes.samplers.remembered import Remembered
from corebayes.tangent.default import SKEWED_DIM, SKEWED_ROWS, affordable_cubes
from corebayes.tangent.geometry import subsample
from corebayes.tangent.hermite import Hermite, HermiteSpace
from corebayes.types import Block, Gaussian, Indices, Total, WeightedPoints

# Nats between the Gaussian of the space and the one closest to π, at which points may be selected:
# a third of a standard deviation in one direction.
SETTLED = 0.05
# The share of that below which a forecast is believed.
SURELY = 0.1
# The same where the way is found by safe steps: a posterior as wide as its prior in some direction
# is no Gaussian, and polished weights do the rest.
NEAR_ENOUGH = 1.0
# Looks at most: more would be no better than a march.
MOST_LOOKS = 10
# Passes on the way to a mode at most.
MOST_PASSES_TO_MODE = 120
# A step that leaves more than this share of the way will not settle.
SLOWEST = 0.7
# Rows that are looked at before all of them, at most: as many as files keep (`rows.RESERVE_ROWS`).
MOST_ROWS_BEFORE = 2**17
# The squared distance to the mode, in standard deviations, from where the mean is in sight.
AT_THE_MODE = 1e-2


class Arrival(NamedTuple):
    """Close to π."""

    look: Look
    """From there, its points still the subsample."""
    geometry: Hermite
    """What the posterior needs."""
    heavy: WeightedPoints
    """With many parameters, rows that few others can stand for."""


def arrive(view: View, points: WeightedPoints) -> Arrival | None:
    """From a subsample weighted as all rows to a look from close to π; None where none is in sight.

    Cost: as a rule one to three looks.
    """
    geometry, problem = view.geometry(), view.problem
    if not (isinstance(geometry, Hermite) and problem.model.log_concave):
        return None
    # Degrees beyond the second say nothing of the way.
    rough = replace(geometry, order=min(geometry.order, 2))
    rows = Block(points.rows.fields, points.weights)
    space = _within_reach(view, rough, rough.space(view.rng, problem, points), rows)
    settled = _settled(view, rough, geometry, space, rows)
    unseen = settled is None
    if settled is None:
        # A few rows far out may say more than all others, and the subsample lacks them.
        seen = _with_heavy(view, space, points)
        rows = Block(seen.rows.fields, seen.weights)
        space = rough.space(view.rng, problem, seen, space.location)
        settled = _settled(view, rough, geometry, space, rows)
    if settled is None:
        # A wide prior on what the subsample does not show: safe steps to the mode come first.
        start = space.location
        ask = Remembered(problem.ask)
        # Each takes a pass for the length and one for the derivatives; half is for what follows.
        steps = max(int(min(view.passes_left, MOST_PASSES_TO_MODE) / 4.0), 1)
        fit = asked_posterior(
            problem.model, ask, start=start, tolerance=AT_THE_MODE, max_steps=steps
        )
        settled = _descended(view, rough, fit)
    if settled is None:
        return None
    space, total, nearer, surrogate = settled
    heavy = heaviest(view, space, points, rare=unseen)
    if view.given is None:
        geometry = with_skewness(view, geometry, space, points.rows, heavy.rows)
    if surrogate is not None:
        geometry = Carried(**vars(geometry), surrogate=surrogate, data=problem.data)
    if geometry.order > space.order:
        space = geometry.space_at(problem, nearer)
        total = geometry.total(problem, space)
    return Arrival(Look.of(points, space, total), geometry, heavy)


def _with_heavy(view: View, space: HermiteSpace, points: WeightedPoints) -> WeightedPoints:
    """A subsample and the rows that are heaviest there, which stand for themselves; the others for
    all that are left. Cost: a pass of N·d² flops."""
    heavy = heaviest(view, space, points, rare=True)
    heavy = heavy.at(heavy.rows.multiplicity())
    left = view.problem.data.total_count - float(heavy.weights.sum())
    others = points.scaled(left / float(points.weights.sum()))
    return others.append(heavy)


class Place(NamedTuple):
    """A space close to π, the total there and the Gaussian that is closer still."""

    space: HermiteSpace
    total: Total
    nearer: Gaussian
    surrogate: Surrogate | None = None
    """What stands for all rows there, if something does."""


def _within_reach(view: View, rough: Hermite, space: HermiteSpace, rows: Block) -> HermiteSpace:
    """Where all rows are first looked at: to degree 3, and from as close as more random rows lead,
    if the subsample can stand for all of them from then on; else as it is.

    Cost: at most a quarter of a pass, as a rule much less. The error is of the sixth order in how
    far all rows are, so of the third in how many rows were looked at before.
    """
    problem, number, data = view.problem, len(rows), view.problem.data
    few = space.dim <= SKEWED_DIM and affordable_cubes(problem)
    if not (few and space.order == 2 and data.num_rows > SKEWED_ROWS):
        return space
    cubes = replace(space, order=3)
    times = np.cbrt(Sample.of(cubes, rows).usual_error() / NEGLIGIBLE)
    more = _num_before(data)
    if not number * times <= more:
        return space
    if more <= number:
        return cubes
    total = rough.total(problem, space, subsample(view.rng, problem, more))
    return replace(rough, order=3).at(space.model, foreseen(rough, space, total, rows).gaussian)


def _num_before(data: Rows) -> int:
    """How many rows may be looked at before all of them."""
    return min(MOST_ROWS_BEFORE, data.num_rows // 4, data.num_at_hand)


def _at_hand(view: View) -> Indices | None:
    """Random rows for what need not be known of all rows; None where there are too few for it."""
    data = view.problem.data
    number = _num_before(data)
    return subsample(view.rng, view.problem, number) if number == MOST_ROWS_BEFORE else None


def _settled(
    view: View, rough: Hermite, fine: Hermite, space: HermiteSpace, rows: Block
) -> Place | None:
    """Newton's steps from a space to one that is close to π; None where they do not settle.

    Over where the subsample `rows`, counted as all rows, stands for them at the end of the steps,
    if they are so many that looks cost something. Else the last look has the `fine` geometry, as
    soon as it is foreseen to be the last: after the first by the subsample; later each step squares
    what the step before left of the way, in deviations.
    """
    problem, last, enough = view.problem, float("inf"), SETTLED
    at_hand = _at_hand(view)
    for _ in range(MOST_LOOKS):
        total = total_of(rough, problem, space, rows, at_hand)
        nearer, misfit = space.newton(total)
        if not (isfinite(misfit) and (misfit <= max(enough, SLOWEST * last))):
            return None
        ahead = foreseen(rough, space, total, rows)
        if ahead.surrogate is not None and problem.data.num_rows > SKEWED_ROWS:
            there = fine.space_at(problem, ahead.gaussian)
            if ahead.surrogate.is_exact(there):
                total = ahead.surrogate.total(there)
                return Place(there, total, there.newton(total)[0], ahead.surrogate)
        if misfit <= enough:
            return Place(*space.cut(total, fine.order), nearer)
        forecast, enough = ahead.off, NEAR_ENOUGH if ahead.walled else enough
        if isfinite(last):
            forecast = min(forecast, misfit * (misfit / last) ** 2)
        geometry = fine if forecast <= SURELY * SETTLED else rough
        space, last = geometry.space_at(problem, ahead.gaussian), misfit
    return None


def _descended(view: View, rough: Hermite, fit: Gaussian) -> Place | None:
    """As `_settled`, by steps that are shortened until KL falls: slower, and safe.

    Where a posterior is as wide as its prior in some direction, one nat of the way is near enough.
    """
    problem = view.problem
    ask, start = partial(rough.total, problem), rough.space_at(problem, fit)
    space, total = rough.descend(
        start.model,
        fit,
        ask,
        enough=SETTLED,
        near=NEAR_ENOUGH,
        most_steps=MOST_LOOKS,
        most_looks=view.passes_left,
    )
    nearer, misfit = space.newton(total)
    return Place(space, total, nearer) if misfit <= NEAR_ENOUGH else None
