"""A small coreset, its file, and files that a person could forge."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corebayes.coreset import Coreset, files
from corebayes.models import (
    CustomModel,
    LogisticRegression,
    Normal,
)
from corebayes.rows import open_rows

rng = np.random.default_rng(4)
FEATURES = rng.standard_normal((50, 3))
LABELS = rng.integers(0, 2, 50)
INDICES = np.array([41, 7, 19])


def make_coreset(model=None, data=None, **changes) -> Coreset:
    data = open_rows((FEATURES, LABELS), counts=np.arange(50)) if data is None else data
    model = LogisticRegression(intercept=True, prior=Normal()) if model is None else model
    coreset = Coreset(
        indices=INDICES,
        weights=np.array([0.1, 1e-300, 123456.789]),
        rows=data.take(INDICES),
        model=model.bind(data),
        num_rows=data.num_rows,
        total_count=data.total_count,
        reason="size",
        trace=({"step": 1, "kl": 0.25}, {"step": 2, "kl": None}),
        provenance={"seed": 3, "data": data.fingerprint()},
    )
    return replace(coreset, **changes)


def custom_model() -> CustomModel:
    return CustomModel(
        lambda draws, block: -0.5 * (block["z"][:, :1] - draws[:, 0]) ** 2,
        lambda draws: -0.5 * draws[:, 0] ** 2,
        dim=1,
    )


def assert_same_bits(one: np.ndarray, other: np.ndarray):
    assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


def assert_same(one: Coreset, other: Coreset):
    assert_same_bits(one.indices, other.indices)
    assert_same_bits(one.weights, other.weights)
    assert list(one.rows.fields) == list(other.rows.fields)
    for name in one.rows.fields:
        assert_same_bits(one.rows[name], other.rows[name])
    assert (one.rows.counts is None) == (other.rows.counts is None)
    if one.rows.counts is not None:
        assert_same_bits(one.rows.counts, other.rows.counts)
    assert (one.num_rows, one.total_count) == (other.num_rows, other.total_count)
    assert (one.reason, one.trace) == (other.reason, other.trace)
    assert one.provenance == other.provenance
    assert type(one.model) is type(other.model)
    if hasattr(one.model, "config"):
        assert one.model.config() == other.model.config()


def saved(tmp_path: Path, coreset: Coreset | None = None) -> Path:
    path = tmp_path / "coreset.parquet"
    (coreset or make_coreset()).save(path)
    return path


def rewrite(path: Path, *, digest: bool = True, columns=None, **changes) -> None:
    """What a person with the source could write: other content, with the SHA-256 made anew."""
    table = pq.read_table(path)
    content = {**json.loads(table.schema.metadata[b"corebayes"]), **changes}
    arrays = {name: table.column(name).to_numpy() for name in table.column_names}
    arrays.update(columns or {})
    content.pop("sha256")
    if digest:
        content["sha256"] = files._digest(content, arrays)
    metadata = {b"corebayes": json.dumps(content).encode()}
    pq.write_table(pa.table(arrays).replace_schema_metadata(metadata), path)
