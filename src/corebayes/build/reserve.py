"""More rows beside a coreset, for whoever will add to it or merge it.

A coreset is matched around the posterior of its own rows. More rows make it narrower and move it
by a standard deviation or so, and what was not matched there, the third degree first of all, adds
up from step to step. A reserve of R > M rows matches that too:

    min_{v ≥ 0, ‖v‖_0 ≤ R} ½ Var_w[Σ_n c_n f_n − Σ_i v_i f_i]    to degree 3 or more, at N(μ_w, Σ_w)

It is no better coreset for a posterior as it is, so nothing but `update` and `merge` looks at it.
"""

from __future__ import annotations

import time
from dataclasses import replace
from math import comb
from os import PathLike
from pathlib import Path

import numpy as np

from corebayes.build.around import FINE
from corebayes.build.missed import CHEAP, SeenTotal, is_plain, missed_by, seen_widely
from corebayes.build.rest import Rest
from corebayes.build.run import Run
from corebayes.build.tolerance import Tolerance
from corebayes.build.wide_draws import (
    is_cheap_at_draws,
    is_seen_at_draws,
    kept_width,
    seen_at_draws,
)
from corebayes.constructions import AnnealedSparseVI
from corebayes.constructions.annealed.look import Look
from corebayes.coreset import Coreset
from corebayes.deadline import OutOfTimeError
from corebayes.models.families.glm import GLM
from corebayes.problem import Problem
from corebayes.tangent.default import AFFORDABLE, SKEWED_DIM, affordable_cubes
from corebayes.tangent.geometry import element_of, half_square, random_points
from corebayes.tangent.hermite import Hermite, HermiteSpace
from corebayes.types import Model, Rng, WeightedPoints
from corebayes.watch.interrupts import is_interrupt
from corebayes.weights.pursuit import orthogonal_pursuit

# Rows of the reserve for each row of the coreset, and the least and the most that a default asks
# for: few cost next to nothing.
RESERVE, LEAST_RESERVE, MOST_RESERVE = 3, 60, 1500
# Numbers that a default matches all of, whatever the size: the third degree of ten coefficients,
# the fourth of six.
FEW_MATCHED = 300
# A default keeps no more than this share of the rows: a reserve is a summary too.
LARGEST_SHARE = 0.5
# Random rows to choose from for each one that is kept. The fewer there are, the more alike the
# weights, and the less is missed in degrees that were not matched.
POOL_ROWS_A_POINT = 4


def default_reserve(problem: Problem, size: int) -> int:
    """Rows to keep beside `size` of them when nobody says how many; 0 for none.

    A conjugate model needs none: there is nothing beyond quadratics.
    """
    model, most = problem.model, int(LARGEST_SHARE * problem.data.num_rows)
    usual = min(usual_reserve(model, size), most)
    if is_plain(model) and model.dim <= SKEWED_DIM and affordable_cubes(problem):
        return usual
    return usual if is_cheap_at_draws(problem, usual) else 0


def usual_reserve(
    model: Model, size: int, times: int = RESERVE, most_cubes: int = FEW_MATCHED
) -> int:
    """So many times `size` rows; no fewer than cost next to nothing or match all quadratics, or
    the third or fourth degree where that is of few numbers; and no more than are many."""
    quadratics, cubes, fourth = (comb(model.dim + degree, degree) for degree in (2, 3, 4))
    higher = [cubes] * (cubes <= most_cubes) + [fourth] * (fourth <= FEW_MATCHED)
    matched = max([quadratics, *higher])
    at_draws = is_seen_at_draws(model)
    # What a GLM's reserve misses is kept as well, and follows the posterior.
    rows = 2 * times * size if at_draws else times * size
    least = max(rows, LEAST_RESERVE, matched if at_draws or isinstance(model, GLM) else 0)
    return min(least, max(MOST_RESERVE, size))


def with_reserve(
    run: Run, coreset: Coreset, asked: int | None, checkpoint: str | PathLike[str] | None
) -> Coreset:
    """The coreset with a reserve of `asked` rows, the default number for None.

    Without one when it was interrupted or out of time, or none finer is found. Cost: of a default
    a pursuit of so many rows, and one pass of N·d³ flops only if that is next to nothing: else,
    where the build itself has seen no degree beyond the second, there is none. If it was asked
    for, one pass of N·d³ flops for a GLM, a few passes else.
    """
    if coreset.reason == "interrupted" or coreset.indices.min(initial=0) < 0:
        return coreset
    problem = replace(run.problem, data=run.problem.data.using())
    size = default_reserve(problem, coreset.size) if asked is None else asked
    if size <= coreset.size or run.limit.is_over():
        return coreset
    seen = _last_seen(run)
    unseen = is_plain(problem.model) and seen is None
    if asked is None and unseen and _pass_flops(problem) > CHEAP:
        return coreset
    finer = Run(
        problem,
        AnnealedSparseVI(tolerance=FINE),
        run.seed,
        np.random.default_rng(run.seed),
        run.limit,
        run.fingerprint,
    )
    size = min(size, problem.data.num_rows)
    folder = None if checkpoint is None else Path(checkpoint) / "reserve"
    try:
        with finer.recorded(folder, [size]), run.problem.data.stage("reserve"):
            wide = seen_widely(problem, coreset.points, CHEAP if asked is None else AFFORDABLE)
            points = _found(
                finer, run.rest, coreset.points, size, wide, seen, is_default=asked is None
            )
            missed = None if points is None or wide is None else missed_by(points, wide)
    except BaseException as error:
        # The coreset itself is there, and nobody waits for what is beside it.
        if not (is_interrupt(error) or isinstance(error, OutOfTimeError)):
            raise
        return coreset
    data = run.problem.data
    spent = {
        **data.meter.to_dict(),
        "passes": run.problem.rows_scanned / data.num_rows,
        "seconds": time.perf_counter() - run.limit.began,
    }
    told = {**coreset.provenance, **spent, **kept_width(problem.model, size)}
    coreset = replace(coreset, provenance=told)
    if points is None or points.size <= coreset.size:
        return coreset
    return replace(coreset, reserve=points.take(np.argsort(points.indices)), missed=missed)


def _pass_flops(problem: Problem) -> float:
    """Of the third degree."""
    return problem.data.num_rows * float(problem.model.dim) ** 3


def _last_seen(run: Run) -> SeenTotal | None:
    """None if that was not beyond the second degree."""
    for look in getattr(run.state, "answers", ())[-1:]:
        # A construction that had to grow row by row ends with answers of another kind.
        if isinstance(look, Look) and isinstance(look.space, HermiteSpace) and look.space.order > 2:
            return SeenTotal(look.space, look.total.element)
    return None


def _found(
    run: Run,
    rest: Rest | None,
    points: WeightedPoints,
    size: int,
    wide: SeenTotal | None,
    seen: SeenTotal | None,
    *,
    is_default: bool,
) -> WeightedPoints | None:
    """In one go of a GLM, and of others of few parameters, else, if it was asked for, by a
    construction; None where the points are as fine."""
    if is_plain(run.problem.model):
        # Beside rows that are kept whole the construction has seen the others, in fewer columns.
        known = seen if wide is None or rest is not None else wide
    else:
        known = None if rest else seen_at_draws(run.rng, run.problem, points, size)
    if known is not None or is_plain(run.problem.model):
        found, is_finer = in_one_go(run, rest, points, size, known)
        return found if is_finer else None
    if is_default:
        return None
    run.init(size, points)
    run.until(Tolerance(None), lambda *_: None)
    return run.points


def in_one_go(
    run: Run,
    rest: Rest | None,
    points: WeightedPoints,
    size: int,
    seen: SeenTotal | None,
) -> tuple[WeightedPoints, bool]:
    """`size` rows that match all rows where these were `seen` (a GLM's to third degree at the
    posterior of the points, unless they were), those that are kept whole among them, and whether
    they match more than the points.

    Cost: a pass of N·d³ flops unless all rows were seen, and a pursuit of `size` rows.
    """
    problem = run.problem
    if rest is not None:
        problem = replace(rest.problem, data=rest.problem.data.using())
        problem.data.log = run.problem.data.log
        points, size = rest.apart(points), size - rest.kept.size
    if seen is None:
        geometry = Hermite(order=3)
        space = geometry.space(run.rng, problem, points)
        seen = SeenTotal(space, geometry.total(problem, space).element)
    found, is_finer = _selected(run.rng, problem, points, size, seen)
    return found if rest is None else rest.joined(found), is_finer


def _selected(
    rng: Rng, problem: Problem, points: WeightedPoints, size: int, seen: SeenTotal
) -> tuple[WeightedPoints, bool]:
    """From the points and random rows; and whether less is left than of the points."""
    space, goal = seen
    fresh = random_points(rng, problem, POOL_ROWS_A_POINT * size).positive()
    pool = points.append(fresh.take(np.flatnonzero(~np.isin(fresh.indices, points.indices))))
    (choice,) = orthogonal_pursuit(space, pool.rows, goal, [size], enough=FINE)
    found = pool.take(choice.taken).at(choice.weights)
    left, before = (half_square(goal - element_of(space, one)) for one in (found, points))
    return found, left < before
