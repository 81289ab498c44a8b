"""The growth of coresets that stay far from the posterior, row by row from nothing.

Few points for many parameters leave π_w far from π, and what to add must be seen from π_w:

    n* = argmax_n ⟨g_n, r⟩ / ‖g_n‖  at π_w,  then  min_{w ≥ 0} KL(π_w ‖ π)  by natural gradient,

which is SparseVI, with some rows at a time. At each size asked for the lower KL counts. It takes as
many looks as rows, so it is for where these are cheap: free of N in closed form; else with fewer
points than parameters, on a random pool of rows, which is as good as all where KL is in thousands.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from corebayes.constructions.annealed.look import Look
from corebayes.constructions.annealed.measured import kl_of
from corebayes.constructions.annealed.view import Goal, View
from corebayes.constructions.construction import Info
from corebayes.data.units import noun_of
from corebayes.problem import Problem
from corebayes.scan.query import BestRows
from corebayes.types import Indices, WeightedPoints
from corebayes.weights.natural_gradient import NaturalGradient
from corebayes.weights.pursuit import orthogonal_pursuit

# Beyond this many nats a coreset is far: ½ Var_w r says nothing of KL there (see `Level`).
FAR = 1.0
# One row for every so many there are enters at a time, so that M rows take about 20 log M looks.
GROWTH = 20
# Best-aligned rows that are chosen from, for each that may enter: rows alike are all well aligned.
CHOICE = 20
# Points leave again when weights move, so it is not over when a step adds none, nor at the size
# asked for: a little beyond a lower KL may still be found, and rows dropped.
PATIENCE, BEYOND = 10, 1.25
# Nats that nobody sees.
INVISIBLE = 1e-7
STEPS = NaturalGradient()


class Ground(NamedTuple):
    """The rows that a coreset grows on."""

    problem: Problem
    numbers: Indices | None
    """What they are numbered in the data; None when they are all of it."""


class Grow(NamedTuple):
    """Every size has an answer; another way is tried for the far ones."""

    goal: Goal
    answers: tuple[Look, ...]
    grown: Look
    """The coreset that grows, as seen on its ground."""
    ground: Ground
    pilot: Look
    far: tuple[int, ...]
    """Sizes whose coresets stay far from the posterior."""
    idle: int = 0
    """Steps in a row in which it did not grow."""

    @property
    def points(self) -> WeightedPoints:
        return self.goal.shown(self.answers[-1].points)


class Arrived(NamedTuple):
    """Every size has its answer."""

    goal: Goal
    answers: tuple[Look, ...]
    pilot: Look
    grown: bool = False
    """From nothing, and not selected around the pilot."""

    @property
    def points(self) -> WeightedPoints:
        return self.goal.shown(self.answers[-1].points)


def begin(view: View, goal: Goal, answers: tuple[Look, ...], pilot: Look) -> Grow | None:
    """A coreset of nothing, where growing one can pay."""
    cost, problem = view.cost, view.problem
    on_all = cost.passes == 0.0 or not view.has_unseen
    if not (on_all or cost.is_passes):
        return None
    numbers = None if on_all else view.pool_numbers(view.pool_size)
    largest = problem.data.num_rows if cost.passes == 0.0 else problem.model.dim
    far = tuple(
        size
        for size, answer in zip(goal.sizes, answers, strict=True)
        if not goal.open and size <= largest and view.kl(answer).value > FAR
    )
    if not far:
        return None
    if numbers is not None:
        pool = problem.points(numbers)
        pool = pool.at(pool.rows.multiplicity()).positive()
        numbers = pool.indices
        view = view.over(pool.scaled(problem.data.total_count / pool.weights.sum()))
    grown = view.look(problem.no_points(), answers[-1])
    return Grow(goal, answers, grown, Ground(view.problem, numbers), pilot, far)


def step(view: View, state: Grow, tolerance: float) -> tuple[Grow | Arrived, Info]:
    """Let some more points in from where the growing coreset stands, and move all weights."""
    grown = _grown(replace(view, problem=state.ground.problem), state.grown)
    idle = 0 if grown.points.size > state.grown.points.size else state.idle + 1
    ended = idle == PATIENCE or grown.points.size >= BEYOND * state.far[-1]
    answers = _better(view, state, grown, idle)
    if not ended:
        state = state._replace(grown=grown, idle=idle, answers=answers)
        return state, view.info(state.goal, answers[-1], state.pilot)
    arrived = Arrived(state.goal, answers, state.pilot, grown=True)
    return arrived, last_info(view, arrived, tolerance)


def _grown(view: View, look: Look) -> Look:
    points, residual = look.points, look.residual()
    number = max(1, points.size // GROWTH)
    # The pursuit of what is missing: the best-aligned row and, if more may enter, the best
    # complements to it.
    query = BestRows(look.space, residual, CHOICE * number, np.sort(points.indices))
    best = view.problem.ask(query).points
    (choice,) = orthogonal_pursuit(look.space, best.rows, residual, [number])
    points = points.append(best.take(choice.taken).weighted())
    return view.polished(Look.of(points, look.space, look.total), STEPS)


def _better(view: View, state: Grow, grown: Look, idle: int) -> tuple[Look, ...]:
    """The answers, or what has grown where its KL is lower."""
    numbers, points = state.ground.numbers, grown.points
    if numbers is not None:
        # Of a pool that is a rough look; what counts is one at all rows.
        if idle or points.size not in state.far:
            return state.answers
        points = points._replace(indices=numbers[points.indices])
        grown = view.look(points, state.answers[-1])
    return tuple(
        grown if 0 < points.size <= size and grown.lower_than(answer) else answer
        for size, answer in zip(state.goal.sizes, state.answers, strict=True)
    )


def last_info(view: View, state: Arrived, tolerance: float) -> Info:
    look, largest = state.answers[-1], state.goal.sizes[-1]
    kl = kl_of(view, look, state.pilot)
    if look.half_variance <= tolerance:
        found = f"{look.points.size} {noun_of(view.problem.data.template)}"
        if kl.value <= INVISIBLE:
            return Info(kl, f"{found} match all that is seen; more would not lower KL visibly")
        # What is looked at depends on the size (`tangent.default`).
        seen = "all that a build of this size looks at; a larger size looks closer"
        return Info(kl, f"{found} match {seen}")
    if state.goal.open and largest < view.problem.data.num_rows:
        return Info(kl)
    return Info(kl, f"KL no longer falls at size {largest}, from about {kl.value:.2g} nats")
