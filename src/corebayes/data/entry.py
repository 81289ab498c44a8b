"""From what a person has (arrays, pairs, mappings, frames, files) to a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard, cast

from corebayes.data import frames, numbers
from corebayes.data.arrays import ArrayData
from corebayes.data.blocks import is_blocks, open_blocks
from corebayes.data.checks import check_lengths
from corebayes.data.columns import find, from_frame
from corebayes.data.empty import NoRowsError
from corebayes.data.joined import join
from corebayes.data.npy_files import is_npy, open_npy
from corebayes.data.parquet_files import is_parquet, open_parquet
from corebayes.data.queries import is_query, used_columns
from corebayes.data.stored import StoredData
from corebayes.data.table import Table, Tally
from corebayes.data.watch import path_of


def open_table(
    source: Any, target: Any, features: Sequence[Any] | None, counts: Any, tally: Tally
) -> Table:
    """The rows of whatever a person has; see `corebayes.open`. Cost: headers, or one reading of a
    stream, whose length nobody knows."""
    if is_table(source):
        refuse(source, target=target, features=features, counts=counts)
        if isinstance(source, ArrayData):
            check_lengths(source)
        return source
    if _is_several(source, target):
        if counts is not None and not isinstance(counts, str):
            raise ValueError("counts of several sources must be a column that each of them has")
        return join([_of_several(one, target, features, counts, tally) for one in source])
    stored = _open(source, target, features, counts, tally)
    if stored is None:
        data = _enter(source, target, features, counts)
        check_lengths(data)
        return data
    num_rows = stored.num_rows
    if num_rows == 0:
        raise NoRowsError()
    if stored.counts is not None and stored.counts.size != num_rows:
        raise ValueError(
            f"the numbers of rows differ: X has {num_rows:,}, counts has {stored.counts.size:,}"
        )
    return stored


def _is_several(source: Any, target: Any) -> TypeGuard[list[Any]]:
    """A list of pairs, of opened rows, of mappings of fields, of frames with a target, or of these
    and of paths.

    Paths alone are files of one kind; a list of two arrays or frames without a target is a pair.
    """
    if not isinstance(source, list) or not source:
        return False
    kinds = [_kind_of_source(one, target) for one in cast("list[Any]", source)]
    return "no" not in kinds and set(kinds) != {"path"}


def _kind_of_source(one: Any, target: Any) -> str:
    if path_of(one) is not None:
        return "path"
    whole = is_table(one) or isinstance(one, tuple | Mapping)
    return "rows" if whole or (target is not None and frames.as_frame(one) is not None) else "no"


def _of_several(one: Any, target: Any, features: Any, counts: Any, tally: Tally) -> Table:
    """Names of columns are for those that have names."""
    if is_table(one) or isinstance(one, tuple | Mapping):
        return open_table(one, None, None, None, tally)
    return open_table(one, target, features, counts, tally)


def _open(
    source: Any, target: Any, features: Sequence[Any] | None, counts: Any, tally: Tally
) -> StoredData | None:
    """What is kept outside of memory, or None for what is in it."""
    others = None if isinstance(counts, str | int) else numbers.counts(counts)
    if is_parquet(source):
        return StoredData(source=open_parquet(source, target, features, counts), counts=others)
    if is_npy(source):
        return StoredData(source=open_npy(source, target, features, counts), counts=others)
    path = path_of(source)
    if path is not None:
        raise ValueError(
            f"cannot read {path}: rows come from .parquet and .npy files, "
            "or from a folder of .parquet files; read others into a data frame first"
        )
    if is_query(source):
        if others is not None:
            raise ValueError("counts of a query must be one of its columns")
        query = used_columns(source, target, features, counts)
        return StoredData(source=open_blocks(query, _Enter(target, features, counts), tally))
    if frames.as_frame(source) is None and not frames.is_series(source) and is_blocks(source):
        if others is not None:
            raise ValueError("counts of blocks must be a column: each block has its own rows")
        return StoredData(source=open_blocks(source, _Enter(target, features, counts), tally))
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
        refuse(source, target=target)
        return _from_pair(source[0], source[1], features, counts)
    refuse(source, target=target, features=features)
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
        refuse(X, features=features)
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


def is_table(source: Any) -> TypeGuard[Table]:
    return all(hasattr(source, name) for name in ("num_rows", "shards", "parts", "fingerprint"))


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


def refuse(source: Any, **options: Any) -> None:
    """Options that name columns have no meaning for a source whose columns have no names."""
    for option, value in options.items():
        if value is not None:
            raise ValueError(
                f"{option}={value!r} has no meaning for {type(source).__name__}: "
                "it goes with a data frame, whose columns have names"
            )
