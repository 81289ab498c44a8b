"""What makes a run the run that it is: answers of one are worth nothing to another."""

from __future__ import annotations

import dataclasses
import hashlib
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from corebayes.checkpoint.store import CheckpointError
from corebayes.coreset import Coreset
from corebayes.files.reading import printable
from corebayes.scan.passes import Pass, Shard
from corebayes.types import Data, Model
from corebayes.version import __version__

ROWS_TRIED, DRAWS_TRIED = 5, 3
# Values of the model that differ by less come from another machine's arithmetic.
SAME = 1e-6

Identity = dict[str, Any]


def run_identity(
    *,
    model: Model,
    data: Data,
    method: Any,
    seed: int,
    sizes: Sequence[int | None],
    tol: float | None,
    memory: int | None,
    start: Coreset | None,
) -> Identity:
    """Everything that decides what the passes of a run are asked and answer, as plain JSON.

    The model, bound to its data, counts by what it is called and by its values at a few draws and
    rows, since functions cannot be compared. Cost: the data's fingerprint.
    """
    return {
        "corebayes": __version__,
        "data": _data_described(data),
        "data fingerprint": data.fingerprint(),
        "model": _written(model),
        "model values": _values(model, data),
        "method": _written(method),
        "seed": seed,
        "size": list(sizes),
        "tol": tol,
        "memory": memory,
        "start": None if start is None else points_digest(start),
    }


def check_same(folder: Any, ours: Identity, saved: Any) -> None:
    """A refusal that names everything that differs."""
    saved = cast(Identity, saved) if isinstance(saved, dict) else {}
    differences = [
        _difference(name, saved.get(name), value)
        for name, value in ours.items()
        if not _same(name, saved.get(name), value)
    ]
    if differences:
        raise CheckpointError(
            f"the checkpoint {folder} is of another run: {'; '.join(differences)}. Make the call "
            "that began it, name another folder, or delete this one to start again"
        )


def _same(name: str, saved: Any, ours: Any) -> bool:
    if name != "model values":
        return saved == ours
    if not isinstance(saved, list) or len(cast("list[Any]", saved)) != len(ours):
        return False
    return bool(np.allclose(cast("list[float]", saved), ours, rtol=SAME, atol=0.0, equal_nan=True))


def _difference(name: str, saved: Any, ours: Any) -> str:
    if name == "data fingerprint":
        return "the rows of the data, their order or their columns changed"
    if name == "model values":
        return "the model's log-likelihood or prior has other values"
    return f"{name} was {_short(saved)} and is {_short(ours)}"


def _short(value: Any) -> str:
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    text = ", ".join(str(item) for item in items)
    return printable(text if len(text) <= 300 else text[:297] + "…")


def _data_described(data: Data) -> str:
    columns = ", ".join(data.column_names)
    return f"{data.num_rows} rows counting {data.total_count:g}" + (columns and f" of {columns}")


def _written(value: Any) -> str:
    """How it writes itself, without addresses in memory, which differ from run to run."""
    return re.sub(r"( object)? at 0x[0-9a-fA-F]+", "", repr(value))


def _values(model: Model, data: Data) -> list[float]:
    draws = 0.1 * np.random.default_rng(0).standard_normal((DRAWS_TRIED, model.dim))
    rows = data.take(np.arange(min(ROWS_TRIED, data.num_rows)))
    with np.errstate(all="ignore"):
        values = [model.potentials(draws, rows).ravel(), model.log_prior(draws)]
    return np.concatenate(values).astype(float).tolist()


def points_digest(coreset: Coreset) -> str:
    """What tells the weighted rows of a coreset from others."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(np.ascontiguousarray(coreset.indices).tobytes())
    digest.update(np.ascontiguousarray(coreset.weights).tobytes())
    return f"{coreset.size} rows, {digest.hexdigest()}"


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
