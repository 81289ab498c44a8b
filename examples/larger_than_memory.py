"""Rows that never are in memory as a whole: Parquet files, read part by part in every pass."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import corebayes as cb

NUM_ROWS, NUM_FILES = int(os.environ.get("ROWS", 10_000_000)), 5

with tempfile.TemporaryDirectory() as folder:
    for part in range(NUM_FILES):
        rng = np.random.default_rng(part)
        columns = {name: rng.normal(size=NUM_ROWS // NUM_FILES) for name in ("heat", "age", "load")}
        fault = 0.9 * columns["heat"] - 0.4 * columns["age"] - 2.0
        columns["failed"] = rng.random(fault.size) < 1 / (1 + np.exp(-fault))
        path = Path(folder) / f"part-{part}.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=max(fault.size // 10, 1))
    total = sum(path.stat().st_size for path in Path(folder).iterdir())
    print(f"{NUM_ROWS:,} rows in {NUM_FILES} files of {total / 1e6:,.0f} MB in all")

    source, columns = f"{folder}/*.parquet", {"target": "failed"}
    model = cb.LogisticRegression(intercept=True)
    coreset = cb.build(model, source, size=20, seed=0, memory="2GB", **columns)
    passes, seconds = (coreset.provenance[name] for name in ("passes", "seconds"))
    print(f"{coreset.size} of them after {passes:.1f} passes in {seconds:.1f} s\n")
    print(cb.certify(coreset, source, memory="2GB", **columns))
