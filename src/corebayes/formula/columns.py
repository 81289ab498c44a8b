"""Columns of pandas and polars frames and of Arrow tables, as numbers or as categories."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corebayes.data import frames
from corebayes.data.empty import NoRowsError
from corebayes.types import Array


class Numbers(NamedTuple):
    values: Array
    whole: bool = False
    """Whether the table has them as integers."""


class Categories(NamedTuple):
    codes: NDArray[np.intp]
    """Positions in `levels`; −1 where the value is missing."""
    levels: tuple[Any, ...]
    ordered: bool = False
    """Whether the table has an order of its own; else levels are sorted."""
    times: str = ""
    """The type of times and dates, which are levels as ISO texts: they can name groups only."""


Values = Numbers | Categories


class BadRowError(ValueError):
    """A value that cannot be used, in a row that is numbered from the first of those looked at."""

    def __init__(self, row: int, text: str) -> None:
        super().__init__(row, text)
        self.row, self.text = row, text

    def __str__(self) -> str:
        return f"row {self.row}, {self.text}"

    def after(self, first: int) -> BadRowError:
        """The same with so many rows before."""
        return BadRowError(first + self.row, self.text)


def open_frame(source: Any) -> frames.FrameColumns:
    frame = frames.as_frame(source)
    if frame is None:
        raise TypeError(
            "a formula needs columns with names: pass a pandas or polars frame, an Arrow table or "
            f"the path of Parquet files, not {type(source).__name__}"
        )
    return frame


class Missing(NamedTuple):
    """Rows with a missing value among the columns that are used."""

    rows: NDArray[np.bool_]
    counts: dict[str, int]
    """How many each column has, of those that have any."""
    first: str
    """Of the first such row."""

    def words(self) -> str:
        """All columns, the one of the first row first."""
        others = [f"{n:,} in {name!r}" for name, n in self.counts.items() if name != self.first]
        number, of_all = self.counts[self.first], f"of {self.rows.size:,} values there"
        there = f"the only one {of_all}," if number == 1 else f"so are {number:,} {of_all}"
        return (
            f"row {int(self.rows.argmax())}, column {self.first!r} is missing; "
            f"{there if others else there.rstrip(',')}"
            f"{' and ' * bool(others)}{', '.join(others)} (rows are numbered from 0)"
        )


def read(source: Any, names: Iterable[str]) -> dict[str, Values]:
    """The columns of these names, with missing values where there are some."""
    frame = open_frame(source)
    if frame.num_rows == 0:
        raise NoRowsError("the table has no rows")
    columns: dict[str, Values] = {}
    for name in dict.fromkeys(names):
        if name not in frame.names:
            raise ValueError(f"the table has no column {name!r}, which the design needs")
        columns[name] = _read(source, frame, frame.names.index(name))
    return columns


def take(columns: Mapping[str, Values], rows: NDArray[np.bool_]) -> dict[str, Values]:
    """Some rows of all columns."""
    return {
        name: values._replace(values=values.values[rows])
        if isinstance(values, Numbers)
        else values._replace(codes=values.codes[rows])
        for name, values in columns.items()
    }


def as_categories(values: Values) -> Categories:
    """Numbers as categories: the levels are the numbers that occur."""
    if isinstance(values, Categories):
        return values
    levels, codes = np.unique(values.values, return_inverse=True)
    return Categories(codes, tuple(levels.astype(int if values.whole else float).tolist()))


def find_missing(columns: Mapping[str, Values]) -> Missing | None:
    """Which rows miss a value; None if none does."""
    gaps = {
        name: np.isnan(values.values) if isinstance(values, Numbers) else values.codes < 0
        for name, values in columns.items()
    }
    counts = {name: int(gap.sum()) for name, gap in gaps.items() if gap.any()}
    if not counts:
        return None
    rows = np.logical_or.reduce([gaps[name] for name in counts])
    first = next(name for name in counts if gaps[name][rows.argmax()])
    return Missing(rows, counts, first)


def complete(
    columns: Mapping[str, Values], *, drops: bool
) -> tuple[Mapping[str, Values], Missing | None]:
    """The complete rows of some columns, and which are not; an error unless these are dropped."""
    gaps = find_missing(columns)
    if gaps is None:
        return columns, None
    check_missing(gaps, drops=drops)
    return take(columns, ~gaps.rows), gaps


def check_missing(gaps: Missing, *, drops: bool) -> None:
    """Refuse rows with missing values that are not to be dropped, and tables of nothing else."""
    if not drops:
        raise ValueError(
            f'{gaps.words()}. Fill or remove these rows, or leave them out with missing="drop" '
            "(--missing drop)"
        )
    if gaps.rows.all():
        raise ValueError(f"no row is complete: {gaps.words()}")


def _read(source: Any, frame: frames.FrameColumns, position: int) -> Values:
    name = frame.names[position]
    if hasattr(source, "iloc"):
        kind, categories = _pandas(source.iloc[:, position])
    elif hasattr(source, "to_series"):
        kind, categories = _polars(source.to_series(position))
    else:
        kind, categories = _arrow(frames.import_pyarrow().table(source).column(position))
    if kind == "boolean":
        truths = frame.column(position)
        codes = np.where(np.isnan(truths), -1, truths).astype(np.intp)
        return Categories(codes, (False, True), ordered=True)
    if categories is not None:
        codes, levels = categories
        found = _categories(np.asarray(codes, dtype=np.intp), list(levels), name)
        of_times = kind not in ("ordered", "categories")
        return found._replace(ordered=kind == "ordered", times=kind if of_times else found.times)
    if kind not in ("number", "whole"):
        raise unusable(name, kind)
    return Numbers(frame.column(position), kind == "whole")


def _categories(codes: NDArray[np.intp], levels: list[Any], name: str) -> Categories:
    """Levels of plain types; a level that stands for a missing value is none."""
    plain: list[Any] = []
    times = ""
    lookup = np.full(len(levels) + 1, -1, dtype=np.intp)
    for place, given in enumerate(levels):
        level: Any = given.item() if hasattr(given, "item") else given
        if type(level).__name__ == "Interval":
            level = str(level)
        if level is None or level != level:
            continue
        if hasattr(level, "isoformat"):
            level, times = level.isoformat(), type(level).__name__
        if not isinstance(level, str | bool | int | float):
            raise unusable(name, type(level).__name__)
        lookup[place] = len(plain)
        plain.append(level)
    return Categories(lookup[codes], tuple(plain), times=times)


def unusable(name: str, kind: Any) -> ValueError:
    if any(word in str(kind).lower() for word in ("date", "time", "duration", "period")):
        return ValueError(
            f"column {name!r} holds {kind}, and a formula has no way to know what of a time "
            "matters: make a column of it first, such as the hour, the weekday or the days since "
            "a date; as it is it can only name groups, as in (1 | day)"
        )
    return ValueError(
        f"column {name!r} holds {kind}, which is neither numbers nor categories: "
        "make a number or a text of it first"
    )


# Each of these says what kind of column it is, and the codes and levels of categories.
_Found = tuple[str, tuple[Any, Any] | None]


def _pandas(series: Any) -> _Found:
    pandas: Any = sys.modules["pandas"]
    types, dtype = pandas.api.types, series.dtype
    if not isinstance(dtype, pandas.CategoricalDtype):
        if types.is_bool_dtype(dtype):
            return "boolean", None
        if types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype):
            return "whole" if types.is_integer_dtype(dtype) else "number", None
        times = types.is_datetime64_any_dtype(dtype)
        if not (times or types.is_object_dtype(dtype) or types.is_string_dtype(dtype)):
            return str(dtype), None
        try:
            series = series.astype("category")
        except TypeError:
            return "objects that cannot be compared", None
        kind = str(dtype) if times else "categories"
        return kind, (series.cat.codes, series.cat.categories)
    return "ordered", (series.cat.codes, series.cat.categories)


def _polars(series: Any) -> _Found:
    polars: Any = sys.modules["polars"]
    dtype = series.dtype
    if dtype in (polars.Boolean, polars.Null) or dtype.is_numeric():
        whole = "whole" if dtype.is_integer() else "number"
        return "boolean" if dtype == polars.Boolean else whole, None
    if dtype.is_temporal():
        codes = series.rank("dense").cast(polars.Int64).fill_null(0).to_numpy() - 1
        return str(dtype), (codes, sorted(series.drop_nulls().unique().to_list()))
    if dtype == polars.Enum:
        levels = dtype.categories.to_list()
    elif dtype in (polars.String, polars.Categorical):
        series = series.cast(polars.String)
        levels = sorted(series.drop_nulls().unique().to_list())
        series = series.cast(polars.Enum(levels))
    else:
        return str(dtype), None
    codes = series.to_physical().cast(polars.Int64).fill_null(-1).to_numpy()
    return "ordered" if dtype == polars.Enum else "categories", (codes, levels)


def _arrow(column: Any) -> _Found:
    pyarrow = frames.import_pyarrow()
    kinds, dtype = pyarrow.types, column.type
    if kinds.is_boolean(dtype):
        return "boolean", None
    if kinds.is_integer(dtype):
        return "whole", None
    if any(f(dtype) for f in (kinds.is_floating, kinds.is_decimal, kinds.is_null)):
        return "number", None
    texts = (kinds.is_string, kinds.is_large_string, kinds.is_string_view)
    ordered, text = kinds.is_dictionary(dtype), any(f(dtype) for f in texts)
    times = any(f(dtype) for f in (kinds.is_timestamp, kinds.is_date, kinds.is_time))
    if not (ordered or text or times):
        return str(dtype), None
    if text:
        column = column.cast(pyarrow.large_string())
    if not ordered:
        column = column.dictionary_encode()
    chunk = column.unify_dictionaries().combine_chunks()
    codes = chunk.indices.cast(pyarrow.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    levels = chunk.dictionary.to_pylist()
    if ordered:
        return "ordered", (codes, levels)
    order = sorted(range(len(levels)), key=levels.__getitem__)
    ranks = np.empty(len(levels) + 1, dtype=np.intp)
    ranks[[*order, len(levels)]] = [*range(len(levels)), -1]
    return str(dtype) if times else "categories", (ranks[codes], [levels[k] for k in order])
