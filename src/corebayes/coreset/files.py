"""Coresets as Parquet files: a plain table of rows and weights, and the rest as JSON beside it.

The table has the columns `row_id` and `weight`, then one for every feature, the target and
whatever other numbers a row has, and `count` where rows count more than once; any tool that
reads Parquet reads it. Rows that are only in the reserve have the weight zero, and there is a
column `reserve_weight`. Model, trace, provenance and what a reserve misses are JSON under the key
`corebayes` of the schema's metadata, with a SHA-256 of that JSON and of every column. Nothing in a
file is ever executed, and a file that does not hold exactly what was written is refused. The sum
has no key: it tells accidents, not forgeries, so what is loaded is checked like anything that a
stranger wrote.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from corebayes.coreset.missed import read_missed
from corebayes.data import layout
from corebayes.data.footer import FOOTER_SHARE, check_pages, footer_bytes
from corebayes.data.frames import import_pyarrow
from corebayes.data.limits import FileLimitError, as_limit, check_within
from corebayes.files.atomic import write_atomically
from corebayes.files.reading import check_regular, first_line, printable
from corebayes.models import BUILT_IN, UNITS, MixedRegression, from_config
from corebayes.types import Block, Model, WeightedPoints

FORMAT = 1
KEY = b"corebayes"
# Names of columns that no feature can have in a file.
RESERVED = ("row_id", "weight", "count", "reserve_weight")
# Columns in memory at once beside the table: as decoded, as bytes, and as part of a field.
COPIES_OF_A_COLUMN = 3
# A prior and its covariance hold so many d × d matrices.
PRIOR_MATRICES = 4
# Bytes for each list and object in the JSON: steps of the trace, rows of a covariance.
CONTAINER_BYTES = 1000

# Models that a file can hold.
REBUILT = (*BUILT_IN, MixedRegression.__name__, UNITS)

Columns = Mapping[str, NDArray[Any]]
Content = dict[str, Any]


class CorruptFile(ValueError):  # noqa: N818 - it is the file that is wrong, not the program
    """The file does not hold a coreset as `save` wrote it."""


def write_coreset(coreset: Any, path: str | os.PathLike[str]) -> None:
    """Write a checked coreset to a Parquet file, whole or not at all.

    Columns are called as `provenance["column_names"]` and `provenance["target_name"]` say, else
    x0, x1, … and y. A model without `config()` is saved by its name only: see `load`.
    """
    points, reserve_weights = _with_reserve(coreset)
    fields = layout.plan(
        points.rows,
        column_names=coreset.provenance.get("column_names") or (),
        target_name=coreset.provenance.get("target_name") or "y",
        reserved=RESERVED,
    )
    columns: dict[str, NDArray[Any]] = {
        "row_id": points.indices.astype(np.int64),
        "weight": points.weights.astype(np.float64),
        **layout.flatten(points.rows, fields),
    }
    if points.rows.counts is not None:
        columns["count"] = points.rows.counts
    if reserve_weights is not None:
        columns["reserve_weight"] = reserve_weights
    content: Content = {
        "format": FORMAT,
        "fields": [field._asdict() for field in fields],
        "model": describe_model(coreset.model),
        "num_rows": coreset.num_rows,
        "total_count": coreset.total_count,
        "reason": coreset.reason,
        "trace": coreset.trace,
        "provenance": coreset.provenance,
    }
    if reserve_weights is not None and coreset.missed is not None:
        content["missed"] = coreset.missed.stored()
    write_atomically(path, _to_parquet(plain_json(content, "coreset"), columns))


def read_coreset(
    path: str | os.PathLike[str], model: Model | None, limit: str | int | None
) -> dict[str, Any]:
    """The arguments of a `Coreset`, as the file has them; see `load`."""
    num_bytes = as_limit(limit)
    content, columns = _read(path, num_bytes)
    model = rebuild_model(path, content.get("model"), model, num_bytes)
    try:
        fields = _fields(content["fields"], columns)
        points = WeightedPoints(
            columns["row_id"].astype(np.int64, casting="safe"),
            Block(layout.restore(columns, fields), columns.get("count")),
            columns["weight"].astype(np.float64, casting="safe"),
        )
        reserve = None
        if "reserve_weight" in columns:
            weights = columns["reserve_weight"].astype(np.float64, casting="safe")
            ordered = points.at(weights).take(np.argsort(points.indices))
            reserve, points = ordered.nonzero(), points.nonzero()
        return {
            "indices": points.indices,
            "weights": points.weights,
            "rows": points.rows,
            "reserve": reserve,
            "missed": read_missed(content.get("missed")),
            "model": model,
            "num_rows": content["num_rows"],
            "total_count": content["total_count"],
            "reason": content["reason"],
            "trace": tuple(content["trace"]),
            "provenance": content["provenance"],
        }
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CorruptFile(f"{path} does not hold a valid coreset: {first_line(error)}") from error


def _with_reserve(coreset: Any) -> tuple[WeightedPoints, NDArray[Any] | None]:
    """All rows of the file with their weights, and their weights in the reserve."""
    points, reserve = coreset.points, coreset.reserve
    if reserve is None:
        return points, None
    more = np.flatnonzero(~np.isin(reserve.indices, points.indices))
    others = reserve.take(more)
    both = points.append(others.at(np.zeros(more.size)))
    known = dict(zip(reserve.indices.tolist(), reserve.weights.tolist(), strict=True))
    return both, np.array([known.get(number, 0.0) for number in both.indices.tolist()])


def _fields(described: Any, columns: Columns) -> list[layout.Field]:
    """The fields of the rows; together they have every column of the table once."""
    fields = [
        layout.Field(field["name"], tuple(field["shape"]), tuple(field["columns"]))
        for field in described
    ]
    names = [name for field in fields for name in field.columns]
    others = {"row_id", "weight", *({"count", "reserve_weight"} & columns.keys())}
    if len(names) != len(columns) - len(others) or {*names, *others} != set(columns):
        raise ValueError("its fields are not made of the columns that it has, each once")
    if len({field.name for field in fields}) < len(fields):
        raise ValueError("two fields have the same name")
    for field in fields:
        whole = all(type(length) is int and length > 0 for length in field.shape)
        if not whole or math.prod(field.shape) != len(field.columns):
            raise ValueError(f"{len(field.columns):,} columns do not make the shape of a field")
    return fields


def describe_model(model: Any) -> Content:
    config = getattr(model, "config", None)
    return {
        "name": type(model).__name__,
        "config": None if config is None else config(),
        "dim": model.dim,
    }


def rebuild_model(path: Any, saved: Any, model: Model | None, limit: int) -> Model:
    try:
        name, config, dim = str(saved["name"])[:100], saved["config"], saved["dim"]
        if type(dim) is not int or not 1 <= dim < 2**53:
            raise TypeError("dim")
    except (KeyError, TypeError) as error:
        raise CorruptFile(f"{path} does not say which model it is for") from error
    if model is not None:
        if type(model).__name__ != name or model.dim != dim:
            raise ValueError(
                f"{path} is for a {printable(name)} with {dim} parameters, "
                f"not for a {type(model).__name__} with {model.dim}"
            )
        return model
    if config is None or name not in REBUILT:
        raise ValueError(
            f"{path} is for a {printable(name)}, whose functions a file cannot hold: "
            "pass the model as well, load(path, model=...)"
        )
    try:
        # The prior of a mixed model has matrices of the fixed effects alone.
        mixed = name == MixedRegression.__name__
        num_names = len(config["columns" if mixed else "names"])
        what = f"{path} has a model of {num_names if mixed else dim:,} parameters"
        check_within(limit, 8 * PRIOR_MATRICES * (num_names if mixed else dim) ** 2, what)
        regression = config["family"]["config"] if mixed else config
        if type(regression.get("intercept", False)) is not bool:
            raise ValueError("its intercept is neither there nor not")
        made = from_config(name, config) if mixed or num_names == dim else None
        if made is None or made.dim != dim:
            raise ValueError(f"it does not have the {dim:,} names of its parameters")
        return made
    except FileLimitError:
        raise
    except Exception as error:
        raise CorruptFile(
            f"{path}: its model {name!r} cannot be made again: {first_line(error)}"
        ) from error


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


def _read(path: str | os.PathLike[str], limit: int) -> tuple[Content, Columns]:
    """JSON and columns of a file whose SHA-256 is right."""
    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no coreset file {path}")
    check_regular(path)
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder, and no coreset file")
    with open(path, "rb") as file:
        if file.read(4) != b"PAR1":
            raise CorruptFile(f"{path} is not a Parquet file, so no coreset that `save` wrote")
        # Whatever a damaged file makes the reader stumble over, it means the same to the caller.
        try:
            source = _opened(path, file, limit)
            content = _parsed(path, source.schema_arrow.metadata[KEY], limit)
            written, version = content.pop("sha256"), int(content["format"])
            columns = _decoded(source)
            found = _digest(content, columns)
        except (CorruptFile, FileLimitError, ImportError):
            raise
        except Exception as error:
            raise CorruptFile(
                f"{path} is damaged and cannot be read: {first_line(error)}"
            ) from error
    if found != written:
        raise CorruptFile(f"{path} is damaged: its content does not match its SHA-256")
    if version > FORMAT:
        raise ValueError(
            f"{path} has the format {version!s:.20}, and this version of corebayes reads up to "
            f"{FORMAT}: upgrade corebayes to load it"
        )
    return content, columns


def _opened(path: Any, file: BinaryIO, limit: int) -> Any:
    """The file with its footer parsed, if all that it announces fits within the limit."""
    length = footer_bytes(file)
    check_within(limit, FOOTER_SHARE * length, f"{path} has a footer of {length:,} bytes")
    check_pages(file)
    file.seek(0)
    parquet = import_pyarrow("pyarrow.parquet")
    source = parquet.ParquetFile(file, page_checksum_verification=True)
    if KEY not in (source.schema_arrow.metadata or {}):
        raise CorruptFile(f"{path} is a Parquet file, but no coreset that `save` wrote")
    kinds = import_pyarrow().types
    for column in source.schema_arrow:
        kind = column.type
        if not (kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)):
            raise ValueError(f"a column holds {printable(str(kind))[:100]}, not numbers")
    rows, columns = source.metadata.num_rows, source.metadata.num_columns
    what = f"{path} has {rows:,} rows of {columns:,} columns"
    check_within(limit, 8 * rows * (columns + COPIES_OF_A_COLUMN), what)
    groups = [source.metadata.row_group(k).num_rows for k in range(source.num_row_groups)]
    if min(groups, default=0) < 0 or sum(groups) != rows:
        raise ValueError("its row groups do not have as many rows as it says")
    return source


def _parsed(path: Any, text: bytes, limit: int) -> Content:
    """The JSON, if it is of the kind that `save` writes."""
    containers = text.count(b"[") + text.count(b"{")
    what = f"{path} has {containers:,} lists and objects in its JSON"
    check_within(limit, CONTAINER_BYTES * containers, what)
    content = json.loads(text, object_pairs_hook=_without_repeats)
    if not isinstance(content, dict):
        raise ValueError("its JSON is no object")
    return cast(Content, content)


def _without_repeats(pairs: list[tuple[str, Any]]) -> Content:
    """Of two entries of one name readers take either, so the sum would be of something else."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("its JSON has two entries of one name")
    return entries


def _decoded(source: Any) -> Columns:
    """The columns, one at a time, so that little is held twice."""
    names: list[str] = source.schema_arrow.names
    if len(set(names)) < len(names):
        raise ValueError("two columns have the same name")
    columns: dict[str, NDArray[Any]] = {}
    for name in names:
        columns[name] = source.read(columns=[name], use_threads=False).column(0).to_numpy().copy()
        if columns[name].size != source.metadata.num_rows:
            raise ValueError("a column does not have as many rows as the file says")
    return columns


def _digest(content: Content, columns: Columns) -> str:
    """SHA-256 of JSON and columns. The rule never changes, whatever the format."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode())
    for name, values in columns.items():
        little_endian = values.astype(values.dtype.newbyteorder("<"))
        digest.update(f"\n{name}\n{little_endian.dtype.str}\n{values.size}\n".encode())
        digest.update(little_endian.tobytes())
    return digest.hexdigest()


def plain_json(value: Any, where: str) -> Any:
    """The value in the types JSON has; floats keep every bit."""
    if isinstance(value, np.ndarray | np.generic):
        value = cast(Any, value).tolist()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        entries = cast(Mapping[Any, Any], value).items()
        return {str(key): plain_json(entry, f"{where}[{key!r}]") for key, entry in entries}
    if isinstance(value, list | tuple):
        entries = enumerate(cast("list[Any]", value))
        return [plain_json(entry, f"{where}[{place}]") for place, entry in entries]
    raise TypeError(f"{where} cannot be saved: JSON has no {type(value).__name__}")
