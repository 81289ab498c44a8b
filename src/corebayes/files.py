"""Coresets as Parquet files: a plain table of rows and weights, and the rest as JSON beside it.

The table has the columns `row_id` and `weight`, then one for every feature, the target and
whatever other numbers a row has, and `count` where rows count more than once; any tool that
reads Parquet reads it. Model, trace and provenance are JSON under the key `corebayes` of the
schema's metadata, with a SHA-256 of that JSON and of every column. Nothing in a file is ever
executed, and a file that does not hold exactly what was written is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from corebayes.data import layout
from corebayes.data.atomic import write_atomically
from corebayes.data.frames import import_pyarrow
from corebayes.types import Block, Coreset, Model

FORMAT = 1
KEY = b"corebayes"

Columns = Mapping[str, NDArray[Any]]
Content = dict[str, Any]


class CorruptFile(ValueError):  # noqa: N818 - it is the file that is wrong, not the program
    """The file does not hold a coreset as `save` wrote it."""


def save(coreset: Coreset, path: str | os.PathLike[str]) -> None:
    """Write a coreset to a Parquet file, whole or not at all.

    Columns are called as `provenance["column_names"]` and `provenance["target_name"]` say, else
    x0, x1, … and y. A model without `config()` is saved by its name only: see `load`.
    """
    _check_points(coreset.indices, coreset.weights, coreset.num_rows)
    fields = layout.plan(
        coreset.rows,
        column_names=coreset.provenance.get("column_names") or (),
        target_name=coreset.provenance.get("target_name") or "y",
        reserved=("row_id", "weight", "count"),
    )
    columns: dict[str, NDArray[Any]] = {
        "row_id": coreset.indices.astype(np.int64),
        "weight": coreset.weights.astype(np.float64),
        **layout.flatten(coreset.rows, fields),
    }
    if coreset.rows.counts is not None:
        columns["count"] = coreset.rows.counts
    content: Content = {
        "format": FORMAT,
        "fields": [field._asdict() for field in fields],
        "model": _describe_model(coreset.model),
        "num_rows": coreset.num_rows,
        "total_count": coreset.total_count,
        "reason": coreset.reason,
        "trace": coreset.trace,
        "provenance": coreset.provenance,
    }
    write_atomically(path, _to_parquet(_plain(content, "coreset"), columns))


def load(path: str | os.PathLike[str], model: Model | None = None) -> Coreset:
    """Read a coreset back bit for bit, or raise `CorruptFile`.

    A model made of Python functions is not in the file, since files hold no code: pass it as
    `model`. Tuples and arrays in trace and provenance come back as lists, as JSON has them.
    """
    content, columns = _read(path)
    model = _rebuild_model(path, content.get("model"), model)
    try:
        fields = [
            layout.Field(field["name"], tuple(field["shape"]), tuple(field["columns"]))
            for field in content["fields"]
        ]
        coreset = Coreset(
            indices=columns["row_id"].astype(np.int64, casting="safe"),
            weights=columns["weight"].astype(np.float64, casting="safe"),
            rows=Block(layout.restore(columns, fields), columns.get("count")),
            model=model,
            num_rows=content["num_rows"],
            total_count=content["total_count"],
            reason=content["reason"],
            trace=tuple(content["trace"]),
            provenance=content["provenance"],
        )
        _check_points(coreset.indices, coreset.weights, coreset.num_rows)
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptFile(f"{path} does not hold a valid coreset: {error}") from error
    return coreset


def _check_points(indices: NDArray[Any], weights: NDArray[Any], num_rows: int) -> None:
    for number, weight in zip(indices.tolist(), weights.tolist(), strict=True):
        if not 0.0 <= weight < np.inf:
            raise ValueError(f"row {number} has the weight {weight}; weights are finite and ≥ 0")
        # Learned rows have negative numbers: they are none of the data's.
        if number >= num_rows:
            raise ValueError(f"row {number} is none of the rows 0 to {num_rows - 1}")


def _describe_model(model: Any) -> Content:
    config = getattr(model, "config", None)
    return {
        "name": type(model).__name__,
        "config": None if config is None else config(),
        "dim": model.dim,
    }


def _rebuild_model(path: Any, saved: Any, model: Model | None) -> Model:
    try:
        name, config, dim = str(saved["name"]), saved["config"], saved["dim"]
    except (KeyError, TypeError) as error:
        raise CorruptFile(f"{path} does not say which model it is for") from error
    if model is not None:
        if type(model).__name__ != name or model.dim != dim:
            raise ValueError(
                f"{path} is for a {name} with {dim} parameters, "
                f"not for a {type(model).__name__} with {model.dim}"
            )
        return model
    from corebayes.models import BUILT_IN, from_config

    if config is None or name not in BUILT_IN:
        raise ValueError(
            f"{path} is for a {name}, whose functions a file cannot hold: "
            "pass the model as well, load(path, model=...)"
        )
    try:
        return from_config(name, config)
    except Exception as error:
        raise CorruptFile(f"{path}: its model {name!r} cannot be made again: {error}") from error


def _to_parquet(content: Content, columns: Columns) -> memoryview:
    pyarrow, parquet = import_pyarrow(), import_pyarrow("pyarrow.parquet")
    content = {**content, "sha256": _digest(content, columns)}
    arrays = {name: _to_arrow(pyarrow, values) for name, values in columns.items()}
    table = pyarrow.table(arrays).replace_schema_metadata({KEY: json.dumps(content)})
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(
        table,
        sink,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
        write_page_checksum=True,
    )
    return memoryview(sink.getvalue())


def _to_arrow(pyarrow: Any, values: NDArray[Any]) -> Any:
    """Numbers by their bytes: `pyarrow.array` would import pandas, which takes seconds on a busy
    machine, and Ctrl-C waits for it."""
    if values.dtype.kind not in "iuf":
        return pyarrow.array(values)
    parts = [None, pyarrow.py_buffer(np.ascontiguousarray(values))]
    kind = pyarrow.from_numpy_dtype(values.dtype)
    return pyarrow.Array.from_buffers(kind, values.size, parts)


def _read(path: str | os.PathLike[str]) -> tuple[Content, Columns]:
    """JSON and columns of a file whose SHA-256 is right."""
    parquet = import_pyarrow("pyarrow.parquet")
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below; only this line may find no file
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no coreset file {path}") from None
    with file:
        if file.read(4) != b"PAR1":
            raise CorruptFile(f"{path} is not a Parquet file, so no coreset that `save` wrote")
        file.seek(0)
        # Whatever a damaged file makes the reader stumble over, it means the same to the caller.
        try:
            source = parquet.ParquetFile(file, page_checksum_verification=True)
            metadata: dict[bytes, bytes] = source.schema_arrow.metadata or {}
            if KEY not in metadata:
                raise CorruptFile(f"{path} is a Parquet file, but no coreset that `save` wrote")
            content = json.loads(metadata[KEY])
            table = source.read()
            columns = {name: table.column(name).to_numpy().copy() for name in table.column_names}
            written, version = content.pop("sha256"), int(content["format"])
            found = _digest(content, columns)
        except CorruptFile:
            raise
        except Exception as error:
            raise CorruptFile(f"{path} is damaged and cannot be read: {error}") from error
    if found != written:
        raise CorruptFile(f"{path} is damaged: its content does not match its SHA-256")
    if version > FORMAT:
        raise ValueError(
            f"{path} has the format {version}, and this version of corebayes reads up to "
            f"{FORMAT}: upgrade corebayes to load it"
        )
    return content, columns


def _digest(content: Content, columns: Columns) -> str:
    """SHA-256 of JSON and columns. The rule never changes, whatever the format."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode())
    for name, values in columns.items():
        little_endian = values.astype(values.dtype.newbyteorder("<"))
        digest.update(f"\n{name}\n{little_endian.dtype.str}\n{values.size}\n".encode())
        digest.update(little_endian.tobytes())
    return digest.hexdigest()


def _plain(value: Any, where: str) -> Any:
    """The value in the types JSON has; floats keep every bit."""
    if isinstance(value, np.ndarray | np.generic):
        value = cast(Any, value).tolist()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        entries = cast(Mapping[Any, Any], value).items()
        return {str(key): _plain(entry, f"{where}[{key!r}]") for key, entry in entries}
    if isinstance(value, list | tuple):
        entries = enumerate(cast("list[Any]", value))
        return [_plain(entry, f"{where}[{place}]") for place, entry in entries]
    raise TypeError(f"{where} cannot be saved: JSON has no {type(value).__name__}")
