"""Which .npy files, memory maps and arrays in memory make up the rows, checked by their headers."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from corebayes.data import numbers
from corebayes.data.checks import check_same_length
from corebayes.data.columns import choose_roles, find
from corebayes.data.npy import FileArray, NpySource, Stored
from corebayes.data.npy_header import read_header
from corebayes.data.watch import WatchedFile, path_of
from corebayes.files.reading import check_regular, first_line


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
    check_regular(path)
    try:
        with open(path, "rb") as file:
            shape, fortran, dtype, offset = read_header(file, os.path.getsize(path))
    except Exception as error:
        # A damaged file makes NumPy stumble in many ways that mean the same to the caller.
        raise ValueError(f"cannot read {path} as npy: {first_line(error)}") from error
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
