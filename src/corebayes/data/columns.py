"""Which columns of a table are the target, the counts and the features."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from corebayes.data import numbers
from corebayes.data.arrays import ArrayData
from corebayes.data.frames import FrameColumns


def from_frame(
    frame: FrameColumns, target: str | None, features: Sequence[str] | None, counts: Any
) -> ArrayData:
    """The features as one matrix X, the target as y. Cost: one copy of the columns used."""
    roles = choose_roles(frame.names, target, features, counts)
    fields: dict[str, NDArray[Any]] = {}
    if roles.target is not None:
        fields["y"] = frame.column(frame.names.index(roles.target))
    if roles.counts is not None:
        counts = frame.column(frame.names.index(roles.counts))
    X = frame.matrix([frame.names.index(name) for name in roles.features])
    return ArrayData(
        fields={"X": X, **fields},
        counts=numbers.counts(counts),
        column_names=roles.features,
        target_name=roles.target or "y",
    )


class Roles(NamedTuple):
    """The names of the columns that are features, target and counts."""

    features: tuple[str, ...]
    target: str | None
    counts: str | None


def choose_roles(
    names: tuple[str, ...], target: Any, features: Sequence[Any] | None, counts: Any
) -> Roles:
    """What each column is for. `counts` may be the name of a column; an array of counts is none."""
    taken: dict[str, str] = {}
    if target is not None:
        find(target, names, "target")
        taken[str(target)] = "the target"
    name = str(counts) if isinstance(counts, (str, int)) else None
    if name is not None:
        find(name, names, "counts")
        if name in taken:
            raise ValueError(f"column {name!r} cannot be the target and the counts at once")
        taken[name] = "the counts"
    chosen = _choose(names, features, taken)
    return Roles(chosen, None if target is None else str(target), name)


def find(name: Any, names: tuple[str, ...], argument: str) -> int:
    """The position of a column; an error with near matches when there is none."""
    if str(name) in names:
        return names.index(str(name))
    near = difflib.get_close_matches(str(name), names, n=3, cutoff=0.7)
    if near:
        hint = f"did you mean {' or '.join(map(repr, near))}?"
    else:
        hint = f"the columns are {', '.join(map(repr, names[:10]))}" + ", ..." * (len(names) > 10)
    raise ValueError(f"{argument}: there is no column {str(name)!r}; {hint}")


def _choose(
    names: tuple[str, ...], features: Sequence[Any] | None, taken: Mapping[str, str]
) -> tuple[str, ...]:
    if isinstance(features, str):
        raise ValueError(f"features must be a list of column names, got the string {features!r}")
    if features is None:
        chosen = tuple(name for name in names if name not in taken)
    else:
        chosen = tuple(str(name) for name in features)
    for name in chosen:
        find(name, names, "features")
        if name in taken:
            raise ValueError(f"column {name!r} is {taken[name]} and cannot be a feature as well")
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"features names a column more than once: {list(chosen)}")
    if not chosen:
        raise ValueError("X has no columns: no column is left to be a feature")
    return chosen
