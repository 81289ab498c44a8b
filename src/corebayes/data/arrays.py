"""Rows that are in memory as NumPy arrays."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebayes.data.table import Tally
from corebayes.types import Array, Block, Indices

# A part is there as it was decoded, as a matrix, and as the rows picked of it.
COPIES_OF_A_PART = 3


def row_bytes(template: Block) -> int:
    """Memory for a row as float64, with its count."""
    return 8 * (1 + sum(int(np.prod(a.shape[1:])) for a in template.fields.values()))


def no_rows() -> Indices:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class ArrayData:
    """Named arrays that share their first axis.

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
    duplicates: str | None = None
    """How repeated rows became one; a coreset keeps it."""
    scattered: bool = True
    sequential: bool = False

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
    def total_count(self) -> float:
        """Σ_n c_n, in one sum."""
        return float(self.num_rows if self.counts is None else self.counts.sum())

    @property
    def part_rows(self) -> int:
        return min(self.shard_rows, self.num_rows)

    @property
    def part_bytes(self) -> int:
        return COPIES_OF_A_PART * row_bytes(self.template) * self.part_rows

    @property
    def template(self) -> Block:
        return self._block(slice(0, 0), no_rows())

    @property
    def shards(self) -> Sequence[tuple[int, int]]:
        """Half-open ranges of at most `shard_rows` rows, in order."""
        starts = range(0, self.num_rows, self.shard_rows)
        return tuple((start, min(start + self.shard_rows, self.num_rows)) for start in starts)

    def parts(
        self, start: int, stop: int, rows: Indices | None, tally: Tally
    ) -> Iterator[tuple[Indices, Block]]:
        """All in one part."""
        if rows is None:
            numbers = np.arange(start, stop)
            first, last = np.searchsorted(self.dropped, [start, stop])
            block = self._block(slice(start, stop), self.dropped[first:last] - start)
        else:
            numbers, bad = rows, self.dropped
            block = self._block(rows, np.flatnonzero(np.isin(rows, bad)) if bad.size else bad)
        tally.rows += numbers.size
        tally.num_bytes += numbers.size * self._row_bytes
        yield numbers, block

    def without(self, bad: Indices) -> ArrayData:
        counts = np.ones(self.num_rows) if self.counts is None else self.counts.copy()
        counts[bad] = 0.0
        return replace(self, counts=counts, dropped=bad)

    def fingerprint(self, tally: Tally) -> str:
        """Of names, types, shapes and all values. Cost: one pass, the first time."""
        if "_fingerprint" not in self.__dict__:
            tally.rows += self.num_rows
            tally.num_bytes += self.num_rows * self._row_bytes
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

    @cached_property
    def _row_bytes(self) -> int:
        arrays = [*self.fields.values(), *([] if self.counts is None else [self.counts])]
        return sum(a.dtype.itemsize * int(np.prod(a.shape[1:])) for a in arrays)

    def _block(self, rows: slice | Indices, bad: Indices) -> Block:
        """The given rows, with zeros for what is not finite at the positions `bad`."""
        fields = {name: finite_float64(array[rows], bad) for name, array in self.fields.items()}
        return Block(fields, None if self.counts is None else self.counts[rows])

    def __repr__(self) -> str:
        return ", ".join(f"{n} {a.shape} {a.dtype}" for n, a in self.fields.items())


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


def concatenated(blocks: Sequence[Block]) -> Block:
    """The rows of all these blocks, which are alike, each row in one piece."""
    fields = {
        name: np.ascontiguousarray(np.concatenate([block[name] for block in blocks]))
        for name in blocks[0].fields
    }
    counted = any(block.counts is not None for block in blocks)
    counts = np.concatenate([block.multiplicity() for block in blocks]) if counted else None
    return Block(fields, counts)


def together(blocks: Sequence[Block]) -> Block:
    """`concatenated`, without a copy where there is one block."""
    return blocks[0] if len(blocks) == 1 else concatenated(blocks)


def usable(block: Block, bad: Indices) -> Block:
    """The block with the rows at the positions `bad` counting zero times and read as zero."""
    if bad.size == 0:
        return block
    counts = block.multiplicity().copy()
    counts[bad] = 0.0
    return Block({n: finite_float64(values, bad) for n, values in block.fields.items()}, counts)
