"""From what a person has (arrays, pairs, mappings, frames, files) to checked rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard, cast

from corebayes.data import frames, numbers
from corebayes.data.arrays import ArrayData
from corebayes.data.blocks import is_blocks, open_blocks
from corebayes.data.checks import check
from corebayes.data.columns import find, from_frame
from corebayes.data.npy import is_npy, open_npy
from corebayes.data.parquet import is_parquet, open_parquet
from corebayes.data.stored import Source, check_stored
from corebayes.data.watch import path_of
from corebayes.types import Data


def as_data(
    source: Any,
    *,
    target: str | int | None = None,
    features: Sequence[str | int] | None = None,
    counts: Any = None,
    on_bad: str = "raise",
) -> Data:
    """Rows, checked once.

    `source` is one of
    - an array (n, d), or (n,) for one column: the field `X`;
    - a pair (X, y): the fields `X` and `y`; each may be a frame or a series;
    - a mapping from names to arrays whose first axes agree: these fields;
    - a pandas or polars frame or an Arrow table: the column `target` is `y`, the columns
      `features` are `X` (by default all columns but the target and the counts);
    - a Parquet file, a folder or a pattern of such files ("rows/*.parquet"), a list of paths, or a
      pyarrow dataset: columns as in a frame, read by name from every file;
    - a .npy file, whose columns are called 0, 1, … ; in a pair or a mapping each array may be a
      .npy file or a memory map;
    - a function that returns an iterator of blocks, or an object that can be iterated over again:
      each block is any of the first four;
    - an object that is already `Data`: returned as it is.

    `counts` says how often each row counts: an array of length n, or the name of a column.

    A NaN, a missing or an infinite value is an error that names row and column. With
    `on_bad="drop"` such rows keep their row numbers but count zero times, with one warning.
    Arrays are not copied and never written to. Files and blocks are never in memory as a whole:
    they are read again in every pass, and refused when they have changed. Cost: one pass at the
    speed of memory or of the disk, and for a frame one float64 copy of the columns used.
    """
    if on_bad not in ("raise", "drop"):
        raise ValueError(f'on_bad must be "raise" or "drop", got {on_bad!r}')
    if not _is_data(source):
        stored = _open(source, target, features, counts)
        if stored is not None:
            return check_stored(stored.source, counts=stored.counts, on_bad=on_bad)
        return check(_enter(source, target, features, counts), on_bad=on_bad)
    _refuse(source, target=target, features=features, counts=counts)
    if on_bad == "drop":
        raise ValueError(f"on_bad: the rows of {type(source).__name__} are checked already")
    return source


@dataclass(frozen=True)
class _Opened:
    """A source, and counts that are none of its columns."""

    source: Source
    counts: Any


def _open(source: Any, target: Any, features: Sequence[Any] | None, counts: Any) -> _Opened | None:
    """What is kept outside of memory, or None for what is in it."""
    others = None if isinstance(counts, str | int) else numbers.counts(counts)
    if is_parquet(source):
        return _Opened(open_parquet(source, target, features, counts), others)
    if is_npy(source):
        opened = open_npy(source, target, features, counts)
        return _Opened(opened, others)
    path = path_of(source)
    if path is not None:
        raise ValueError(
            f"cannot read {path}: rows come from .parquet and .npy files, "
            "or from a folder of .parquet files; read others into a data frame first"
        )
    if frames.as_frame(source) is None and not frames.is_series(source) and is_blocks(source):
        if others is not None:
            raise ValueError("counts of blocks must be a column: each block has its own rows")
        return _Opened(open_blocks(source, _Enter(target, features, counts)), None)
    return None


@dataclass(frozen=True)
class _Enter:
    """Makes named arrays of a block, also in another process."""

    target: Any
    features: Any
    counts: Any

    def __call__(self, source: Any) -> ArrayData:
        return _enter(source, self.target, self.features, self.counts)


def _enter(source: Any, target: Any, features: Sequence[Any] | None, counts: Any) -> ArrayData:
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
