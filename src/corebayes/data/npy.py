"""Rows in .npy files and memory maps: plain reads of what is asked for, never the whole file.

Pages of a mapped file stay in memory and a file that was cut short kills the process that reads
its map, so files are read and not mapped.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from corebayes.data import numbers
from corebayes.data.checks import check_same_length
from corebayes.data.columns import choose_roles, find
from corebayes.data.npy_header import read_header
from corebayes.data.table import Tally
from corebayes.data.watch import ChangedDataError, WatchedFile, path_of
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


def is_npy(source: Any) -> bool:
    """A .npy path or a memory map, or a pair or mapping with one of these in it."""
    path = path_of(source)
    if path is not None:
        return path.endswith(".npy")
    if isinstance(source, tuple) or (isinstance(source, list) and len(cast(Any, source)) == 2):
        return any(is_npy(entry) for entry in cast(Sequence[Any], source) if _is_leaf(entry))
    if isinstance(source, Mapping):
        entries = cast(Mapping[Any, Any], source).values()
        return any(is_npy(entry) for entry in entries if _is_leaf(entry))
    return isinstance(source, np.memmap)


def _is_leaf(entry: Any) -> bool:
    return path_of(entry) is not None or isinstance(entry, np.memmap)


def open_npy(source: Any, target: Any, features: Sequence[Any] | None, counts: Any) -> NpySource:
    """Find the arrays in their files. Cost: the header of every file."""
    named_counts: Stored | None = None
    if isinstance(source, Mapping):
        named = {str(k): v for k, v in cast(Mapping[Any, Any], source).items()}
        fields = {name: _stored(entry, name) for name, entry in named.items()}
        if isinstance(counts, str):
            find(counts, tuple(named), "counts")
            named_counts = _one_number_a_row(fields.pop(counts))
    elif isinstance(source, tuple | list):
        pair = cast(Sequence[Any], source)
        if len(pair) != 2:
            raise ValueError(f"a tuple must be the pair (X, y), got {len(pair)} elements")
        fields = {"X": _stored(pair[0], "X"), "y": _target(_stored(pair[1], "y"))}
    else:
        X = _matrix(_stored(source, "X"))
        return _with_columns(X, source, target, features, counts)
    for option, value in (("target", target), ("features", features)):
        if value is not None:
            raise ValueError(
                f"{option}={value!r} has no meaning for several arrays: "
                "it goes with one .npy matrix, whose columns have numbers"
            )
    if "X" in fields:
        fields["X"] = _matrix(fields["X"])
    lengths = {name: array.shape[0] for name, array in fields.items()}
    if named_counts is not None:
        lengths["counts"] = named_counts.shape[0]
    check_same_length(lengths)
    return NpySource(fields=fields, counts=named_counts)


def _one_number_a_row(counts: Stored) -> Stored:
    if len(counts.shape) != 1:
        raise ValueError(f"counts must be one number for each row, got the shape {counts.shape}")
    return counts


def _with_columns(
    X: Stored, source: Any, target: Any, features: Sequence[Any] | None, counts: Any
) -> NpySource:
    """One matrix whose columns are called by their numbers, from 0."""
    check_same_length({"X": X.shape[0]})
    named = counts if isinstance(counts, str | int) else None
    if target is None and features is None and named is None:
        return NpySource(fields={"X": X})
    if len(X.shape) != 2:
        raise ValueError(f"{source} must hold a matrix of rows, its shape is {X.shape}")
    names = tuple(str(column) for column in range(X.shape[1]))
    last = len(names) - 1
    for option, value in (("target", target), ("counts", named)):
        if value is not None and str(value) not in names:
            raise ValueError(f"{option}: there is no column {value}; they are numbered 0 to {last}")
    roles = choose_roles(names, target, features, counts)
    return NpySource(
        fields={"X": X},
        features=tuple(map(int, roles.features)),
        target=None if roles.target is None else int(roles.target),
        counts=None if roles.counts is None else int(roles.counts),
    )


def _matrix(array: Stored) -> Stored:
    if len(array.shape) > 2:
        raise ValueError(
            f"X must have rows and columns, got {len(array.shape)} axes: {array.shape}"
        )
    if isinstance(array, FileArray):
        return array.as_matrix()
    return array[:, np.newaxis] if array.ndim == 1 else array


def _target(array: Stored) -> Stored:
    if not isinstance(array, FileArray):
        return numbers.target(array)[1]
    if len(array.shape) == 2 and array.shape[1] == 1:
        return array.column(0)
    if len(array.shape) != 1:
        raise ValueError(
            f"y must be one column, got the shape {array.shape}; "
            "pass several responses as a mapping of names to arrays"
        )
    return array


def _stored(entry: Any, label: str) -> Stored:
    """The entry as an array in a file when it is in one."""
    path = path_of(entry)
    if path is not None:
        array = _open_file(path)
    else:
        array = _place_of(cast(Any, entry)) if isinstance(entry, np.memmap) else None
    if array is None:
        return numbers.real(entry, label)
    # What is refused of an array is refused here; one number stands for all.
    shape = (min(1, array.shape[0]), *array.shape[1:])
    numbers.real(np.broadcast_to(np.empty((), array.dtype), shape), label)
    return array


def _open_file(path: str) -> FileArray:
    """Where a .npy file has its numbers. Pickled objects are never loaded."""
    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with open(path, "rb") as file:
            shape, fortran, dtype, offset = read_header(file, os.path.getsize(path))
    except Exception as error:
        # A damaged file makes NumPy stumble in many ways that mean the same to the caller.
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"cannot read {path} as npy: {reason:.300}") from error
    if not shape:
        raise ValueError(f"cannot read {path} as npy: it holds one number and no rows")
    order = range(len(shape)) if fortran else range(len(shape) - 1, -1, -1)
    strides, step = [0] * len(shape), dtype.itemsize
    for axis in order:
        strides[axis], step = step, step * max(1, shape[axis])
    return FileArray(
        file=WatchedFile.open(os.path.abspath(path)),
        offset=offset,
        dtype=dtype,
        shape=shape,
        strides=tuple(strides),
    )


def _place_of(array: Any) -> FileArray | None:
    """Where a memory map, or a slice of one, lies in its file; None when that is not to be known.

    Changes that are only in memory (mode "c") are in no file, and reversed views have no first
    byte to start from.
    """
    base: Any = array
    while isinstance(base, np.ndarray):
        base = cast(Any, base).base
    if not isinstance(base, mmap.mmap) or array.filename is None or array.mode == "c":
        return None
    if min(array.strides, default=0) <= 0 or array.ndim == 0 or array.dtype.hasobject:
        return None
    array.flush()
    map_address = np.frombuffer(base, dtype=np.uint8).ctypes.data
    # NumPy maps from the last page boundary before the offset it was given.
    start_of_map = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY
    return FileArray(
        file=WatchedFile.open(os.path.abspath(array.filename)),
        offset=start_of_map + array.ctypes.data - map_address,
        dtype=array.dtype,
        shape=array.shape,
        strides=array.strides,
    )
