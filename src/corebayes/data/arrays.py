"""Rows that are in memory as NumPy arrays."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebayes.types import Array, Block, Indices


def no_rows() -> Indices:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class ArrayData:
    """Named arrays that share their first axis; made and checked by `as_data`.

    The arrays stay as they were given. A shard becomes float64 when it is read, at the cost
    of one copy of that shard; a shard of a C-contiguous float64 array is a read-only view
    and costs nothing.
    """

    fields: Mapping[str, NDArray[Any]]
    counts: Array | None = None
    """How often each row counts; None means once."""
    column_names: tuple[str, ...] = ()
    target_name: str = "y"
    """What the column behind the field `y` is called where it came from."""
    dropped: Indices = field(default_factory=no_rows)
    """Sorted numbers of rows left out for a NaN or infinite value. They keep their numbers,
    count zero times, and read as zero where the bad value was."""
    shard_rows: int = 16_384
    design: Mapping[str, Any] | None = None
    """How a formula made the columns, as plain data; a coreset keeps it."""

    def __post_init__(self) -> None:
        # The rows belong to the caller: whoever reads a shard must not write to them.
        fields = {name: _read_only(array) for name, array in self.fields.items()}
        object.__setattr__(self, "fields", fields)
        if self.counts is not None:
            object.__setattr__(self, "counts", _read_only(self.counts))

    @property
    def num_rows(self) -> int:
        return next(iter(self.fields.values())).shape[0]

    @property
    def num_dropped(self) -> int:
        return int(self.dropped.size)

    @property
    def total_count(self) -> float:
        """Σ_n c_n: the number of rows when there are no counts."""
        return self._total_count

    @cached_property
    def _total_count(self) -> float:
        return float(self.num_rows if self.counts is None else self.counts.sum())

    @property
    def shards(self) -> Sequence[tuple[int, int]]:
        """Half-open ranges of at most `shard_rows` rows, in order."""
        starts = range(0, self.num_rows, self.shard_rows)
        return tuple((start, min(start + self.shard_rows, self.num_rows)) for start in starts)

    def read(self, start: int, stop: int) -> Block:
        """The rows of one range, as float64."""
        bad = self.dropped
        if bad.size:
            first, last = np.searchsorted(bad, [start, stop])
            bad = bad[first:last] - start
        return self._block(slice(start, stop), bad)

    def take(self, rows: Indices) -> Block:
        """Copies of the rows with these numbers, in this order; a row may be taken twice."""
        numbers = row_numbers(rows, self.num_rows)
        bad = np.flatnonzero(np.isin(numbers, self.dropped)) if self.num_dropped else self.dropped
        return self._block(numbers, bad)

    def fingerprint(self) -> str:
        """A hash of names, types, shapes and all values. Cost: one pass, the first time."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        arrays = dict(self.fields)
        layout: list[Any] = [[n, a.dtype.str, list(a.shape)] for n, a in arrays.items()]
        layout += [list(self.column_names), self.target_name, self.counts is not None]
        digest = hashlib.blake2b(json.dumps(layout).encode(), digest_size=32)
        values = list(arrays.values()) + ([] if self.counts is None else [self.counts])
        for array in values:
            for start, stop in self.shards:
                digest.update(np.ascontiguousarray(array[start:stop]).data)
        return digest.hexdigest()

    def _block(self, rows: slice | Indices, bad: Indices) -> Block:
        """The given rows, with zeros for what is not finite at the positions `bad`."""
        fields = {name: finite_float64(array[rows], bad) for name, array in self.fields.items()}
        return Block(fields, None if self.counts is None else self.counts[rows])

    def __repr__(self) -> str:
        fields = ", ".join(f"{n} {a.shape} {a.dtype}" for n, a in self.fields.items())
        return f"ArrayData({self.num_rows:,} rows: {fields})"


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def row_numbers(rows: Any, num_rows: int) -> Indices:
    """The numbers of rows to take, if there are such rows."""
    numbers = np.asarray(rows)
    if numbers.size == 0:
        numbers = no_rows()
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise ValueError(
            "rows to take must be a 1-D array of row numbers, "
            f"got shape {numbers.shape} of {numbers.dtype}"
        )
    outside = (numbers < 0) | (numbers >= num_rows)
    if outside.any():
        raise ValueError(
            f"there is no row {numbers[outside][0]}: the data has the rows 0 to {num_rows - 1}"
        )
    return numbers


def finite_float64(values: NDArray[Any], bad: Indices) -> Array:
    """The values, with zeros for what is not finite in the rows at the positions `bad`."""
    values = np.ascontiguousarray(values, dtype=np.float64)
    if bad.size:
        values = values.copy()
        values[bad] = np.nan_to_num(values[bad], nan=0.0, posinf=0.0, neginf=0.0)
    return values
