"""`update`: a coreset and new rows become the coreset of both, without the old rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

from corebayes.arguments import checked_positive
from corebayes.compose.alike import check_new_rows, units_as_long, with_equal_units
from corebayes.compose.asked import asked_for, check_of_rows
from corebayes.compose.named import named_sources, with_new_source
from corebayes.compose.new_groups import grown_size, with_groups_of_rows, with_groups_of_table
from corebayes.compose.reduce import reduce_union
from corebayes.compose.union import Union, checked
from corebayes.constructions import Construction
from corebayes.coreset import Coreset, check_coreset
from corebayes.coreset.check import has_learned_rows
from corebayes.data.empty import NoRowsError
from corebayes.data.units import COUNT
from corebayes.data.warn import warn
from corebayes.deadline import time_limit
from corebayes.formula.rows import as_built
from corebayes.scan.inline import one_blas_thread
from corebayes.scan.passes import Executor
from corebayes.watch.progress import make_progress


def update(
    coreset: Coreset,
    new_rows: Any,
    *,
    size: int | str | None = None,
    tol: float | None = None,
    reserve: int | None = None,
    name: str | None = None,
    method: Construction | None = None,
    seed: int = 0,
    certify: bool = False,
    draws: int = 1000,
    progress: bool | None = None,
    max_time: float | None = None,
    checkpoint: str | PathLike[str] | None = None,
    memory: str | int | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    counts: Any = None,
    on_bad: str = "raise",
    executor: Executor | None = None,
) -> Coreset:
    """The coreset of all rows so far and of new ones, from the old coreset and the new rows alone.

    The old coreset's rows count as often as their weights say, and are compressed together with
    the new rows to `size` rows (as many as before, unless another number or a `tol` against that
    union is asked for). Its model stays as it is, prior included; a mixed one gets the groups that
    are new, and as many rows for each as the others have. Cost: that of building from the new rows;
    nothing in the number of old ones.

    Every reduction misses a little, and what is missed adds up. So that it stays small, a `reserve`
    of more rows (three times `size` by default; 0 for none) is kept beside the coreset, with what
    it misses as a polynomial for when the posterior moves (of GLMs), and the next update goes on
    from both, as this one goes on from what the first `build` kept. With `certify` each step's
    own KL against the union that it compressed is measured on fresh `draws`, for
    `certify(coreset)` when the old rows are gone; while they can be read, `certify(coreset,
    [old_rows, new_rows])` judges against all of them.

    Row numbers run on from the old rows to the new; `coreset.origins` says of every row which
    source it is of, by `name` ("source-1", … by default), and its number there. All other arguments
    are those of `build`; a checkpoint folder has a part for each stage. Where no rows came the
    coreset stays as it is, and a warning says so.
    """
    check_coreset(coreset)
    if has_learned_rows(coreset.finest):
        raise ValueError(
            "the coreset has learned rows, which have no place in a table that goes on with new "
            "ones: update from a coreset of real rows, or merge coresets of learned rows"
        )
    before, max_time = coreset, checked_positive("max_time", max_time)
    check_of_rows([coreset])
    asked = asked_for(
        coreset.model,
        coreset.size,
        size=size,
        tol=tol,
        reserve=reserve,
        method=method,
        seed=seed,
        certify=certify,
        draws=draws,
        checkpoint=checkpoint,
        rows={"memory": memory, "executor": executor},
    )
    columns = {"target": target, "features": features, "counts": counts, "on_bad": on_bad}
    with one_blas_thread(), time_limit(max_time) as limit:
        try:
            union = _with_rows(coreset, new_rows, name, columns, asked.rows)
        except NoRowsError as error:
            return unchanged(before, error)
        if size is None and tol is None:
            asked = replace(asked, size=grown_size(before, union.model))
        with make_progress(progress, asked.size) as bar:
            return reduce_union(union, asked, limit, bar)


def unchanged(coreset: Coreset, why: NoRowsError) -> Coreset:
    """The coreset as it is, after a night in which no rows came."""
    warn(f"{why}; the coreset of {coreset.size:,} {coreset.noun} stays as it is")
    return coreset


def _with_rows(
    coreset: Coreset,
    new_rows: Any,
    name: str | None,
    columns: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Union:
    """The coreset, with whatever groups and places are new, and the rows as it was built from
    some, checked here, where they still have the numbers that the caller knows."""
    if columns["target"] is None and columns["features"] is None:
        coreset = with_groups_of_table(coreset, new_rows)
    rows = units_as_long(as_built(coreset, new_rows, **columns, **options), coreset)
    longest = rows.template.fields[COUNT].shape[1] if COUNT in rows.template.fields else 0
    (coreset,) = with_equal_units([coreset], longest)
    check_new_rows(coreset, rows)
    coreset = with_groups_of_rows(coreset, rows)
    checked(coreset.model, rows)
    sources = with_new_source(named_sources([coreset], None), name, rows)
    return Union((coreset,), rows, sources)
