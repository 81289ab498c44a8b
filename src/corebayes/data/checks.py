"""What is asked of every value, once, in the first pass over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corebayes.data.arrays import ArrayData, usable
from corebayes.data.empty import NoRowsError
from corebayes.data.warn import warn
from corebayes.types import Block, Indices, Points

Columns = Sequence[tuple[str, NDArray[Any]]]

# Values looked at together: a block and its mask stay in a core's cache.
BLOCK_VALUES = 2**18


class FoundValues(NamedTuple):
    """What was found in some rows; the rows that were wanted of them come along."""

    num_rows: int
    total_count: float
    """Σ c_n over the rows that are not bad."""
    num_counted: int
    """How many of these count more than zero times."""
    bad: tuple[Indices, ...]
    first_bad: str
    num_negative: int
    first_negative: str
    kept: tuple[Points, ...]
    more: Any
    """The answer of the model's own question to the rows that are not bad; None for no rows."""


@dataclass(frozen=True)
class Checking:
    """The pass that looks at every value, asks the model's question, and picks rows up."""

    column_names: tuple[str, ...]
    target_name: str
    wanted: Indices
    """Sorted numbers of the rows to hand over."""
    more: Any = None
    """A query of the model's to the rows that are not bad."""

    @property
    def block_rows(self) -> int:
        return 4096 if self.more is None else self.more.block_rows

    def answer(self, block: Block, numbers: Indices) -> FoundValues:
        counts = block.counts
        columns = [*block.fields.items(), *([] if counts is None else [("counts", counts)])]
        bad = find_bad_rows(columns)
        good = block
        if bad.size:
            good = block.take(np.setdiff1d(np.arange(len(block)), bad))
        negative = np.flatnonzero(np.empty(0) if counts is None else counts < 0.0)
        first, last = np.searchsorted(self.wanted, [numbers[0], numbers[-1] + 1])
        places = np.searchsorted(numbers, self.wanted[first:last])
        kept = usable(block, bad).take(places) if places.size else None
        more = None
        if self.more is not None and len(good):
            more = self.more.answer(good, np.delete(numbers, bad) if bad.size else numbers)
        return FoundValues(
            len(block),
            float(len(good) if good.counts is None else good.counts.sum()),
            len(good) if good.counts is None else int(np.count_nonzero(good.counts)),
            (numbers[bad],) if bad.size else (),
            self._describe(columns, int(bad[0]), int(numbers[bad[0]])) if bad.size else "",
            int(negative.size),
            _negative(counts, numbers, negative),
            () if kept is None else (Points(numbers[places], kept),),
            more,
        )

    def merge(self, first: FoundValues, second: FoundValues) -> FoundValues:
        more = first.more if second.more is None else second.more
        if first.more is not None and second.more is not None:
            more = self.more.merge(first.more, second.more)
        return FoundValues(
            first.num_rows + second.num_rows,
            first.total_count + second.total_count,
            first.num_counted + second.num_counted,
            first.bad + second.bad,
            first.first_bad or second.first_bad,
            first.num_negative + second.num_negative,
            first.first_negative or second.first_negative,
            first.kept + second.kept,
            more,
        )

    def _describe(self, columns: Columns, position: int, number: int) -> str:
        """Where the first bad value of a row is, and what it is."""
        for name, array in columns:
            values = np.atleast_1d(array[position])
            bad = np.argwhere(~np.isfinite(values))
            if bad.size:
                place = tuple(int(i) for i in bad[0])
                where = self._place(name, array, place)
                return f"row {number}, {where} is {_written(values[place])}"
        raise AssertionError(f"row {number} has no bad value")

    def _place(self, name: str, array: NDArray[Any], place: tuple[int, ...]) -> str:
        if name == "X" and self.column_names:
            return f"column {self.column_names[place[0]]!r} of X"
        if name == "y" and self.target_name != "y":
            return f"column {self.target_name!r} (the target y)"
        if array.ndim == 1:
            return name
        return f"column {', '.join(map(str, place))} of {name}"


def conclude(found: FoundValues, on_bad: str) -> Indices:
    """The numbers of the rows to leave out, with a warning; or an error.

    Negative counts have no meaning, so they are refused whatever `on_bad` says.
    """
    if found.num_negative:
        raise ValueError(
            f"{found.first_negative}; a count must be zero or positive "
            f"({found.num_negative:,} rows have a negative one; rows are numbered from 0)"
        )
    bad = np.concatenate(found.bad) if found.bad else np.empty(0, dtype=np.int64)
    number = f"{bad.size:,} of {found.num_rows:,} rows hold a NaN, missing or infinite value"
    if bad.size and on_bad == "raise":
        raise ValueError(
            f"{found.first_bad}; {number} (rows are numbered from 0). "
            'Fill or remove them, or leave those rows out with on_bad="drop" (missing="drop" '
            "of a formula)"
        )
    if bad.size:
        warn(f"{number} and are left out; the first: {found.first_bad}")
    if found.total_count == 0.0:
        raise NoRowsError("no row is left: every row counts zero times")
    return bad


def find_bad_rows(columns: Columns) -> Indices:
    """Sorted positions of the rows that hold a NaN or an infinite value in any column."""
    # Only floats can hold them.
    floats = [array for _, array in columns if array.dtype.kind == "f" and array.shape[0]]
    if not floats:
        return np.empty(0, dtype=np.int64)
    num_rows = floats[0].shape[0]
    width = max(array[0].size for array in floats)
    step = max(1, BLOCK_VALUES // max(width, 1))
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
        raise NoRowsError()


def check_lengths(data: ArrayData) -> None:
    lengths = {name: array.shape[0] for name, array in data.fields.items()}
    if data.counts is not None:
        lengths["counts"] = data.counts.shape[0]
    check_same_length(lengths)


def _negative(counts: Any, numbers: Indices, negative: Indices) -> str:
    if negative.size == 0:
        return ""
    return f"row {numbers[negative[0]]} counts {_written(counts[negative[0]])} times"


def _written(value: Any) -> str:
    """The value as a person writes it: nan, -inf, -2.5, -3."""
    return f"{float(value):.15g}"
