"""Answers of passes as bytes and back, without pickle: nothing in the bytes can run.

An answer is numbers, arrays and a few known containers of them. Its structure becomes JSON in which
every container is a list that begins with its name; the arrays follow as raw bytes. What is not
known is not encoded, and names that are not known are not decoded.

    8 bytes: length of the JSON | JSON | the arrays, one after the other
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from corebayes.models.families.linear import LinearStatistics
from corebayes.models.gaussian import MeanStatistics
from corebayes.scan.query import Best, Slopes, Sums
from corebayes.scan.telling import Telling
from corebayes.types import Block, Estimate, Gaussian, Points, Total

# Named tuples that may be in an answer.
KNOWN: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        Best,
        Estimate,
        Gaussian,
        LinearStatistics,
        MeanStatistics,
        Points,
        Slopes,
        Sums,
        Telling,
        Total,
    )
}
DTYPES = ("<f8", "<f4", "<i8", "<i4", "<u8", "|b1")
LENGTH = struct.Struct("<Q")
# Answers are a few containers of arrays. Lists within lists take thirty times their JSON in memory.
MAX_STRUCTURE = 1 << 20
# What wrong bytes make of a decoder.
DAMAGE = (ArithmeticError, LookupError, RecursionError, TypeError, ValueError)


class NotEncodable(TypeError):  # noqa: N818 - no error of the program's: the answer is not kept
    """The answer has something in it that is neither a number, an array nor a known container."""


def encode(value: Any) -> bytes:
    """The value as bytes; `NotEncodable` for what is not known."""
    arrays: list[NDArray[Any]] = []
    structure = json.dumps(_structure(value, arrays), separators=(",", ":")).encode()
    if len(structure) > MAX_STRUCTURE:
        raise NotEncodable(f"an answer of {len(structure):,} bytes of JSON is not kept")
    return b"".join([LENGTH.pack(len(structure)), structure, *(_raw(array) for array in arrays)])


def decode(content: bytes) -> Any:
    """The value that was encoded, bit for bit; ValueError for bytes that `encode` never wrote."""
    try:
        (length,) = LENGTH.unpack_from(content)
        first = LENGTH.size + length
        if length > MAX_STRUCTURE:
            raise ValueError(f"{length:,} bytes of JSON")
        structure = json.loads(content[LENGTH.size : first])
        value, end = _value(structure, content, first)
    except (*DAMAGE, struct.error) as error:
        raise ValueError(f"these bytes are no answer of a pass: {error}") from error
    if end != len(content):
        raise ValueError("these bytes are no answer of a pass: there are too many of them")
    return value


def _structure(value: Any, arrays: list[NDArray[Any]]) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return _array_structure(cast(Any, value), arrays)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Block):
        return ["Block", _structure(dict(value.fields), arrays), _structure(value.counts, arrays)]
    if isinstance(value, Mapping):
        entries = cast(Mapping[Any, Any], value).items()
        return ["dict", *([str(key), _structure(item, arrays)] for key, item in entries)]
    if isinstance(value, tuple | list):
        items = cast("list[Any]", value)
        name = type(items).__name__
        if type(items) in (tuple, list) or KNOWN.get(name) is type(items):
            return [name, *(_structure(item, arrays) for item in items)]
    raise NotEncodable(f"{type(cast(Any, value)).__qualname__} is not kept in checkpoints")


def _array_structure(value: NDArray[Any], arrays: list[NDArray[Any]]) -> list[Any]:
    array = np.asarray(value)
    if array.dtype.str not in DTYPES:
        raise NotEncodable(f"arrays of {array.dtype} are not kept in checkpoints")
    # A product of matrices may round differently in another order of memory.
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    arrays.append(array)
    name = "scalar" if isinstance(value, np.generic) else "array"
    return [name, array.dtype.str, list(array.shape), order]


def _raw(array: NDArray[Any]) -> bytes:
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    return array.tobytes(order)


def _value(structure: Any, content: bytes, place: int) -> tuple[Any, int]:
    """The value, and where the next array begins."""
    if not isinstance(structure, list):
        if isinstance(structure, dict):
            raise ValueError("an object is where a list should be")
        return structure, place
    name, *parts = cast("list[Any]", structure)
    if name in ("array", "scalar"):
        return _array(name, *parts, content=content, place=place)
    if name == "dict":
        entries: dict[str, Any] = {}
        for key, part in parts:
            entries[str(key)], place = _value(part, content, place)
        return entries, place
    items: list[Any] = []
    for part in parts:
        item, place = _value(part, content, place)
        items.append(item)
    if name == "list":
        return items, place
    if name == "tuple":
        return tuple(items), place
    if name == "Block":
        fields, counts = items
        return Block(dict(fields), counts), place
    return KNOWN[name](*items), place


def _array(
    name: str, dtype: Any, shape: Any, order: Any, *, content: bytes, place: int
) -> tuple[Any, int]:
    if dtype not in DTYPES or order not in ("C", "F") or any(length < 0 for length in shape):
        raise ValueError(f"an array of {dtype} and shape {shape}")
    size = int(np.prod(shape, dtype=object))
    end = place + size * np.dtype(dtype).itemsize
    if end > len(content):
        raise ValueError("an array ends after the last byte")
    flat = np.frombuffer(content, dtype=dtype, count=size, offset=place)
    # A copy of its own is aligned and can be written to, as the answer was.
    array = flat.reshape(shape, order=order).copy(order)
    return (array[()] if name == "scalar" else array), end
