"""What a pass was asked, as a hash: the same question has the same hash in every process."""

from __future__ import annotations

import dataclasses
import hashlib
import struct
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from corebayes.scan.passes import Pass, Shard


def pass_digest(work: Pass, shards: Sequence[Shard]) -> str:
    """Of the query, the rows it goes to and the rows of a block; not of data and model, which are
    compared once for the whole run (identity.py)."""
    hasher = hashlib.blake2b(digest_size=16)
    _add(hasher, work.query)
    _add(hasher, work.block_rows)
    for shard in shards:
        _add(hasher, tuple(shard))
    return hasher.hexdigest()


def _add(hasher: Any, value: Any) -> None:
    """Types by name, numbers bit for bit, containers entry by entry."""
    hasher.update(type(value).__qualname__.encode() + b"\0")
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(cast(Any, value))
        hasher.update(f"{array.dtype.str}{array.shape}".encode())
        if array.dtype != object:
            hasher.update(np.ascontiguousarray(array).tobytes())
    elif isinstance(value, float):
        hasher.update(struct.pack("<d", value))
    elif value is None or isinstance(value, bool | int | str | bytes):
        hasher.update(repr(value).encode() + b"\0")
    elif isinstance(value, Mapping):
        entries = cast(Mapping[Any, Any], value)
        for key in sorted(entries, key=repr):
            _add(hasher, key)
            _add(hasher, entries[key])
    elif isinstance(value, tuple | list):
        for item in cast("list[Any]", value):
            _add(hasher, item)
    elif dataclasses.is_dataclass(value) and not _is_model(value):
        for field in dataclasses.fields(value):
            if field.init:
                _add(hasher, getattr(value, field.name))
    elif callable(value):
        hasher.update(str(getattr(value, "__qualname__", "")).encode())


def _is_model(value: Any) -> bool:
    return hasattr(value, "potentials") and hasattr(value, "log_prior")
