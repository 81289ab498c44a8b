"""`merge`: coresets of separate data become the coreset of all of it."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, cast

from corebayes.arguments import checked_positive
from corebayes.compose.alike import check_alike, with_equal_units
from corebayes.compose.asked import RESERVE_OF_A_MERGE, asked_for, check_of_rows
from corebayes.compose.named import named_sources
from corebayes.compose.new_groups import grown_size, with_all_groups
from corebayes.compose.reduce import reduce_union
from corebayes.compose.union import Union
from corebayes.constructions import Construction
from corebayes.coreset import Coreset, check_coreset
from corebayes.coreset.check import has_learned_rows
from corebayes.deadline import time_limit
from corebayes.samplers.exact import is_conjugate
from corebayes.scan.inline import one_blas_thread
from corebayes.watch.logs import say
from corebayes.watch.progress import make_progress

BARE = (
    "{number} of the {all} coresets have no reserve and were not built around the others, so that "
    "what they miss adds up: build each with a reserve, or take what comes of this as a pilot for "
    "build(..., around=pilot) of each and merge those"
)


def merge(
    coresets: Sequence[Coreset],
    *,
    size: int | str | None = None,
    tol: float | None = None,
    reserve: int | None = None,
    around: Coreset | None = None,
    names: Sequence[str] | None = None,
    method: Construction | None = None,
    seed: int = 0,
    certify: bool = False,
    draws: int = 1000,
    progress: bool | None = None,
    max_time: float | None = None,
    checkpoint: str | PathLike[str] | None = None,
) -> Coreset:
    """The coreset of several data sets, from the coresets of each: their rows never meet.

    The model and the columns must be the same (the groups of a mixed model need not, nor their
    numbers in formulas), with the same prior, which then counts once; of
    default priors, which are on the scale of each one's rows, those of the first are kept. The rows
    of all are compressed together to `size` rows (the largest of theirs, unless another number or a
    `tol` is asked for); see `update` for `reserve` (six times
    `size` by default, or all rows of the parts if they are no more), `certify` and `draws`.

    A coreset of a part is matched around the posterior of that part, which is wider than that of
    all parts and lies elsewhere, and what it misses there adds up. The reserve that `build` keeps
    is for that. Where nothing but M rows may leave a part (`reserve=0`), and for models that have
    no reserve by default, build the parts in two rounds: a rough coreset of each, merged to a
    `pilot`, then `build(..., around=pilot)` of each; a merge that is to be merged again takes the
    pilot as `around`, too. Where parts have neither, a line beside the progress and in the log
    says so.

    `names` are for the sources, one for each coreset; `coreset.origins` then says
    ("site-3", 81234). A merged coreset can be merged again, so any tree will do, also on workers:
    a coreset travels.
    Cost: in the number of rows of the coresets; none of the data is read.
    """
    parts = _checked_coresets(coresets)
    labels = [f"coreset {k}" for k in range(len(parts))] if names is None else list(names)
    sources = named_sources(parts, names)
    check_of_rows(parts)
    given, parts = parts, with_all_groups(with_equal_units(parts))
    check_alike(parts, labels)
    asked = asked_for(
        parts[0].model,
        max(grown_size(part, parts[0].model) for part in given),
        size=size,
        tol=tol,
        reserve=reserve,
        method=method,
        seed=seed,
        certify=certify,
        draws=draws,
        checkpoint=checkpoint,
        rows={},
        around=around,
        times=RESERVE_OF_A_MERGE,
    )
    max_time = checked_positive("max_time", max_time)
    bar = make_progress(progress, asked.size)
    with one_blas_thread(), time_limit(max_time) as limit, bar:
        if (number := _num_bare(given)) > 0:
            said = BARE.format(number=number, all=len(given))
            bar.note(said)
            say("bare", said, number=number)
        return reduce_union(Union(parts, None, sources), asked, limit, bar)


def _num_bare(parts: Sequence[Coreset]) -> int:
    """How many were matched around their own posterior only, and to no more than their size."""
    return sum(
        part.reserve is None
        and "around" not in (part.provenance.get("asked") or {})
        and part.size < part.num_rows
        and not is_conjugate(part.model)
        for part in parts
    )


def _checked_coresets(coresets: Any) -> tuple[Coreset, ...]:
    if isinstance(coresets, Coreset) or not isinstance(coresets, Sequence):
        raise TypeError("merge takes a list of coresets: merge([a, b], size=100)")
    parts = tuple(cast(Sequence[Coreset], coresets))
    if len(parts) < 2:
        raise ValueError(f"merge takes at least two coresets, got {len(parts)}")
    for part in parts:
        check_coreset(part)
    learned = [has_learned_rows(part.finest) for part in parts]
    if any(learned) and not all(learned):
        raise ValueError(
            f"coreset {learned.index(True)} has learned rows and coreset {learned.index(False)} "
            "real ones: merge those of one kind"
        )
    return parts
