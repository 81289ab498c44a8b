"""What is asked of every value, once, when data enters."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebayes.data.arrays import ArrayData
from corebayes.types import Array, Indices

Columns = Sequence[tuple[str, NDArray[Any]]]

# Values looked at together: a block and its mask stay in a core's cache.
BLOCK_VALUES = 2**18


def check(data: ArrayData, *, on_bad: str) -> ArrayData:
    """The data if all its rows are usable; see `as_data` for `on_bad`.

    Cost: one pass at the speed of memory, and memory for one block beside the bad row numbers.
    """
    _check_lengths(data)
    _check_counts(data)
    columns = list(data.fields.items())
    if data.counts is not None:
        columns.append(("counts", data.counts))
    bad = find_bad_rows(columns)
    if bad.size:
        data = _leave_out(data, bad, _describe(data, columns, int(bad[0])), on_bad)
    if data.total_count == 0.0:
        raise ValueError("no row is left: every row counts zero times")
    return data


def find_bad_rows(columns: Columns) -> Indices:
    """Sorted numbers of the rows that hold a NaN or an infinite value in any column."""
    # Only floats can hold them.
    floats = [array for _, array in columns if array.dtype.kind == "f"]
    if not floats:
        return np.empty(0, dtype=np.int64)
    num_rows = floats[0].shape[0]
    width = max(array[0].size for array in floats)
    step = max(1, BLOCK_VALUES // width)
    found: list[Indices] = []
    for start in range(0, num_rows, step):
        for array in floats:
            finite = np.isfinite(array[start : start + step])
            if not finite.all():
                good = finite.reshape(finite.shape[0], -1).all(axis=1)
                found.append(start + np.flatnonzero(~good))
    return np.unique(np.concatenate(found)) if found else np.empty(0, dtype=np.int64)


def _check_lengths(data: ArrayData) -> None:
    lengths = {name: array.shape[0] for name, array in data.fields.items()}
    if data.counts is not None:
        lengths["counts"] = data.counts.shape[0]
    if len(set(lengths.values())) > 1:
        written = ", ".join(f"{name} has {length:,}" for name, length in lengths.items())
        raise ValueError(f"the numbers of rows differ: {written}")
    if data.num_rows == 0:
        raise ValueError("the data is empty: it has no rows")


def _check_counts(data: ArrayData) -> None:
    """Negative counts have no meaning, so they are refused whatever `on_bad` says."""
    if data.counts is None:
        return
    negative = data.counts < 0.0
    if negative.any():
        row = int(np.argmax(negative))
        raise ValueError(
            f"row {row} counts {_written(data.counts[row])} times; a count must be zero or "
            f"positive ({np.count_nonzero(negative):,} rows have a negative one; "
            "rows are numbered from 0)"
        )


def _describe(data: ArrayData, columns: Columns, row: int) -> str:
    """Where the first bad value of a row is, and what it is."""
    for name, array in columns:
        values = np.atleast_1d(array[row])
        bad = np.argwhere(~np.isfinite(values))
        if bad.size:
            place = tuple(int(i) for i in bad[0])
            where = _place(data, name, array, place)
            return f"row {row}, {where} is {_written(values[place])}"
    raise AssertionError(f"row {row} has no bad value")


def _place(data: ArrayData, name: str, array: NDArray[Any], place: tuple[int, ...]) -> str:
    if name == "X" and data.column_names:
        return f"column {data.column_names[place[0]]!r} of X"
    if name == "y" and data.target_name != "y":
        return f"column {data.target_name!r} (the target y)"
    if array.ndim == 1:
        return name
    return f"column {', '.join(map(str, place))} of {name}"


def _written(value: Any) -> str:
    """The value as a person writes it: nan, -inf, -2.5, -3."""
    return f"{float(value):.15g}"


def _leave_out(data: ArrayData, bad: Indices, first: str, on_bad: str) -> ArrayData:
    number = f"{bad.size:,} of {data.num_rows:,} rows"
    if on_bad == "raise":
        raise ValueError(
            f"{first}; {number} hold a NaN, missing or infinite value (rows are numbered from 0). "
            'Fill or remove them, or pass on_bad="drop" to leave those rows out'
        )
    warnings.warn(
        f"{number} hold a NaN, missing or infinite value and are left out; the first: {first}",
        UserWarning,
        stacklevel=4,
    )
    counts: Array = np.ones(data.num_rows) if data.counts is None else data.counts.copy()
    counts[bad] = 0.0
    return replace(data, counts=counts, dropped=bad)
