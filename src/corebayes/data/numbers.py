"""Arrays of real numbers from whatever holds them, without a copy where that is possible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebayes.data import frames
from corebayes.types import Array

# Python finds a length in these too, but no rows.
NOT_ROWS: tuple[Any, ...] = (str, bytes, Mapping, set, frozenset)


def matrix(source: Any) -> tuple[tuple[str, ...], NDArray[Any]]:
    """The names of the columns of X, if they have any, and X as (n, d)."""
    names: tuple[str, ...] = ()
    frame = frames.as_frame(source)
    if frame is not None:
        names, source = frame.names, frame.matrix()
    elif frames.is_series(source):
        name, source = frames.read_series(source, "X")
        names = (name,) if name else ()
    array = real(source, "X")
    if array.ndim > 2:
        raise ValueError(f"X must have rows and columns, got {array.ndim} axes: {array.shape}")
    return names, array[:, np.newaxis] if array.ndim == 1 else array


def target(source: Any) -> tuple[str, NDArray[Any]]:
    """What the target is called, and its values as (n,)."""
    name = "y"
    frame = frames.as_frame(source)
    if frame is not None and len(frame.names) == 1:
        name, source = frame.names[0], frame.column(0)
    elif frames.is_series(source):
        name, source = frames.read_series(source, "y")
    array = real(source, "y")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(
            f"y must be one column, got the shape {array.shape}; "
            "pass several responses as a mapping of names to arrays"
        )
    return name or "y", array


def counts(source: Any) -> Array | None:
    """How often each row counts, as float64 (n,); None stays None."""
    if source is None:
        return None
    if isinstance(source, str):
        raise ValueError(
            f"counts={source!r} names a column, but the columns here have no names: pass an array"
        )
    array = real(source, "counts")
    if array.ndim != 1:
        raise ValueError(f"counts must be one number for each row, got the shape {array.shape}")
    return array.astype(np.float64)


def real(source: Any, label: str) -> NDArray[Any]:
    """The source as an array of booleans, integers or floats, at least 1-D."""
    array = _asarray(source, label)
    if array.dtype.kind == "O":
        raise frames.not_numbers(*_first_object(array, label))
    if array.dtype.kind not in "biuf":
        raise frames.not_numbers(label, f"dtype {array.dtype}")
    if array.dtype.itemsize > 8:
        raise ValueError(
            f"{label} has dtype {array.dtype}, which float64 cannot hold: "
            "convert it with .astype(numpy.float64)"
        )
    if array.ndim == 0:
        raise ValueError(f"{label} must have an entry for each row, got the number {array}")
    if array.size == 0 and array.shape[0] > 0:
        raise ValueError(f"{label} has no columns: its shape is {array.shape}")
    return array


def _asarray(source: Any, label: str) -> NDArray[Any]:
    _refuse(source, label)
    frame = frames.as_frame(source)
    if frame is not None:
        return frame.matrix()
    if frames.is_series(source):
        return frames.read_series(source, label).values
    if isinstance(source, np.ma.MaskedArray):
        return _unmask(source)
    try:
        return np.asarray(source)
    except ValueError as error:
        raise ValueError(f"{label} is not a rectangular array of numbers: {error}") from error


def _unmask(source: Any) -> NDArray[Any]:
    """Masked entries are missing values: NaN."""
    values = np.asarray(source.data)
    mask = np.ma.getmaskarray(source)
    if not mask.any() or values.dtype.kind not in "biuf":
        return values
    return np.where(mask, np.nan, values)


def _refuse(source: Any, label: str) -> None:
    if hasattr(source, "nnz") and hasattr(source, "toarray"):
        raise ValueError(f"{label} is a sparse matrix: pass its .toarray()")
    iterable = hasattr(source, "__len__") or hasattr(source, "__array__")
    if not iterable or isinstance(source, NOT_ROWS):
        raise TypeError(
            f"{label} cannot be made from {type(source).__name__}: pass an array, a pair (X, y), "
            "a mapping of names to arrays, a pandas or polars frame, or an Arrow table"
        )


def _first_object(array: NDArray[Any], label: str) -> tuple[str, str]:
    """Where an object array holds something that is no number, and what."""
    for place, value in np.ndenumerate(array):
        if not isinstance(value, (int, float, np.number, np.bool_)):
            row, *columns = place
            column = f"column {columns[0]} of {label}" if columns else label
            return f"row {row}, {column}", f"the {type(value).__name__} {value!r}"
    return label, "dtype object (convert it with .astype(float))"
