"""Columns of tables as float64: of whatever speaks Arrow's PyCapsule stream, and of pandas.

A pandas frame gives its index away as one more column of its stream and needs pyarrow for it, so it
is read by itself. No library is imported here before the caller has: a frame can only exist when
its library is loaded. Missing values (null, NA, None) become NaN.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from corebayes.extras import import_extra
from corebayes.types import Array

# Rows of a matrix that are filled column by column.
TILE_ROWS = 2048


class FrameColumns(NamedTuple):
    """The names of a table's columns, and a function that gives the j-th as float64."""

    names: tuple[str, ...]
    num_rows: int
    column: Callable[[int], Array]

    def matrix(self, positions: Sequence[int] | None = None) -> Array:
        """The given columns (by default all) side by side. Cost: one copy of them."""
        positions = range(len(self.names)) if positions is None else positions
        values = np.empty((self.num_rows, len(positions)))
        for place, position in enumerate(positions):
            values[:, place] = self.column(position)
        return values


class Series(NamedTuple):
    """One column and what it is called (empty when it has no name)."""

    name: str
    values: Array


def as_frame(source: Any) -> FrameColumns | None:
    """The table's columns, whose names must differ; None when the source is no table."""
    if is_kind(source, "pandas", "DataFrame"):
        frame = _pandas_frame(source)
    elif hasattr(source, "__arrow_c_stream__") and not is_series(source):
        frame = _arrow_frame(import_pyarrow().table(source))
    else:
        return None
    check_names(frame.names)
    return frame


def check_names(names: Sequence[str]) -> None:
    """Columns are told apart by their names."""
    repeated = [name for name, number in Counter(names).items() if number > 1]
    if repeated:
        raise ValueError(f"column names must differ, but these come more than once: {repeated}")


def is_series(source: Any) -> bool:
    """Whether the source is one column of a pandas, polars or Arrow table."""
    return any(
        is_kind(source, library, kind)
        for library, kind in (
            ("pandas", "Series"),
            ("polars", "Series"),
            ("pyarrow", "Array"),
            ("pyarrow", "ChunkedArray"),
        )
    )


def read_series(source: Any, label: str) -> Series:
    """The name and the values of one column; `label` stands in for a missing name in errors."""
    if is_kind(source, "pandas", "Series"):
        name = "" if source.name is None else str(source.name)
        return Series(name, _pandas_column(source, name or label))
    column = source
    if not hasattr(source, "type"):
        column = import_pyarrow().chunked_array(source)
    name = str(getattr(source, "name", ""))
    check_arrow_type(column.type, name or label)
    return Series(name, arrow_column(column))


def check_aligned(X: Any, y: Any) -> None:
    """Two pandas objects whose index labels differ do not belong together row by row."""
    if not is_kind(X, "pandas", "DataFrame"):
        return
    if not (is_kind(y, "pandas", "DataFrame") or is_kind(y, "pandas", "Series")):
        return
    if len(X) == len(y) and not X.index.equals(y.index):
        raise ValueError(
            "X and y have different pandas indexes; align them (y.loc[X.index]), "
            "or pass y.to_numpy() to pair them by position"
        )


def not_numbers(label: str, kind: object) -> ValueError:
    """The error for a column that holds something else than numbers."""
    return ValueError(
        f"{label} holds {kind}, not real numbers: encode it as numbers "
        "(0/1, or one column for each level), use a formula, or leave the column out"
    )


def is_kind(source: Any, library: str, kind: str) -> bool:
    """Whether it is an instance of a class of a library, which is loaded then."""
    loaded: Any = sys.modules.get(library)
    wanted: Any = getattr(loaded, kind, None)
    return wanted is not None and isinstance(source, wanted)


def import_pyarrow(module: str = "pyarrow") -> Any:
    """pyarrow or a module of it, or an error that says what to install."""
    return import_extra(module, "Arrow tables and Parquet files need", "files")


def _pandas_frame(source: Any) -> FrameColumns:
    names = tuple(str(name) for name in source.columns)

    def column(position: int) -> Array:
        return _pandas_column(source.iloc[:, position], names[position])

    return FrameColumns(names, len(source), column)


def _pandas_column(series: Any, name: str) -> Array:
    pandas, dtype = sys.modules["pandas"], series.dtype
    types: Any = pandas.api.types
    numeric = types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype)
    # A categorical of booleans calls itself boolean; its codes have no agreed meaning.
    boolean = types.is_bool_dtype(dtype) and not isinstance(dtype, pandas.CategoricalDtype)
    if not (numeric or boolean):
        raise not_numbers(f"column {name!r}", f"dtype {dtype}")
    return series.to_numpy(dtype=np.float64, na_value=np.nan)


def _arrow_frame(table: Any) -> FrameColumns:
    names = tuple(table.column_names)

    def column(position: int) -> Array:
        check_arrow_type(table.column(position).type, names[position])
        return arrow_column(table.column(position))

    return FrameColumns(names, table.num_rows, column)


def arrow_column(column: Any) -> Array:
    """An Arrow array of numbers as float64, without a copy where it is that already."""
    if str(column.type) != "double":
        # Unsafe only in that integers beyond 2^53 are rounded, as everywhere.
        column = column.cast("double", safe=False)
    if column.null_count:
        return column.to_numpy(zero_copy_only=False)
    # The same without nulls, and without pandas, which `to_numpy` imports where there is one.
    parts: list[Array] = [np.from_dlpack(part) for part in getattr(column, "chunks", [column])]  # pyright: ignore
    return parts[0] if len(parts) == 1 else np.concatenate([*parts, np.empty(0)])


def side_by_side(columns: Sequence[Array]) -> Array:
    """Columns of a new matrix in C order, filled a few thousand rows at a time: they stay in a
    core's cache while their neighbours are written."""
    values = np.empty((len(columns[0]), len(columns)))
    for start in range(0, len(values), TILE_ROWS):
        for place, column in enumerate(columns):
            values[start : start + TILE_ROWS, place] = column[start : start + TILE_ROWS]
    return values


def check_arrow_type(kind: Any, name: str) -> None:
    """Refuse a column whose Arrow type is no number."""
    kinds = import_pyarrow().types
    accepted = (
        kinds.is_integer,
        kinds.is_floating,
        kinds.is_boolean,
        kinds.is_decimal,
        kinds.is_null,
    )
    if not any(accept(kind) for accept in accepted):
        raise not_numbers(f"column {name!r}", f"type {kind}")
