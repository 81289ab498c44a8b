"""Rows that do not fit: time, memory and workers on Parquet files.

    python -m benchmarks.scale [--rows 1000000 10000000]

Ten float64 columns and a logistic target are generated into a temporary folder, which is deleted
afterwards. Every build runs in a process of its own whose private memory is capped (RLIMIT_DATA)
and reports its peak resident memory. The limit counts what is reserved and not only what is used,
so there Arrow takes the system's allocator, whose reserve is small. Engines are compared by passes
without a cap, in turns, since machines have slow spells: the best of them counts. Free cores are
needed for the figures of several workers to mean anything.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

DIM = 10
ROW_GROUP = 131_072
CAP_MEGABYTES = 600
# Without these a gigabyte is reserved before the first row is read.
SMALL_RESERVE = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "OPENBLAS_NUM_THREADS": "1",
}


def generate(folder: Path, num_rows: int, seed: int = 0) -> Path:
    """Files of at most a million rows, one row group in memory at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = folder / f"rows-{num_rows}"
    rows.mkdir()
    rng = np.random.default_rng(seed)
    theta = np.linspace(-1.0, 1.0, DIM)
    for file, first in enumerate(range(0, num_rows, 8 * ROW_GROUP)):
        writer = None
        for start in range(first, min(first + 8 * ROW_GROUP, num_rows), ROW_GROUP):
            size = min(ROW_GROUP, num_rows - start)
            X = rng.standard_normal((size, DIM))
            y = (rng.random(size) < 1.0 / (1.0 + np.exp(-X @ theta))).astype(float)
            table = pa.table({**{f"x{k}": X[:, k] for k in range(DIM)}, "delayed": y})
            writer = writer or pq.ParquetWriter(rows / f"{file:04}.parquet", table.schema)
            writer.write_table(table)
        assert writer is not None
        writer.close()
    return rows


def measure(rows: str, engine: str, what: str) -> None:
    """One build, or passes alone, in this process; prints a line of JSON."""
    if what == "build":
        limit = CAP_MEGABYTES * 10**6
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    import corebayes as cb

    began = time.perf_counter()
    with make_executor(engine) as executor:
        result = build(rows, executor) if what == "build" else passes(rows, executor)
    result["total"] = time.perf_counter() - began
    result["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    result["version"] = cb.__version__
    print(json.dumps(result))


def build(rows: str, executor: Any) -> dict[str, Any]:
    import corebayes as cb

    began = time.perf_counter()
    coreset = cb.build(
        cb.LogisticRegression(),
        rows,
        target="delayed",
        size=100,
        memory=f"{CAP_MEGABYTES}MB",
        executor=executor,
    )
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "passes": coreset.provenance["passes"], "size": coreset.size}


def passes(rows: str, executor: Any, number: int = 3) -> dict[str, Any]:
    """The best of a few passes at 100 draws, after one that starts the workers."""
    import corebayes as cb
    from corebayes.rows import open_rows
    from corebayes.scan.inline import Inline
    from corebayes.scan.query import Totals, scan
    from corebayes.tangent.monte_carlo import MonteCarloSpace

    data = open_rows(rows, target="delayed")
    model = cb.LogisticRegression().with_names(data.column_names)
    draws = np.random.default_rng(0).normal(size=(100, DIM))
    query = Totals(MonteCarloSpace(model, draws))
    seconds: list[float] = []
    for _ in range(1 + number):
        began = time.perf_counter()
        answer = scan(query, data, executor or Inline())
        seconds.append(time.perf_counter() - began)
    return {"seconds": min(seconds[1:]), "bits": answer.total.tobytes().hex()}


def make_executor(engine: str) -> Any:
    import contextlib

    import corebayes as cb

    kind, _, number = engine.partition(":")
    if kind == "inline":
        return contextlib.nullcontext()
    if kind == "processes":
        return cb.processes(int(number))
    return DaskCluster(int(number))


class DaskCluster:
    """A local Dask cluster, as an executor in a `with` block."""

    def __init__(self, num_workers: int) -> None:
        self.num_workers = num_workers

    def __enter__(self) -> Any:
        from distributed import Client, LocalCluster

        import corebayes as cb

        self.cluster = LocalCluster(
            n_workers=self.num_workers, threads_per_worker=1, dashboard_address=":0"
        )
        self.client = Client(self.cluster)
        return cb.dask(self.client)

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.cluster.close()


def run(rows: Path, engine: str, what: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.scale", "--measure", str(rows), engine, what]
    environment = os.environ | (SMALL_RESERVE if what == "build" else {})
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    if result.returncode:
        raise SystemExit(f"{what} on {engine} failed:\n{result.stderr[-3000:]}")
    return json.loads(result.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(*arguments.measure)
        return
    builds: dict[int, dict[str, Any]] = {}
    engines: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="corebayes-scale-") as folder:
        rows = Path()
        for num_rows in sorted(arguments.rows):
            rows = generate(Path(folder), num_rows)
            builds[num_rows] = run(rows, "inline", "build")
        # On the most rows: a pass of a second says more about schedulers than about the work.
        for engine in 2 * ("inline", "processes:1", "processes:2", "dask:2"):
            result = run(rows, engine, "passes")
            if engine not in engines or result["seconds"] < engines[engine]["seconds"]:
                engines[engine] = result
    report(builds, engines)


def report(builds: dict[int, dict[str, Any]], engines: dict[str, dict[str, Any]]) -> None:
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f}; heap capped at {CAP_MEGABYTES} MB")
    print(f"{'default build':>16} {'seconds':>9} {'passes':>8} {'peak MB':>9} {'points':>7}")
    for num_rows, result in builds.items():
        print(
            f"{num_rows:16,} {result['seconds']:9.1f} {result['passes']:8.2f} "
            f"{result['peak']:9.0f} {result['size']:7}"
        )
    print(f"{'one pass':>16} {'seconds':>9}")
    for engine, result in engines.items():
        print(f"{engine:>16} {result['seconds']:9.2f}")
    sizes = sorted(builds)
    first, last = builds[sizes[0]], builds[sizes[-1]]
    one, two = engines["processes:1"]["seconds"], engines["processes:2"]["seconds"]
    ratio = engines["dask:2"]["seconds"] / two
    checks = [
        (
            f"peak within {CAP_MEGABYTES} MB",
            max(r["peak"] for r in builds.values()) < CAP_MEGABYTES,
        ),
        ("at most 7 passes", max(r["passes"] for r in builds.values()) <= 7.0),
        ("the same bits on every engine", len({r["bits"] for r in engines.values()}) == 1),
        (f"2 workers at least 1.6 times faster than 1: {one / two:.2f}", one / two >= 1.6),
        (f"Dask within 1.3 times of the process pool: {ratio:.2f}", ratio <= 1.3),
    ]
    if len(sizes) > 1:
        growth = last["peak"] / first["peak"] - 1.0
        slope = (last["seconds"] / first["seconds"]) / (sizes[-1] / sizes[0])
        checks += [
            (f"peak grows by less than 5 %: {100 * growth:.1f} %", growth < 0.05),
            (f"time at most linear in N: {slope:.2f} of it", slope <= 1.1),
        ]
    for text, good in checks:
        print(f"    {'pass' if good else 'FAIL'}  {text}")
    raise SystemExit(0 if all(good for _, good in checks) else 1)


if __name__ == "__main__":
    main()
