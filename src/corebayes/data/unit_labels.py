"""The unit of every row, from a column of anything: numbers, texts, days, categories.

Only equality counts. Units are numbered in the order of their labels where these have one, else as
they first come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from corebayes.data.columns import find
from corebayes.data.frames import as_frame, import_pyarrow, is_kind
from corebayes.data.parquet_files import is_parquet, parquet_batches, parquet_names
from corebayes.types import Indices

# Rows that are read at a time.
READ_ROWS = 1 << 16


class UnitLabels(NamedTuple):
    """The number of every row's unit, what the units are called, and the name of their column."""

    numbers: Indices
    labels: Any
    name: str


def labels_of_array(units: Any) -> UnitLabels:
    """Of one value for each row."""
    values = np.asarray(units)
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise _missing(int(np.flatnonzero(np.isnan(values))[0]), "unit")
    labels, numbers = np.unique(values, return_inverse=True)
    return UnitLabels(numbers.ravel().astype(np.int64), labels, "unit")


def labels_of_column(source: Any, unit: str) -> UnitLabels | None:
    """Of a column of a table in memory or in Parquet files; None for what has no such columns.
    Cost: one reading of that column."""
    if is_kind(source, "pandas", "DataFrame"):
        names = tuple(str(name) for name in source.columns)
        column = source.iloc[:, find(unit, names, "unit")]
        numbers, labels = column.factorize()
        return _sorted(np.asarray(numbers, dtype=np.int64), np.asarray(labels), unit)
    if is_parquet(source):
        find(unit, tuple(parquet_names(source)), "unit")
        parts = [part.column(0) for part in parquet_batches(source, [unit], READ_ROWS)]
        chunks = [chunk for part in parts for chunk in part.chunks]
    elif as_frame(source) is not None:
        table = import_pyarrow().table(source)
        chunks = table.column(find(unit, tuple(table.column_names), "unit")).chunks
    else:
        return None
    return _of_chunks(chunks, unit)


def unit_apart(
    source: Any, unit: str, target: Any, features: Sequence[Any] | None, counts: Any
) -> tuple[Any, Sequence[Any] | None]:
    """The labels of the units where they are a column of a table, and the features without it; else
    the name, which is one of the features then."""
    labels = labels_of_column(source, unit)
    if labels is not None:
        return labels, _without_unit(source, unit, target, features, counts)
    if features is not None and unit not in features:
        features = [*features, unit]
    return unit, features


def _without_unit(
    source: Any, unit: str, target: Any, features: Sequence[Any] | None, counts: Any
) -> Sequence[Any]:
    """The features that are asked for, or all columns that have no other part; not the unit."""
    if features is not None:
        return [name for name in features if str(name) != unit]
    frame = None if is_parquet(source) else as_frame(source)
    names = parquet_names(source) if frame is None else frame.names
    taken = {unit, str(target), str(counts) if isinstance(counts, str | int) else ""}
    others = [name for name in names if name not in taken]
    if not others:
        raise ValueError(f"unit: column {unit!r} is the only one of X")
    return others


def _of_chunks(chunks: Sequence[Any], unit: str) -> UnitLabels:
    pyarrow = import_pyarrow()
    kind = chunks[0].type
    if pyarrow.types.is_dictionary(kind):
        # Parts of a file may number their categories each in their own way.
        chunks = [chunk.cast(kind.value_type) for chunk in chunks]
    encoded = pyarrow.chunked_array(chunks).combine_chunks().dictionary_encode()
    numbers = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    labels = np.asarray(encoded.dictionary.to_pylist(), dtype=object)
    return _sorted(numbers.astype(np.int64), labels, unit)


def _sorted(numbers: Indices, labels: Any, unit: str) -> UnitLabels:
    if numbers.min(initial=0) < 0:
        raise _missing(int(np.argmin(numbers)), unit)
    try:
        order = np.argsort(labels, kind="stable")
    except TypeError:
        return UnitLabels(numbers, labels, unit)
    places = np.empty(order.size, dtype=np.int64)
    places[order] = np.arange(order.size)
    return UnitLabels(places[numbers], labels[order], unit)


def _missing(row: int, unit: str) -> ValueError:
    return ValueError(
        f"unit: row {row} has no value in column {unit!r} (rows are numbered from 0): name its "
        "unit, or leave the row out"
    )
