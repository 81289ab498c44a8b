"""What is asked of an update or a merge, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from os import PathLike
from typing import Any

from corebayes.arguments import checked_positive, checked_seed, checked_whole
from corebayes.build.around import check_around
from corebayes.build.asked import check_method, checked_size
from corebayes.build.reserve import RESERVE, usual_reserve
from corebayes.checkpoint import check_folder
from corebayes.constructions import Construction, default_construction
from corebayes.coreset import Coreset, GroupCoreset
from corebayes.samplers.exact import is_conjugate
from corebayes.tangent.default import SKEWED_DIM
from corebayes.types import Model

# Few rows that were chosen already are few to choose from, and no pass is spent on them: a merge
# keeps more.
RESERVE_OF_A_MERGE = 6


@dataclass(frozen=True, kw_only=True)
class Reduction:
    """What is asked of one reduction; see `update`."""

    size: int | None
    tol: float | None
    reserve: int
    reserve_is_given: bool
    method: Construction
    seed: int
    certify: bool
    draws: int
    checkpoint: str | PathLike[str] | None
    rows: Mapping[str, Any]
    """The executor and the memory of the passes."""
    around: Coreset | None
    """What the rows are to be merged with once more, roughly."""


def asked_for(
    model: Model,
    largest: int,
    *,
    size: int | str | None,
    tol: float | None,
    reserve: int | None,
    method: Construction | None,
    seed: int,
    certify: bool,
    draws: int,
    checkpoint: str | PathLike[str] | None,
    rows: Mapping[str, Any],
    around: Coreset | None = None,
    times: int = RESERVE,
) -> Reduction:
    """What a person asks for, checked; without a size or a tolerance as many rows as the `largest`.

    A reserve has `times` the rows of the coreset unless another number is asked for. A conjugate
    model needs none: its coreset matches quadratics, and there is nothing else.
    """
    wanted = largest if size is None and tol is None else checked_size(size, tol)
    given = reserve is not None
    if reserve is not None:
        checked_whole("reserve", reserve, 0)
    elif is_conjugate(model):
        reserve = 0
    else:
        reserve = usual_reserve(model, wanted or largest, times, most_cubes(model))
    if around is not None:
        check_around(around, tol=tol)
    checked_whole("draws", draws, 100)
    check_folder(checkpoint)
    method = method or default_construction(model)
    check_method(method)
    return Reduction(
        size=wanted,
        tol=checked_positive("tol", tol),
        reserve=reserve,
        reserve_is_given=given,
        method=method,
        seed=checked_seed(seed),
        certify=certify,
        draws=draws,
        checkpoint=checkpoint,
        rows=rows,
        around=around,
    )


def most_cubes(model: Model) -> int:
    """Numbers of the third degree that a default matches all or most of: rows that come night by
    night are worth more than a build that may be the only one."""
    return comb(SKEWED_DIM + 3, 3) if model.dim <= SKEWED_DIM else 0


def check_of_rows(coresets: Sequence[Coreset]) -> None:
    """Whole groups stand for a posterior of φ in which their effects are integrated out."""
    if any(isinstance(coreset, GroupCoreset) for coreset in coresets):
        raise ValueError(
            "a coreset of whole groups cannot go together with others: update or merge coresets of "
            "rows, then choose_groups from what comes of it"
        )
