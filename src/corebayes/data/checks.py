"""What is asked of every value, once, when data enters."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

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
    findings = Findings(data)
    findings.look(list(data.fields.items()), data.counts)
    bad = findings.conclude(on_bad)
    if bad.size:
        counts: Array = np.ones(data.num_rows) if data.counts is None else data.counts.copy()
        counts[bad] = 0.0
        data = replace(data, counts=counts, dropped=bad)
    return data


class Named(Protocol):
    """What the columns are called, for messages."""

    @property
    def column_names(self) -> tuple[str, ...]: ...

    @property
    def target_name(self) -> str: ...


@dataclass
class Findings:
    """What was found in the rows so far; they may come in parts."""

    names: Named
    num_rows: int = 0
    total_count: float = 0.0
    """Σ c_n over the rows that are not bad."""
    _bad: list[Indices] = field(default_factory=list[Indices])
    _first_bad: str = ""
    _num_negative: int = 0
    _first_negative: str = ""

    def look(self, fields: Columns, counts: Array | None) -> None:
        """Look at the next rows."""
        columns = [*fields, *([] if counts is None else [("counts", counts)])]
        length = columns[0][1].shape[0]
        if counts is not None:
            self._look_for_negative(counts)
        bad = find_bad_rows(columns)
        if bad.size and not self._bad:
            self._first_bad = _describe(self.names, columns, int(bad[0]), self.num_rows)
        if bad.size:
            self._bad.append(self.num_rows + bad)
        if counts is None:
            self.total_count += length - bad.size
        else:
            self.total_count += float((np.delete(counts, bad) if bad.size else counts).sum())
        self.num_rows += length

    def conclude(self, on_bad: str) -> Indices:
        """The numbers of the rows to leave out, with a warning; or an error.

        Negative counts have no meaning, so they are refused whatever `on_bad` says.
        """
        if self._num_negative:
            raise ValueError(
                f"{self._first_negative}; a count must be zero or positive "
                f"({self._num_negative:,} rows have a negative one; rows are numbered from 0)"
            )
        bad = np.concatenate(self._bad) if self._bad else np.empty(0, dtype=np.int64)
        number = f"{bad.size:,} of {self.num_rows:,} rows hold a NaN, missing or infinite value"
        if bad.size and on_bad == "raise":
            raise ValueError(
                f"{self._first_bad}; {number} (rows are numbered from 0). "
                'Fill or remove them, or pass on_bad="drop" to leave those rows out'
            )
        if bad.size:
            warnings.warn(
                f"{number} and are left out; the first: {self._first_bad}",
                UserWarning,
                stacklevel=4,
            )
        if self.total_count == 0.0:
            raise ValueError("no row is left: every row counts zero times")
        return bad

    def _look_for_negative(self, counts: Array) -> None:
        negative = np.flatnonzero(counts < 0.0)
        if negative.size and not self._num_negative:
            row = int(negative[0])
            times = _written(counts[row])
            self._first_negative = f"row {self.num_rows + row} counts {times} times"
        self._num_negative += int(negative.size)


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


def check_same_length(lengths: dict[str, int]) -> None:
    """Fields that stand side by side must have as many rows as each other, and at least one."""
    if len(set(lengths.values())) > 1:
        written = ", ".join(f"{name} has {length:,}" for name, length in lengths.items())
        raise ValueError(f"the numbers of rows differ: {written}")
    if 0 in lengths.values():
        raise ValueError("the data is empty: it has no rows")


def _check_lengths(data: ArrayData) -> None:
    lengths = {name: array.shape[0] for name, array in data.fields.items()}
    if data.counts is not None:
        lengths["counts"] = data.counts.shape[0]
    check_same_length(lengths)


def _describe(names: Named, columns: Columns, position: int, before: int) -> str:
    """Where the first bad value of a row is, and what it is."""
    for name, array in columns:
        values = np.atleast_1d(array[position])
        bad = np.argwhere(~np.isfinite(values))
        if bad.size:
            place = tuple(int(i) for i in bad[0])
            where = _place(names, name, array, place)
            return f"row {before + position}, {where} is {_written(values[place])}"
    raise AssertionError(f"row {before + position} has no bad value")


def _place(names: Named, name: str, array: NDArray[Any], place: tuple[int, ...]) -> str:
    if name == "X" and names.column_names:
        return f"column {names.column_names[place[0]]!r} of X"
    if name == "y" and names.target_name != "y":
        return f"column {names.target_name!r} (the target y)"
    if array.ndim == 1:
        return name
    return f"column {', '.join(map(str, place))} of {name}"


def _written(value: Any) -> str:
    """The value as a person writes it: nan, -inf, -2.5, -3."""
    return f"{float(value):.15g}"
