"""From what a person has (arrays, pairs, mappings, frames) to checked rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard, cast

from corebayes.data import frames, numbers
from corebayes.data.arrays import ArrayData
from corebayes.data.checks import check
from corebayes.data.columns import find, from_frame
from corebayes.types import Data


def as_data(
    source: Any,
    *,
    target: str | None = None,
    features: Sequence[str] | None = None,
    counts: Any = None,
    on_bad: str = "raise",
) -> Data:
    """Rows in memory, checked once.

    `source` is one of
    - an array (n, d), or (n,) for one column: the field `X`;
    - a pair (X, y): the fields `X` and `y`; each may be a frame or a series;
    - a mapping from names to arrays whose first axes agree: these fields;
    - a pandas or polars frame or an Arrow table: the column `target` is `y`, the columns
      `features` are `X` (by default all columns but the target and the counts);
    - an object that is already `Data`: returned as it is.

    `counts` says how often each row counts: an array of length n, or the name of a column.

    A NaN, a missing or an infinite value is an error that names row and column. With
    `on_bad="drop"` such rows keep their row numbers but count zero times, with one warning.
    Arrays are not copied and never written to. Cost: one pass at the speed of memory, and for
    a frame one float64 copy of the columns used.
    """
    if on_bad not in ("raise", "drop"):
        raise ValueError(f'on_bad must be "raise" or "drop", got {on_bad!r}')
    if not _is_data(source):
        return check(_enter(source, target, features, counts), on_bad=on_bad)
    _refuse(source, target=target, features=features, counts=counts)
    if on_bad == "drop":
        raise ValueError(f"on_bad: the rows of {type(source).__name__} are checked already")
    return source


def _enter(
    source: Any, target: str | None, features: Sequence[str] | None, counts: Any
) -> ArrayData:
    frame = frames.as_frame(source)
    if frame is not None:
        return from_frame(frame, target, features, counts)
    if _is_pair(source):
        _refuse(source, target=target)
        return _from_pair(source[0], source[1], features, counts)
    _refuse(source, target=target, features=features)
    if isinstance(source, Mapping):
        return _from_mapping(cast(Mapping[Any, Any], source), counts)
    return _from_array(source, counts)


def _from_array(source: Any, counts: Any) -> ArrayData:
    names, X = numbers.matrix(source)
    return ArrayData(fields={"X": X}, counts=numbers.counts(counts), column_names=names)


def _from_pair(X: Any, y: Any, features: Sequence[str] | None, counts: Any) -> ArrayData:
    frames.check_aligned(X, y)
    frame = frames.as_frame(X)
    if frame is None:
        _refuse(X, features=features)
        data = _from_array(X, counts)
    else:
        data = from_frame(frame, None, features, counts)
    name, values = numbers.target(y)
    return ArrayData(
        fields={**data.fields, "y": values},
        counts=data.counts,
        column_names=data.column_names,
        target_name=name,
    )


def _from_mapping(source: Mapping[Any, Any], counts: Any) -> ArrayData:
    named = {str(name): values for name, values in source.items()}
    if isinstance(counts, str):
        find(counts, tuple(named), "counts")
        counts = named.pop(counts)
    if not named:
        raise ValueError("the mapping of names to arrays is empty")
    names: tuple[str, ...] = ()
    fields: dict[str, Any] = {}
    for name, values in named.items():
        if name == "X":
            names, fields[name] = numbers.matrix(values)
        else:
            fields[name] = numbers.real(values, name)
    return ArrayData(fields=fields, counts=numbers.counts(counts), column_names=names)


def _is_data(source: Any) -> TypeGuard[Data]:
    return all(hasattr(source, name) for name in ("num_rows", "shards", "read", "fingerprint"))


def _is_pair(source: Any) -> bool:
    """A tuple is a pair (X, y); so is a list of two of which one is an array or a frame."""
    if not isinstance(source, (tuple, list)):
        return False
    items = cast(Sequence[Any], source)
    if isinstance(items, tuple) and len(items) != 2:
        raise ValueError(f"a tuple must be the pair (X, y), got {len(items)} elements")
    # A list of two plain lists is a matrix of two rows.
    return isinstance(items, tuple) or (
        len(items) == 2
        and any(hasattr(x, "__len__") and not isinstance(x, (list, tuple, str)) for x in items)
    )


def _refuse(source: Any, **options: Any) -> None:
    """Options that name columns have no meaning for a source whose columns have no names."""
    for option, value in options.items():
        if value is not None:
            raise ValueError(
                f"{option}={value!r} has no meaning for {type(source).__name__}: "
                "it goes with a data frame, whose columns have names"
            )
