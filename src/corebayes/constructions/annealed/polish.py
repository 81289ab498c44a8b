"""The polish: weights by natural gradient, points selected again from π_w, only where KL falls.

Selection around π ≈ π_pilot is right for points that will be close to π. What is left,

    min_w KL(π_w ‖ π)   over the weights of the points, and then over the points as π_w sees them,

is alternated as long as it pays. The first looks at a coreset are far coarser than the pilot, so
they are rehearsed: the pilot stands for all rows, and a look needs no pass.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from corebayes.constructions.annealed import grow
from corebayes.constructions.annealed.grow import Arrived, Grow
from corebayes.constructions.annealed.look import Look
from corebayes.constructions.annealed.view import Goal, View
from corebayes.constructions.construction import Info
from corebayes.types import WeightedPoints
from corebayes.weights.natural_gradient import NaturalGradient

# The pilot stands for the posterior once it is this close, in nats: a third of a standard deviation
# in one direction.
SETTLED = 0.05
# A rehearsal is worth it while the coreset is this many times further from π than the pilot.
FURTHER = 10.0
# Weights that bring KL down to this share of what it was are still on their way: no other points
# are looked for. Other points must promise to leave no more than the second share of KL.
STILL_FALLING, WORTH_A_LOOK = 0.01, 0.8
# Below so many nats, which no certificate tells from nothing, other points are not worth their
# passes.
ENOUGH = 1e-6
# An open size that does not do grows by a third of itself: KL falls geometrically in the size, so
# few sizes are tried, and the one that does is at most a third too large.
ENLARGED = 3
# From so many rows on another size costs seconds or minutes. So one that is nats away is doubled,
# and one of more than half of all rows is all of them: fewer would save less than they cost.
MANY_ROWS, FAR, MOST_SHARE = 1000, 1.0, 0.5


class Polish(NamedTuple):
    """Points are chosen for every size; some sizes have their answer."""

    goal: Goal
    look: Look
    """Where the last answer stands, or the pilot."""
    pilot: Look
    """What the points were selected from."""
    chosen: tuple[WeightedPoints, ...]
    """For each size."""
    answers: tuple[Look, ...] = ()
    """The coresets of the first sizes, polished."""

    @property
    def points(self) -> WeightedPoints:
        return self.goal.shown(self.look.points)


class Polisher(NamedTuple):
    """How far it goes."""

    steps: NaturalGradient
    rounds: int
    """Times that points are selected again, at most."""
    tolerance: float
    """Nothing is left to do when ½ ‖residual‖² is at most this."""


def step(view: View, state: Polish, polisher: Polisher) -> tuple[Polish | Grow | Arrived, Info]:
    """The answer for the next size."""
    goal, number = state.goal, len(state.answers)
    size, points = goal.sizes[number], state.chosen[number]
    rehearsal = _rehearsal(view, state, points)
    if rehearsal is not None:
        rough = rehearsal.look(points, state.look)
        points = improved(view, rehearsal, state.look, rough, size, polisher, scan=False).points
    last = number == len(goal.sizes) - 1
    best = view.look_near(points, state.look)
    best = improved(view, view, state.look, best, size, polisher, scan=last)
    answers = (*state.answers, best)
    if not last:
        return state._replace(look=best, answers=answers), view.info(goal, best, state.pilot)
    growing = grow.begin(view, goal, answers, state.pilot)
    if growing is not None:
        return growing, view.info(goal, best, state.pilot)
    arrived = Arrived(goal, answers, state.pilot)
    return arrived, grow.last_info(view, arrived, polisher.tolerance)


def enlarge(view: View, state: Arrived, polisher: Polisher) -> tuple[Polish | Grow | Arrived, Info]:
    """The answer for a larger size, when the size is open."""
    look, num_rows = state.answers[-1], view.problem.data.num_rows
    size = min(_larger(state.goal.sizes[-1], look.half_variance), num_rows)
    if size > max(MANY_ROWS, MOST_SHARE * num_rows):
        size, chosen = num_rows, _all_rows(view)
    else:
        (chosen,) = view.select(look, [size])
    goal = state.goal._replace(sizes=(size,), scanned=view.problem.rows_scanned)
    larger = Polish(goal, look, state.pilot, (chosen,))
    most = view.most_scanned + goal.scanned - state.goal.scanned
    return step(replace(view, size=size, most_scanned=most), larger, polisher)


def _larger(size: int, nats: float) -> int:
    """The size after this one, whose coreset is so many nats away."""
    return 2 * size if size > MANY_ROWS and nats > FAR else size + max(1, size // ENLARGED)


def _all_rows(view: View) -> WeightedPoints:
    points = view.problem.points(np.arange(view.problem.data.num_rows))
    return points.at(points.rows.multiplicity())


def improved(
    view: View, judge: View, near: Look, best: Look, size: int, polisher: Polisher, *, scan: bool
) -> Look:
    """Weights polished, then points selected again from π_w, as long as that lowers KL.

    Looks start from the one that is `near`. The `judge` says what the totals are: the problem
    itself or its rehearsal.
    """
    all_rows = best.points.size == view.problem.data.num_rows
    for _ in range(polisher.rounds):
        before = best.half_variance
        if all_rows and before <= polisher.tolerance:
            # Their M² inner products would be those of all rows.
            break
        best = judge.polished(best, _steps(judge, before, polisher))
        now = best.half_variance
        if now <= (ENOUGH if view.has_unseen else polisher.tolerance):
            break
        if now <= STILL_FALLING * before:
            continue
        if judge.passes_left < 2.0:
            break
        (again,) = view.select(best, [size], scan=scan)
        if best.promise(again) > WORTH_A_LOOK * now:
            break
        other = judge.look(again, near)
        if not other.lower_than(best):
            break
        best = other
    return best


def _steps(judge: View, half_variance: float, polisher: Polisher) -> NaturalGradient:
    """Weights selected from so close are nearly the best: no passes in search of a shorter step."""
    if judge.has_unseen and half_variance <= SETTLED:
        return replace(polisher.steps, max_trials=2, parts=0)
    return polisher.steps


def _rehearsal(view: View, state: Polish, points: WeightedPoints) -> View | None:
    """The pilot for all rows; None where it is too far, or passes are not what a look costs."""
    pilot = state.pilot
    if not (view.has_unseen and view.cost.is_passes) or pilot.half_variance > SETTLED:
        return None
    if pilot.promise(points) < FURTHER * pilot.half_variance:
        return None
    return view.over(pilot.points)
