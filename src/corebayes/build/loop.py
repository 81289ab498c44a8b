"""`build` and `build_path`: what a person calls, and the loop of every construction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from corebayes.adapters.local import bound_with_structure
from corebayes.arguments import checked_positive, checked_seed
from corebayes.build.around import around_pilot, check_around, check_columns, with_priors_of
from corebayes.build.asked import (
    check_can_start,
    check_enough_rows,
    check_method,
    check_model,
    check_reserve,
    check_rows_per_group,
    checked_size,
    checked_sizes,
    size_for_groups,
)
from corebayes.build.columns import with_asked_columns
from corebayes.build.groups import (
    all_rows,
    check_unit,
    checked_groups,
    choose_groups,
    grown_groups,
    level_one_size,
)
from corebayes.build.need import say_if_doubtful
from corebayes.build.plan import say_plan
from corebayes.build.reserve import with_reserve
from corebayes.build.run import ALL_ROWS, Run, starting_points
from corebayes.build.spiked import foresee_spikes
from corebayes.build.tolerance import Tolerance
from corebayes.build.variants import served, serving
from corebayes.checkpoint import check_folder
from corebayes.constructions import Construction, default_construction
from corebayes.coreset import Coreset
from corebayes.deadline import OutOfTimeError, time_limit
from corebayes.models.mixed.regression import MixedRegression
from corebayes.models.priors.table import statement_of
from corebayes.models.units import as_units
from corebayes.rows import Rows, open_rows
from corebayes.scan.inline import one_blas_thread
from corebayes.scan.passes import Executor
from corebayes.types import Model, WeightedPoints
from corebayes.watch.progress import make_progress


def build(
    model: Model,
    data: Any,
    *,
    size: int | str | None = None,
    rows_per_group: int | None = None,
    tol: float | None = None,
    reserve: int | None = None,
    models: Sequence[Any] | None = None,
    method: Construction | None = None,
    seed: int = 0,
    start: Coreset | None = None,
    around: Coreset | None = None,
    progress: bool | None = None,
    max_time: float | None = None,
    checkpoint: str | PathLike[str] | None = None,
    memory: str | int | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    counts: Any = None,
    on_bad: str = "raise",
    executor: Executor | None = None,
    unit: str | None = None,
) -> Coreset:
    """A few weighted rows whose posterior is close to the posterior of all rows.

    `data` is what `corebayes.open` gives, or whatever it takes: (X, y), an array, a mapping of
    arrays, a table, files (with `target`, `features` and `counts` as column names). Stops at
    `size` rows; or when two certificates on fresh draws say KL(π_w ‖ π) ≤ `tol` (without a size
    the coreset grows until they do, in 120 passes at most unless the rows are few); or after
    `max_time` seconds; or when the method has nothing left to do. The coreset's `reason` says
    which, and a `ToleranceWarning` that a `tol` was not reached. Where rows that count more than
    once have no posterior (mixtures with a scale for every component), a build to a `tol` keeps all
    rows if they are 5,000 at most, and says so. Ctrl-C returns the coreset so far;
    so does the end of `max_time`: random rows, with a `TimeWarning`, where no step had ended, and a
    TimeoutError where not even the rows were read.
    The same arguments give the same coreset.

    Rows that alone tell a coefficient (the level of a category with a handful of rows) are kept
    whole, with the weight that they have in the data, up to half of the size.

    With `models`, a list of other models or of `Variant` objects for the same rows (priors, fewer
    columns, folds left out), the totals of all of them are matched jointly, so that one coreset
    serves them all; `refit` samples each. The coreset's own model is `model`, and KL is the sum
    over all.

    The rows of a mixed model's coreset are of every group, so `rows_per_group` times the number of
    groups (of its largest group term) is another way to say the size.

    For one fit of one model whose posterior is nearly Gaussian, `corebayes.laplace` is cheaper; a
    coreset pays for posteriors that are not, for other priors and fewer columns, and for your own
    sampler.

    With `start`, an earlier coreset of the same data, the construction goes on from its rows and
    weights. A `reserve`, a larger number of rows with weights of their own, is kept beside the
    coreset: what `update` and `merge` go on from without losing accuracy. By default it has three
    times the rows, or 300 or so of few coefficients, and half of all rows at most, for GLMs of up
    to 20 where it costs no pass or a short one, and six times for other built-in models of as many
    parameters without groups; 0 for none. With `around`, a rough coreset of more
    data that these rows are a shard of, they are matched where the posterior of all of it lies:
    what `merge` makes the most of. With `checkpoint`, a folder, the answers of all passes are kept
    there as they come, and the same call after any interruption goes on where they end, to the same
    bits.
    `memory`, such as "500MB", is what the process may take in all; see `scan/budget.py`.

    With `unit="group"` (or the name of their column) and a `MixedRegression` of one group term, the
    effects are integrated out and `size` whole groups are kept, for what all groups share: a
    coreset of rows of every group is built first, and `choose_groups` takes groups from that. With
    a `tol` and no size, as few groups as can be certified. For models whose rows are independent
    `unit` is a column: all rows of one unit (a patient) are kept or left out together, with one
    weight, and everything counts units; see `corebayes.open`.
    """
    model, features = with_asked_columns(model, data, target, features)
    of_groups = unit is not None and isinstance(model, MixedRegression)
    opened = partial(
        open_rows,
        data,
        target=target,
        features=features,
        counts=counts,
        on_bad=on_bad,
        memory=memory,
        executor=executor,
        unit=None if of_groups else unit,
    )
    if of_groups:
        check_unit(unit, model, method=method, start=start, checkpoint=checkpoint)
        tol, seed = checked_positive("tol", tol), checked_seed(seed)
        return _build_groups(model, opened(), size, tol, seed, progress, max_time)
    if rows_per_group is None or size is not None:
        size = checked_size(size, tol)
    check_rows_per_group(rows_per_group, size)
    tol = checked_positive("tol", tol)
    max_time = checked_positive("max_time", max_time)
    seed = checked_seed(seed)
    check_reserve(reserve, size)
    if around is not None:
        check_around(around, tol=tol, reserve=reserve, start=start, models=models)
        model = with_priors_of(model, around.model)
    check_folder(checkpoint)
    check_model(model)
    if method is not None:
        check_method(method)
    alone = method is None and models is None and around is None
    with one_blas_thread(), time_limit(max_time) as limit:
        rows = opened()
        check_enough_rows(size, rows)
        model = bound_with_structure(model, rows)
        method = method or default_construction(as_units(model, rows.template))
        check_can_start(method, start, size)
        if start is not None:
            rows.want(start.indices)
        run = Run.of(model, rows, method, seed, limit)
        if rows_per_group is not None:
            size = size_for_groups(run.problem, rows_per_group)
        if models is not None:
            run.method = serving(method, model, run.problem, models, size)
        if around is not None:
            check_columns(around, rows, run.problem.model)
            run.method = around_pilot(method, around, run.problem, size)
        begun = None if start is None else f"a coreset of {start.size} rows"
        near = None if around is None else f"a coreset of {around.size} rows"
        run.asked = {"size": size, "tol": tol, "max_time": max_time, "start": begun, "around": near}
        run.counts_name = counts if isinstance(counts, str) else None
        points = None if start is None else starting_points(start, rows)
        tolerance = Tolerance(tol)
        with run.recorded(checkpoint, [size], tol, start), make_progress(progress, size) as bar:
            if (statement := statement_of(run.problem.model)) is not None:
                bar.note(statement)
            say_if_doubtful(run.problem, size, bar)
            say_plan(run.problem, run.method, None if size is None else [size], bar)
            is_open = alone and tol is not None and size is None and start is None
            reason = foresee_spikes(run, tolerance, bar) if is_open else None
            if reason is None:
                run.init(size, points)
                reason = run.until(tolerance, bar.show)
        whole = run.whole() if alone else None
        if whole is not None:
            tolerance.reached = True
            reason = reason if reason.startswith(ALL_ROWS) else ALL_ROWS
        coreset = run.coreset(run.points if whole is None else whole, reason)
        if models is not None:
            coreset = replace(coreset, provenance={**coreset.provenance, **served(run.method)})
        run.warn()
        tolerance.warn_unless_reached(coreset)
        if reserve is None and not alone:
            reserve = 0
        return with_reserve(run, coreset, reserve, checkpoint)


def _build_groups(
    model: Any,
    rows: Rows,
    size: Any,
    tol: float | None,
    seed: int,
    progress: bool | None,
    max_time: float | None,
) -> Coreset:
    """Whole groups, taken from a coreset of rows of every group."""
    bound, level = level_one_size(model, rows)
    if level is None:
        level_one = all_rows(bound, rows)
    else:
        level_one = build(model, rows, size=level, seed=seed, progress=progress, max_time=max_time)
    with one_blas_thread():
        wanted = checked_groups(size)
        if tol is not None and wanted is None:
            return grown_groups(level_one, rows, tol=tol, seed=seed)
        return choose_groups(level_one, rows, size=wanted, seed=seed)


def build_path(
    model: Model,
    data: Any,
    *,
    sizes: Sequence[int],
    method: Construction | None = None,
    seed: int = 0,
    progress: bool | None = None,
    max_time: float | None = None,
    checkpoint: str | PathLike[str] | None = None,
    memory: str | int | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    counts: Any = None,
    on_bad: str = "raise",
    executor: Executor | None = None,
) -> list[Coreset]:
    """The coresets of all these sizes from one run, smallest first: for figures, and to choose M.

    With the default method the way to the posterior and the selection are shared by all sizes and
    only the weights are polished for each. A method that adds row after row gives the coresets
    that it passes on the way to the largest. All other arguments are those of `build`.
    Interrupted, or at the end of `max_time`, the sizes that are not reached are left out.
    """
    wanted = checked_sizes(sizes)
    max_time = checked_positive("max_time", max_time)
    seed = checked_seed(seed)
    check_folder(checkpoint)
    check_model(model)
    if method is not None:
        check_method(method)
    model, features = with_asked_columns(model, data, target, features)
    passed, steps = dict[int, WeightedPoints](), dict[int, int]()
    with one_blas_thread(), time_limit(max_time) as limit:
        rows = open_rows(
            data,
            target=target,
            features=features,
            counts=counts,
            on_bad=on_bad,
            memory=memory,
            executor=executor,
        )
        check_enough_rows(wanted[-1], rows)
        model = bound_with_structure(model, rows)
        method = method or default_construction(model)
        run = Run.of(model, rows, method, seed, limit)
        run.asked = {"sizes": wanted, "max_time": max_time}
        with run.recorded(checkpoint, wanted), make_progress(progress, wanted[-1]) as bar:

            def watch(size: int, kl: Any, rate: float) -> None:
                bar.show(size, kl, rate)
                # Points may leave again, so the last state of no more rows counts.
                for size, points in run.reached(wanted[first:]).items():
                    if size not in passed or not _same(passed[size], points):
                        passed[size], steps[size] = points, len(run.trace)

            say_plan(run.problem, method, wanted, bar)
            first = run.init_path(wanted)
            reason = run.until(Tolerance(None), watch)
        found = [
            replace(run.coreset(points, reason), trace=_trace(run, points.size, steps[size]))
            for size, points in sorted(passed.items())
        ]
        try:
            # Each of these has other rows of rare levels.
            small = [
                build(model, rows, size=size, method=method, seed=seed, reserve=0, progress=False)
                for size in wanted[:first]
            ]
        except OutOfTimeError:
            small = []
    return [*small, *found]


def _trace(run: Run, size: int, steps: int) -> tuple[dict[str, Any], ...]:
    """Of one size of a path: its own steps, the last without a KL if that was of other rows."""
    own = [entry for entry in run.trace[:steps] if entry["size"] <= size]
    last = run.trace[steps - 1]
    if last["size"] > size:
        own.append(last | {"size": size, "kl": None, "kl_se": None})
    return tuple(own)


def _same(first: WeightedPoints, second: WeightedPoints) -> bool:
    rows = np.array_equal(first.indices, second.indices)
    return rows and np.array_equal(first.weights, second.weights)
