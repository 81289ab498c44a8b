"""Arriving without a march: Newton's method in the Hermite space of a log-concave model.

The first two degrees of the total at N(μ, LLᵀ) are the mean gradient and Hessian of all rows there,
so every look is also a step towards the Gaussian closest to π,

    μ ← μ + L P⁻¹ g,   L ← L P^(−1/2),     g = Lᵀ E∇ log π,   P = −Lᵀ E∇² log π L,

from the posterior of a subsample that counts for all rows. The first look also says by how much the
subsample errs: with that difference added it stands for all rows as far as the next look, without
a pass. Two passes as a rule, whatever N and d are, and no pilot on the way; where the steps do not
settle, the march finds the way.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import isfinite
from typing import NamedTuple

from corebayes.constructions.annealed.heavy import heaviest, with_skewness
from corebayes.constructions.annealed.look import Look
from corebayes.constructions.annealed.surrogate import foreseen
from corebayes.constructions.annealed.view import View
from corebayes.problem import Problem
from corebayes.samplers.laplace import asked_posterior
from corebayes.samplers.remembered import Remembered
from corebayes.tangent.hermite import Hermite, HermiteSpace
from corebayes.types import Block, Gaussian, Total, WeightedPoints

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

    Cost: as a rule two or three looks.
    """
    geometry, problem = view.geometry(), view.problem
    if not (isinstance(geometry, Hermite) and problem.model.log_concave):
        return None
    # Degrees beyond the second say nothing of the way.
    rough = replace(geometry, order=min(geometry.order, 2))
    settled = _settled(
        problem,
        rough,
        geometry,
        rough.space(view.rng, problem, points),
        Block(points.rows.fields, points.weights),
    )
    unseen = settled is None
    if settled is None:
        # A wide prior on what the subsample does not show: safe steps to the mode come first.
        start = rough.space(view.rng, problem, points).location
        ask = Remembered(problem.ask)
        # Each takes a pass for the length and one for the derivatives; half is for what follows.
        steps = max(int(min(view.passes_left, MOST_PASSES_TO_MODE) / 4.0), 1)
        fit = asked_posterior(
            problem.model, ask, start=start, tolerance=AT_THE_MODE, max_steps=steps
        )
        settled = _descended(view, rough, fit)
    if settled is None:
        return None
    space, total, nearer = settled
    heavy = heaviest(view, space, points, rare=unseen)
    if view.given is None:
        geometry = with_skewness(view, geometry, space, points.rows, heavy.rows)
    if geometry.order > space.order:
        space = geometry.space_at(problem, nearer)
        total = geometry.total(problem, space)
    return Arrival(Look.of(points, space, total), geometry, heavy)


def _settled(
    problem: Problem, rough: Hermite, fine: Hermite, space: HermiteSpace, rows: Block
) -> tuple[HermiteSpace, Total, Gaussian] | None:
    """Newton's steps from a space to one that is close to π; None where they do not settle.

    The last look has the `fine` geometry, as soon as it is foreseen to be the last: after the first
    by the subsample `rows`, counted as all rows; later each step squares what the step before left
    of the way, in deviations.
    """
    last, geometry, enough = float("inf"), rough, SETTLED
    for _ in range(MOST_LOOKS):
        total = geometry.total(problem, space)
        nearer, misfit = space.newton(total)
        if misfit <= enough:
            return space, total, nearer
        if not (isfinite(misfit) and misfit <= SLOWEST * last):
            return None
        ahead = foreseen(rough, space, total, rows)
        forecast, enough = ahead.off, NEAR_ENOUGH if ahead.walled else enough
        if isfinite(last):
            forecast = min(forecast, misfit * (misfit / last) ** 2)
        geometry = fine if forecast <= SURELY * SETTLED else rough
        space, last = geometry.space_at(problem, ahead.gaussian), misfit
    return None


def _descended(
    view: View, rough: Hermite, fit: Gaussian
) -> tuple[HermiteSpace, Total, Gaussian] | None:
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
    return (space, total, nearer) if misfit <= NEAR_ENOUGH else None
