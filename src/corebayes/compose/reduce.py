"""Merge and reduce: weighted rows that stand for data, and perhaps new rows, compressed as one.

A coreset's rows count as often as their weights say, so the union of coresets and new rows is a
table like any other, and the coreset of the union minimises

    KL(π_w ‖ π_u),   π_u ∝ π_0 exp(Σ_i v_i f_i + Σ_n c_n f_n)    (old rows i at weights v_i, new n)

What the old coreset missed, r = Σ c f − Σ v f over the data it stands for, is missing in π_u too,
and each reduction adds what it misses itself: residuals add up, r_total = r_1 + r_2 + …. Each is
made small around the posterior of its time, in its quadratic part, and later posteriors lie a
standard deviation or so away, where its third degree has become quadratic and linear: as much as
one build misses, at each step. A reserve of more rows (`Coreset.reserve`) matches the third degree
too, so that what adds up is of a smaller order, and the coreset is chosen from it again each time.
What the reserve of a GLM misses is kept as a polynomial (`build/missed.py`), and put right where
the posterior has moved to before the union is compressed.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from corebayes.build.around import FINE, around_pilot, check_columns
from corebayes.build.missed import (
    SeenTotal,
    is_plain,
    missed_by,
    posterior_fit,
    put_right,
    wide_space,
    widely,
)
from corebayes.build.reserve import MOST_RESERVE, in_one_go
from corebayes.build.rest import rest_of
from corebayes.build.run import Run
from corebayes.build.tolerance import Tolerance
from corebayes.build.wide_draws import is_seen_at_draws, kept_width, seen_at_draws
from corebayes.certify.measure import measure
from corebayes.certify.steps import (
    PLACES,
    Step,
    certified_step,
    passed_steps,
    steps_of,
)
from corebayes.compose.asked import Reduction
from corebayes.compose.places import how_far
from corebayes.compose.tries import closest
from corebayes.compose.union import Union, checked
from corebayes.constructions import AnnealedSparseVI, Construction, default_construction
from corebayes.coreset import Coreset
from corebayes.coreset.missed import Missed
from corebayes.coreset.sources import stored_sources
from corebayes.data.joined import joined_fingerprint
from corebayes.data.warn import warn
from corebayes.deadline import OutOfTimeError, TimeLimit
from corebayes.models.structure import is_structured
from corebayes.problem import Problem
from corebayes.rows import Rows
from corebayes.tangent.default import AFFORDABLE, SKEWED_DIM, affordable_cubes
from corebayes.types import Block, Model, WeightedPoints
from corebayes.watch.progress import Progress


def reduce_union(union: Union, asked: Reduction, limit: TimeLimit, bar: Progress) -> Coreset:
    """The coreset of a union, chosen around a reserve that is kept for the next time.

    Cost: passes over the new rows, and work on the old stand-ins that does not depend on how many
    rows they stand for.
    """
    new = _new_problem(union, asked)
    fresh = _fresh(union, new, asked, limit)
    if is_plain(union.model):
        union = union.seen_from(posterior_fit(union.model, _joined(union, fresh)))
    problem = union.problem(**asked.rows)
    known = _joined(union, fresh)
    pilot, reserve, missed = known, None, None
    if asked.reserve > (asked.size or 0):
        wide = _seen_widely(union, new, asked, limit, pilot)
        if union.new is None and pilot.size <= asked.reserve:
            # Nothing is lost, and the more rows there are to choose from, the better the choice.
            reserve = pilot.nonzero()
        else:
            size = _num_kept(union, asked, problem)
            reserve = _kept(problem, asked, limit, size, pilot, bar, wide)
            pilot = pilot if reserve is None else reserve
        missed = None if reserve is None or wide is None else missed_by(reserve, wide)
    run, reason = _run(problem, asked, limit, "coreset", asked.size, pilot, bar)
    built = run.coreset(run.points, reason)
    if reserve is not None and reserve.size <= built.size:
        # No finer than what was asked for.
        reserve = missed = None
    if union.new is not None:
        known = _as_all_rows(union.model, reserve, missed)
    if known is not None:
        built = closest(union.model, asked, limit, built, known)
    return replace(_composed(union, asked, built, reserve, problem), missed=missed)


def _as_all_rows(
    model: Model, reserve: WeightedPoints | None, missed: Missed | None
) -> WeightedPoints | None:
    """The reserve at weights that are for the posterior as it is: its own are for where that may
    go to, and miss more here than a coreset may. Of a merge, which reads no rows, all stand-ins
    are at hand instead."""
    if reserve is None or missed is None or not is_plain(model):
        return reserve
    there = posterior_fit(model, reserve)
    return reserve if there is None else put_right(model, reserve, missed, there)


def _num_kept(union: Union, asked: Reduction, problem: Problem) -> int:
    """Rows of the reserve; never fewer than before, where what is given up is lost."""
    most = asked.reserve
    if union.new is not None and not asked.reserve_is_given and not is_plain(union.model):
        most = max(most, min(union.stand_ins.size, MOST_RESERVE))
    return min(most, problem.data.num_rows)


def _new_problem(union: Union, asked: Reduction) -> Problem | None:
    """The new rows alone."""
    if union.new is None:
        return None
    return Problem(union.model, checked(union.model, union.new.using(**asked.rows)))


def _fresh(
    union: Union, new: Problem | None, asked: Reduction, limit: TimeLimit
) -> WeightedPoints | None:
    """A coreset of the new rows alone, numbered as in the union: with the stand-ins it is near the
    posterior of all. The posterior of structured models is found from all rows, without it."""
    if new is None or is_structured(union.model):
        return None
    dim, old = union.model.dim, union.stand_ins.size
    size = min(dim * (dim + 3) // 2 + 1, MOST_RESERVE, new.data.num_rows)
    run, _ = _run(new, asked, limit, "new", size, None, Progress())
    found = run.points
    return WeightedPoints(found.indices + old, Block(found.rows.fields), found.weights)


def _joined(union: Union, fresh: WeightedPoints | None) -> WeightedPoints:
    return union.stand_ins if fresh is None else union.stand_ins.append(fresh)


def _kept(
    problem: Problem,
    asked: Reduction,
    limit: TimeLimit,
    size: int,
    pilot: WeightedPoints,
    bar: Progress,
    wide: SeenTotal | None,
) -> WeightedPoints | None:
    """A reserve of `size` rows: in one go around the posterior of the pilot, which is near that of
    all rows, of a GLM and of other models of few parameters; None where the time ends before there
    is one."""
    model = problem.model
    cheap = is_plain(model) and model.dim <= SKEWED_DIM and affordable_cubes(problem)
    if asked.around is not None or not (cheap or is_seen_at_draws(model)):
        run, _ = _run(problem, asked, limit, "reserve", size, pilot, bar)
        return run.points
    run, folder = _prepared(problem, asked, limit, "reserve", _finest(model))
    try:
        with run.recorded(folder, [size]):
            rest = rest_of(run.problem, run.method, size)
            seen = wide if cheap and rest is None else None
            if not cheap and rest is None:
                seen = seen_at_draws(run.rng, run.problem, pilot, size)
            if cheap or seen is not None:
                found, _ = in_one_go(run, rest, pilot, size, seen)
                return found
    except OutOfTimeError:
        if limit.seconds is None:
            raise
        return None
    return _run(problem, asked, limit, "reserve", size, pilot, bar)[0].points


def _seen_widely(
    union: Union,
    new: Problem | None,
    asked: Reduction,
    limit: TimeLimit,
    pilot: WeightedPoints,
) -> SeenTotal | None:
    """All rows, old and new, for a reserve and what that misses. Cost: a pass over the new rows."""
    if not is_plain(union.model):
        return None
    num_rows = 0 if new is None else new.data.num_rows
    space = wide_space(union.model, pilot, num_rows, AFFORDABLE)
    if space is None:
        return None
    total = union.old_total(space)
    if new is not None:
        run, folder = _prepared(new, asked, limit, "wide", _finest(union.model))
        try:
            with run.recorded(folder, [asked.reserve]):
                total = total + widely(run.problem, space)
        except OutOfTimeError:
            if limit.seconds is None:
                raise
            return None
    return SeenTotal(space, total) if np.all(np.isfinite(total)) else None


def _finest(model: Model) -> Construction:
    """What makes a reserve: all that can be matched."""
    found = default_construction(model)
    if not isinstance(found, AnnealedSparseVI):
        return found
    return replace(found, tolerance=FINE)


def _run(
    problem: Problem,
    asked: Reduction,
    limit: TimeLimit,
    stage: str,
    size: int | None,
    pilot: WeightedPoints | None,
    bar: Progress,
) -> tuple[Run, str]:
    """One construction, with a journal of its own; only the last may be interrupted."""
    last = stage == "coreset"
    method = asked.method if last else _finest(problem.model)
    if asked.around is not None:
        check_columns(asked.around, problem.data, problem.model)
        method = around_pilot(method, asked.around, problem, size)
    run, folder = _prepared(problem, asked, limit, stage, method)
    tol = asked.tol if last else None
    with run.recorded(folder, [size], tol):
        run.init(size, pilot if method.can_start else None)
        reason = run.until(Tolerance(tol), bar.show)
    if reason == "interrupted" and not last:
        raise KeyboardInterrupt
    return run, reason


def _prepared(
    problem: Problem, asked: Reduction, limit: TimeLimit, stage: str, method: Construction
) -> tuple[Run, Path | None]:
    """A run with a handle of its own to the rows, and the folder of its journal."""
    limit.deadline.doing = f"{type(method).__name__} took its first step ({stage})"
    own, rng = replace(problem, data=problem.data.using()), np.random.default_rng(asked.seed)
    folder = None if asked.checkpoint is None else Path(asked.checkpoint) / stage
    return Run(own, method, asked.seed, rng, limit, ""), folder


def _composed(
    union: Union,
    asked: Reduction,
    built: Coreset,
    reserve: WeightedPoints | None,
    problem: Problem,
) -> Coreset:
    """The coreset with the numbers of its sources, and what led to it."""
    data, sources = problem.data, union.sources
    away = how_far(union.coresets, built, built.points if reserve is None else reserve)
    step = Step(
        kind="merge" if union.new is None else "update",
        names=[s.name for s in sources] if union.new is None else [sources[-1].name],
        num_rows=data.num_rows,
        size=built.size,
        away=away.furthest,
        growth=away.growth,
        far=away.is_far,
    )
    _warn_if_far(step, union)
    if asked.certify:
        step = _certified(step, built, reserve, data, asked)
    steps, first = list[Step](), 0
    for coreset in union.coresets:
        last = first + len(coreset.sources)
        steps += passed_steps(coreset, [source.name for source in sources[first:last]])
        first = last
    old = union.coresets[0].provenance
    copied = {k: old[k] for k in ("design", "columns", "unit", "duplicates", "learned") if k in old}
    left_out = sum(c.num_rows - c.num_counted for c in (built, *union.coresets))
    provenance: dict[str, Any] = {
        **copied,
        **built.provenance,
        **({"left_out": left_out} if left_out else {}),
        **({PLACES: list(away.stored)} if away.stored else {}),
        **({} if reserve is None else kept_width(union.model, _num_kept(union, asked, problem))),
        **data.meter.to_dict(),
        "passes": problem.rows_scanned / data.num_rows,
        "asked": {"size": asked.size, "tol": asked.tol, "reserve": asked.reserve},
        "data": joined_fingerprint([source.fingerprint for source in sources]),
        "sources": stored_sources(sources),
        "steps": [one.stored() for one in (*steps, step)],
    }
    return replace(
        built,
        **union.renumbered(built.points)._asdict(),
        num_rows=sum(source.num_rows for source in sources),
        total_count=float(sum(source.total_count for source in sources)),
        provenance=provenance,
        reserve=None if reserve is None else union.renumbered(reserve),
    )


def _warn_if_far(step: Step, union: Union) -> None:
    """Where what stands for the rows before was never measured. It stays away, and is told once."""
    told = any(earlier.far for one in union.coresets for earlier in steps_of(one))
    if not step.far or told:
        return
    what = f"with {step.names[0]}" if step.kind == "update" else "of all parts"
    warn(
        f"{what} the posterior lies {step.away or 0.0:.1f} widths from where what stands for the "
        "rows before was measured, beyond which it says little: certify the coreset with all rows, "
        "or build it from them"
    )


def _certified(
    step: Step, built: Coreset, reserve: WeightedPoints | None, data: Rows, asked: Reduction
) -> Step:
    """The step with its errors against the union. Cost: a pass of N_new · draws potentials for the
    coreset, and one for the reserve."""
    finer = None if reserve is None else replace(built, **reserve._asdict())
    judged = [
        None if one is None else measure(one, data.using(), draws=asked.draws, seed=asked.seed + 1)
        for one in (built, finer)
    ]
    assert judged[0] is not None
    return certified_step(step, judged[0], judged[1])
