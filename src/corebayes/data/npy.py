"""Rows in .npy files and memory maps: plain reads of what is asked for, never the whole file.

Pages of a mapped file stay in memory and a file that was cut short kills the process that reads
its map, so files are read and not mapped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from corebayes.data.table import Tally
from corebayes.data.watch import ChangedDataError, WatchedFile
from corebayes.types import Array, Block, Indices

# The shards of arrays in memory, so that sums have the same bits.
SHARD_ROWS = 16_384
# Rows further apart than this many of their own lengths are read one by one.
SPARSE = 8


@dataclass(frozen=True, kw_only=True)
class FileArray:
    """An array in a file: where its first entry is, and how the others follow."""

    file: WatchedFile
    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Consecutive rows. Cost: one read, or one for each column in Fortran order."""
        with self._opened() as file:
            return self._read(file, start, stop)

    def take(self, positions: Indices, start: int) -> NDArray[Any]:
        """The rows start + positions, sorted: one by one when they lie far apart."""
        if positions.size == 0 or positions[-1] - positions[0] < SPARSE * positions.size:
            low, high = (positions[0], positions[-1] + 1) if positions.size else (0, 0)
            return self.rows(start + int(low), start + int(high))[positions - low]
        with self._opened() as file:
            found = [self._read(file, row, row + 1) for row in (start + positions).tolist()]
        return np.concatenate(found)

    def column(self, position: int) -> FileArray:
        """One column of a matrix."""
        return self._with(self.offset + position * self.strides[1], self.shape[:1], 1)

    def as_matrix(self) -> FileArray:
        """An array of one axis as one column."""
        if len(self.shape) > 1:
            return self
        shape, strides = (*self.shape, 1), (*self.strides, self.dtype.itemsize)
        return FileArray(
            file=self.file, offset=self.offset, dtype=self.dtype, shape=shape, strides=strides
        )

    def _opened(self) -> BinaryIO:
        self.file.check()
        return open(self.file.path, "rb")

    def _read(self, file: BinaryIO, start: int, stop: int) -> NDArray[Any]:
        # From the first byte of a row to its last.
        span = self.dtype.itemsize + sum(
            (length - 1) * stride for length, stride in zip(self.shape, self.strides, strict=True)
        )
        span -= (self.shape[0] - 1) * self.strides[0]
        if span > self.strides[0] and len(self.shape) > 1 and stop > start:
            # The rows overlap: Fortran order. Each entry of the last axis is read by itself.
            last = [
                self._with(self.offset + k * self.strides[-1], self.shape[:-1], -1)
                for k in range(self.shape[-1])
            ]
            return np.stack([entry._read(file, start, stop) for entry in last], axis=-1)
        length = (stop - start - 1) * self.strides[0] + span if stop > start else 0
        file.seek(self.offset + start * self.strides[0])
        content = file.read(length)
        if len(content) < length:
            raise ChangedDataError(f"{self.file.path} ends before its row {stop - 1:,}")
        shape = (stop - start, *self.shape[1:])
        return np.ndarray(shape, self.dtype, content, 0, self.strides)

    def _with(self, offset: int, shape: tuple[int, ...], num_strides: int) -> FileArray:
        return FileArray(
            file=self.file,
            offset=offset,
            dtype=self.dtype,
            shape=shape,
            strides=self.strides[:num_strides],
        )


Stored = FileArray | NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class NpySource:
    """Fields that are arrays in files, beside such as are in memory; made by `open_npy`."""

    fields: Mapping[str, Stored]
    features: tuple[int, ...] | None = None
    """Which columns of `X` are features, when it also holds the target or the counts."""
    target: int | None = None
    counts: int | Stored | None = None
    """The column of `X`, or the array, that says how often each row counts."""
    column_names: tuple[str, ...] = ()
    target_name: str = "y"
    sequential: bool = False
    scattered: bool = True

    @property
    def lengths(self) -> tuple[int, ...]:
        return self._lengths

    @cached_property
    def _lengths(self) -> tuple[int, ...]:
        num_rows = next(iter(self.fields.values())).shape[0]
        starts = range(0, num_rows, SHARD_ROWS)
        return tuple(min(SHARD_ROWS, num_rows - start) for start in starts)

    @property
    def template(self) -> Block:
        return self._block({n: np.empty((0, *a.shape[1:])) for n, a in self.fields.items()}, [])

    def parts(self, shard: int, positions: Indices | None, tally: Tally) -> Iterator[Block]:
        """All in one part: a shard is small."""
        start = shard * SHARD_ROWS
        stop = start + self.lengths[shard]
        number = stop - start if positions is None else positions.size
        tally.rows += number
        tally.num_bytes += number * self._row_bytes
        fields = {n: _rows(array, start, stop, positions) for n, array in self.fields.items()}
        others: Any = None
        if self.counts is not None and not isinstance(self.counts, int):
            others = _rows(self.counts, start, stop, positions)
        yield self._block(fields, others)

    def _block(self, fields: dict[str, Array], counts: Any) -> Block:
        """Fields whose columns are told apart; `counts` are those of an array of their own."""
        matrix = fields.get("X")
        if isinstance(self.counts, int) and matrix is not None:
            counts = matrix[:, self.counts].copy()
        elif self.counts is None:
            counts = None
        if self.features is not None and matrix is not None:
            fields["X"] = np.ascontiguousarray(matrix[:, self.features])
            if self.target is not None:
                fields["y"] = matrix[:, self.target].copy()
        return Block(fields, None if counts is None else np.asarray(counts, dtype=np.float64))

    @cached_property
    def _row_bytes(self) -> int:
        own = [] if self.counts is None or isinstance(self.counts, int) else [self.counts]
        arrays = [*self.fields.values(), *own]
        return sum(a.dtype.itemsize * int(np.prod(a.shape[1:])) for a in arrays)

    def fingerprint(self) -> str:
        """Of names, sizes, types, shapes and a sample of each file; of all values in memory."""
        layout: list[Any] = [self.features, self.target]
        digest = hashlib.blake2b(digest_size=32)
        for name, array in [*self.fields.items(), ("counts", self.counts)]:
            if array is None or isinstance(array, int):
                layout.append([name, array])
                continue
            layout.append([name, array.dtype.str, array.shape, array.strides])
            if isinstance(array, FileArray):
                file = array.file
                layout.append([Path(file.path).name, file.size, file.digest, array.offset])
            else:
                digest.update(np.ascontiguousarray(array).data)
        digest.update(json.dumps(layout).encode())
        return digest.hexdigest()

    def __repr__(self) -> str:
        return ", ".join(f"{n} {a.shape} {a.dtype}" for n, a in self.fields.items())


def _rows(array: Stored, start: int, stop: int, positions: Indices | None) -> Array:
    if isinstance(array, FileArray):
        values = array.rows(start, stop) if positions is None else array.take(positions, start)
    else:
        values = array[start:stop] if positions is None else array[start + positions]
    # A copy always: what was read is read-only, and what is in memory is the caller's.
    return np.array(values, dtype=np.float64, order="C")
