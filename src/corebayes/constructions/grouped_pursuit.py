"""Coresets of mixed models: some rows of every group, chosen jointly around the posterior.

Rows of a mixed model touch few parameters, so the Gaussian closest to the posterior of *all* rows
is found in a handful of passes of N·p² flops, whatever the number of groups; no coreset needs to
stand in for it on the way. In the tangent space there (`corebayes.tangent.arrow`) the choice is

    w = argmin_{w ≥ 0, ‖w‖_0 ≤ M} ‖Σ_n c_n g_n − Σ_i w_i g_i‖²

over some rows of every group, by a pursuit of all groups at once (`weights.grouped_pursuit`). Rows
to match every quadratic are G(q + q(q + 1)/2 + pq) + p(p + 3)/2 + 1 for G groups of q effects and
p shared parameters, and a KL of a hundredth takes some two thirds of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from corebayes.arrow.fit import Fitted, Fitting, fit
from corebayes.arrow.gaussian import ArrowGaussian
from corebayes.arrow.start import beginning, fitting_of, sums_in_parts
from corebayes.constructions.construction import OPEN_PASSES, Construction, Info, Plan, Style
from corebayes.constructions.grouped_choice import (
    candidates,
    check_size,
    largest_open,
    pursued,
    warn_of_few,
)
from corebayes.constructions.grouped_cubes import by_cubes, has_cubes
from corebayes.constructions.grouped_draws import (
    NEAR_ENOUGH,
    FullHeights,
    by_draws,
    height_draws,
    judge_draws,
    judged,
    sees_draws,
    worth_more,
)
from corebayes.constructions.grouped_widths import by_two_widths, is_cheap
from corebayes.constructions.proper_pilot import proper
from corebayes.models.structure import StructuredModel, is_structured
from corebayes.problem import Problem
from corebayes.tangent.arrow.pool import GroupLook
from corebayes.tangent.arrow.space import ArrowSpace
from corebayes.types import Estimate, Points, Rng, WeightedPoints

# Newton's step in standard deviations, squared, on average over the parameters, at which the
# tangent space stands where it should: a thirtieth of a standard deviation moves no covariance by
# more than a thousandth. A pilot need not be closer to the posterior of its own rows.
SETTLED, PILOT_SETTLED = 1e-3, 1e-2
# A step shorter than this is followed by one that settles, so that its pass finds candidates too.
NEARLY = 0.5
MOST_PASSES = 12
# Nats below which nothing is left that a certificate could see.
NOTHING_LEFT = 1e-6
# An open size grows by so much at a time; sizes up to so many times the next are chosen together.
ENLARGED, AHEAD = 1.2, 2.0


class Approach(NamedTuple):
    """On the way to the Gaussian of all rows."""

    sizes: tuple[int, ...]
    open: bool
    pool: Points
    shown: WeightedPoints
    gaussian: ArrowGaussian
    last: Fitted | None
    decrement: float
    num_passes: int

    @property
    def points(self) -> WeightedPoints:
        return self.shown


class RatedPoints(NamedTuple):
    """The points of a size, and what they are worth."""

    points: WeightedPoints
    promise: Estimate


class Chosen(NamedTuple):
    """Sizes have their points, or will have them when they are reached: large ones take longest."""

    sizes: tuple[int, ...]
    answers: tuple[RatedPoints, ...]
    """Of the first of the sizes."""
    number: int
    """Which of the answers counts now."""
    choose: Callable[[Sequence[int]], list[RatedPoints]]

    @property
    def points(self) -> WeightedPoints:
        return self.answers[self.number].points

    def at(self, number: int) -> Chosen:
        """The same with another of the sizes; with it those of up to twice its rows are chosen."""
        answers = self.answers
        if number >= len(answers):
            most = AHEAD * self.sizes[number]
            next_ones = [size for size in self.sizes[len(answers) :] if size <= most]
            answers = (*answers, *self.choose(next_ones))
        return self._replace(answers=answers, number=number)


@dataclass(frozen=True, kw_only=True)
class GroupedPursuit(Construction):
    """Rows of every group for models whose rows touch few parameters; the default for these.

    `pool_rows` are candidates of every group, chosen in proportion to how much they say. Cost: four
    to six passes of N·p² flops, then a pursuit of M·P² flops a round, P = p(p + 3)/2.
    """

    style = Style("#B2452E", "d")

    pool_rows: int | None = None

    @property
    def may_see_fewer_rows(self) -> bool:
        return True

    def passes(self, size: int | None) -> tuple[float, float]:
        return (3.0, OPEN_PASSES if size is None else 3.0 + MOST_PASSES)

    def plan(self, problem: Problem) -> Plan | None:
        model = problem.model
        if not is_structured(model):
            return None
        matched = min(model.structure.num_matched, problem.data.num_rows)
        text = f"{model.structure.describe()}. {matched:,} rows match all their quadratics"
        return Plan(f"{text}, some two thirds of them come close", matched)

    def init(self, rng: Rng, problem: Problem, size: int | None) -> Approach:
        return self._begin(rng, problem, None if size is None else (size,))

    def init_path(self, rng: Rng, problem: Problem, sizes: Sequence[int]) -> Approach:
        return self._begin(rng, problem, tuple(sizes))

    def _begin(self, rng: Rng, problem: Problem, sizes: tuple[int, ...] | None) -> Approach:
        model, fitting = _structured(problem)
        matched = min(model.structure.num_matched, problem.data.num_rows)
        _check_groups(model, problem)
        goal = sizes or (largest_open(fitting.layout, matched),)
        check_size(fitting.layout, goal[-1])
        if sizes is not None:
            warn_of_few(model, sizes[0], matched)
        per_group = self._per_group(fitting, goal[-1])
        look = problem.ask(GroupLook(model, fitting.layout, None, per_group, _seed(rng)))
        assert look.pool is not None
        pool, groups = look.pool.points, fitting.layout.split(model, look.pool.points.rows).groups
        weights = pool.rows.multiplicity()
        seen = np.bincount(groups, weights, minlength=look.counts.size)
        weights = weights * (look.counts / np.maximum(seen, 1e-300))[groups]
        pilot = fit(
            proper(fitting, model, pool.rows),
            fitting.start(beginning(model)),
            lambda q: sums_in_parts(model, fitting.layout, q, pool.rows, weights),
            tolerance=PILOT_SETTLED,
        )
        shown = _shown(pool.weighted(weights), goal[-1])
        return Approach(goal, sizes is None, pool, shown, pilot.gaussian, None, np.inf, 0)

    def step(
        self, rng: Rng, problem: Problem, state: Approach | Chosen
    ) -> tuple[Approach | Chosen, Info]:
        if isinstance(state, Approach):
            return self._approach(rng, problem, state)
        return _next_size(state)

    def _approach(
        self, rng: Rng, problem: Problem, state: Approach
    ) -> tuple[Approach | Chosen, Info]:
        """A pass, and a step of Newton's method if there is one to take."""
        model, fitting = _structured(problem)
        nearly = state.decrement <= NEARLY * model.dim or state.num_passes + 1 >= MOST_PASSES
        per_group = self._per_group(fitting, state.sizes[-1]) if nearly else None
        num_rows = problem.data.num_rows
        sizes = _ladder(state.sizes[-1], num_rows) if state.open else state.sizes
        gaussian, draws = state.gaussian, None
        if nearly:
            matched = model.structure.num_matched
            few = [size for size in sizes if sees_draws(matched, size)]
            seen = height_draws(rng, model, gaussian, few, num_rows)
            draws = np.concatenate([seen, judge_draws(rng, model, gaussian)])
        query = GroupLook(model, fitting.layout, gaussian, per_group, _seed(rng), draws)
        look = problem.ask(query)
        assert look.sums is not None
        fitted = fitting.at(state.gaussian, look.sums)
        if state.last is not None and not fitted.bound >= state.last.bound - 1e-3 * model.dim:
            # Too long a step: half of it.
            gaussian = fitting.between(state.last.gaussian, state.gaussian, 0.5)
            passes = state.num_passes + 1
            if passes < MOST_PASSES:
                return state._replace(gaussian=gaussian, num_passes=passes), Info(None)
        gaussian, decrement = fitting.step(fitted)
        settled = abs(decrement) <= SETTLED * model.dim
        if look.pool is not None and (settled or state.num_passes + 1 >= MOST_PASSES):
            pool = _union(state.pool, look.pool.points)
            assert draws is not None and look.heights is not None
            heights = FullHeights(draws, look.heights)
            chosen = _choose(problem, fitting, fitted, pool, heights, sizes, state.open)
            return chosen, _info(chosen)
        if settled:
            # Only candidates are missing: the same place again.
            gaussian = fitted.gaussian
        return state._replace(
            gaussian=gaussian,
            last=fitted,
            decrement=abs(decrement),
            num_passes=state.num_passes + 1,
        ), Info(None)

    def _per_group(self, fitting: Fitting, size: int) -> tuple[int, ...]:
        """Candidates of the groups of each term."""
        found = candidates(fitting.layout, size)
        main = fitting.layout.structure.main or 0
        return tuple(
            self.pool_rows or number if place == main else number
            for place, number in enumerate(found)
        )

    def reached(
        self, state: Approach | Chosen, sizes: Sequence[int]
    ) -> Mapping[int, WeightedPoints]:
        if isinstance(state, Approach):
            return {size: state.points for size in sizes if 0 < state.points.size <= size}
        answers = state.answers[: state.number + 1]
        return {size: one.points for size, one in zip(state.sizes, answers, strict=False)}


def _structured(problem: Problem) -> tuple[StructuredModel, Fitting]:
    model = problem.model
    fitting = fitting_of(model)
    assert is_structured(model)
    return model, fitting


def _seed(rng: Rng) -> int:
    return int(rng.integers(2**31))


def _check_groups(model: StructuredModel, problem: Problem) -> None:
    largest = max(model.structure.terms, key=lambda term: term.num_groups, default=None)
    if largest is not None and 2 * largest.num_groups > problem.data.num_rows:
        raise ValueError(
            f"there are {largest.num_groups:,} groups of {largest.name!r} in "
            f"{problem.data.num_rows:,} rows: a coreset keeps some rows of every group, so there "
            "is nothing to leave out. Use all rows, or a column with fewer groups"
        )


def _shown(points: WeightedPoints, size: int) -> WeightedPoints:
    """Of a pilot the rows of largest weight, which then stand for all."""
    kept = points.take(np.sort(np.argsort(-points.weights, kind="stable")[:size])).positive()
    return kept.scaled(points.weights.sum() / kept.weights.sum())


def _union(first: Points, second: Points) -> Points:
    new = np.flatnonzero(~np.isin(second.indices, first.indices))
    return first.append(second.take(new))


def _choose(
    problem: Problem,
    fitting: Fitting,
    fitted: Fitted,
    pool: Points,
    heights: FullHeights,
    sizes: Sequence[int],
    is_open: bool,
) -> Chosen:
    model = problem.model
    assert is_structured(model)
    space = ArrowSpace(model, fitted.gaussian, fitting.prior)
    total = space.total_of(fitted.gaussian.whitened_sums(fitted.sums)).element
    matched, cubes = model.structure.num_matched, has_cubes(problem)
    # Rows that were asked for are to make it better, whatever it is without them.
    enough = 0.0 if cubes and not is_open else NEAR_ENOUGH

    def choose(sizes: Sequence[int]) -> list[RatedPoints]:
        found = pursued(space, pool, total, sizes)
        answers = [RatedPoints(one, judged(heights, model, one)) for one in found]
        more = [
            k
            for k, size in enumerate(sizes)
            if worth_more(matched, size, *answers[k], enough)
            and (sees_draws(matched, size) or cubes or is_cheap(space, pool, size))
        ]
        few = [k for k in more if sees_draws(matched, sizes[k])]
        many = [k for k in more if k not in few]
        others = list[WeightedPoints]()
        if few:
            others += by_draws(heights, space, total, pool, [sizes[k] for k in few])
        if many:
            wanted = [sizes[k] for k in many]
            if cubes:
                others += by_cubes(problem, space, total, pool, wanted)
            else:
                others += by_two_widths(problem, fitting, fitted, space, total, pool, wanted)
        for k, points in zip([*few, *many], others, strict=True):
            promise = judged(heights, model, points)
            if promise.value < answers[k].promise.value:
                answers[k] = RatedPoints(points, promise)
        return answers

    if is_open:
        return Chosen(tuple(sizes), (), 0, choose).at(0)
    return Chosen(tuple(sizes), tuple(choose(sizes)), 0, choose)


def _ladder(goal: int, num_rows: int) -> tuple[int, ...]:
    """Sizes to try where none was asked for, up to what matches every quadratic and beyond."""
    largest = min(int(1.5 * goal), num_rows)
    size, sizes = max(1, goal // 5), list[int]()
    while size < largest:
        sizes.append(size)
        size = max(size + 1, int(ENLARGED * size))
    return (*sizes, largest)


def _next_size(state: Chosen) -> tuple[Chosen, Info]:
    state = state.at(min(state.number + 1, len(state.sizes) - 1))
    return state, _info(state)


def _info(state: Chosen) -> Info:
    number, (points, kl) = state.number, state.answers[state.number]
    if number < len(state.sizes) - 1:
        return Info(kl)
    size = points.size
    if size < state.sizes[number]:
        if kl.value > NOTHING_LEFT:
            return Info(kl, f"{size} rows are near enough, and no candidates come much closer")
        return Info(kl, f"{size} rows match all that is seen; more would not lower KL visibly")
    return Info(kl, f"chosen at size {size}")
