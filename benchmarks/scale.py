"""Rows that do not fit: CPU, rows decoded, memory and workers on Parquet files.

    python -m benchmarks.scale [--against ../corebayes-0.1.0/src] [--engines]

Float64 columns and a logistic target are generated into a temporary folder, which is deleted
afterwards. Every figure comes from a process of its own; CPU seconds are compared within one run,
beside one plain pyarrow read of the same row groups one by one, since machines have slow spells.
`--against` also builds with an earlier version's source. `--engines` compares passes on threads,
processes and Dask, for which free cores are needed.
"""

from __future__ import annotations

import argparse
import contextlib
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

BUDGET = 400


def generate(path: Path, num_rows: int, dim: int = 10, group: int = 131_072) -> Path:
    """One file, one row group in memory at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    theta = np.linspace(-1.0, 1.0, dim)
    writer = None
    for start in range(0, num_rows, max(group, 100_000)):
        size = min(max(group, 100_000), num_rows - start)
        X = rng.standard_normal((size, dim))
        y = (rng.random(size) < 1.0 / (1.0 + np.exp(-X @ theta))).astype(float)
        table = pa.table({**{f"x{k}": X[:, k] for k in range(dim)}, "delayed": y})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=group)
    assert writer is not None
    writer.close()
    return path


def plain(rows: str) -> dict[str, Any]:
    """All row groups one by one, as pyarrow reads them; its import is not counted."""
    import pyarrow.parquet as pq

    began = time.process_time()
    file = pq.ParquetFile(rows)
    for group in range(file.num_row_groups):
        file.read_row_group(group)
    return {"cpu": time.process_time() - began}


def build(rows: str, size: str = "100", memory: str = "") -> dict[str, Any]:
    import pyarrow.parquet  # noqa: F401, not counted, as in `plain`

    import corebayes as cb

    began = time.process_time()
    coreset = cb.build(
        cb.LogisticRegression(prior=cb.Normal()),
        rows,
        target="delayed",
        size=int(size),
        memory=memory or None,
    )
    found = {"cpu": time.process_time() - began, "passes": coreset.provenance["passes"]}
    decoded = coreset.provenance.get("rows_decoded")
    coreset.save(f"{rows}.coreset.parquet")
    return {**found, "decoded": None if decoded is None else decoded / coreset.num_rows}


def certify(rows: str, memory: str) -> dict[str, Any]:
    import corebayes as cb

    coreset = cb.load(f"{rows}.coreset.parquet")
    return {"certified": cb.certify(coreset, rows, target="delayed", memory=memory).certified}


def report(rows: str, memory: str) -> dict[str, Any]:
    import corebayes as cb

    coreset = cb.load(f"{rows}.coreset.parquet")
    cb.report(coreset, rows, target="delayed", memory=memory, out=f"{rows}.html")
    return {}


def passes(rows: str, engine: str) -> dict[str, Any]:
    """The best of three passes at 100 draws, after one that starts the workers."""
    import corebayes as cb
    from corebayes.scan.query import Totals
    from corebayes.tangent.monte_carlo import MonteCarloSpace

    with make_executor(engine) as executor:
        opened = cb.open(rows, target="delayed", executor=executor).check()
        model = cb.LogisticRegression(prior=cb.Normal()).with_names(opened.column_names)
        draws = np.random.default_rng(0).normal(size=(100, model.dim))
        seconds: list[float] = []
        for _ in range(4):
            began = time.perf_counter()
            answer = opened.ask(Totals(MonteCarloSpace(model, draws)))
            seconds.append(time.perf_counter() - began)
    return {"seconds": min(seconds[1:]), "bits": answer.total.tobytes().hex()}


@contextlib.contextmanager
def make_executor(engine: str) -> Any:
    import corebayes as cb

    kind, _, number = engine.partition(":")
    if kind == "inline":
        yield None
    elif kind == "processes":
        with cb.processes(int(number)) as executor:
            yield executor
    else:
        from distributed import Client, LocalCluster

        workers = {"n_workers": int(number), "threads_per_worker": 1, "dashboard_address": ":0"}
        with LocalCluster(**workers) as cluster, Client(cluster) as client:
            yield cb.dask(client)


def run(what: Any, *arguments: Any, source: str | None = None) -> dict[str, Any]:
    """One measurement in a process of its own; `refused` if the budget is too small."""
    command = [sys.executable, "-m", "benchmarks.scale", "--measure", what.__name__]
    environment = dict(os.environ)
    if source is not None:
        environment["PYTHONPATH"] = source
    result = subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, env=environment
    )
    if "MemoryBudgetError" in result.stderr:
        return {"peak": 0.0, "refused": result.stderr.splitlines()[-1]}
    if result.returncode:
        raise SystemExit(f"{command} failed:\n{result.stderr[-3000:]}")
    return json.loads(result.stdout.splitlines()[-1])


class Checks:
    """Figures beside what they should be."""

    def __init__(self) -> None:
        self.failed = False

    def at_most(self, what: str, value: float, limit: float) -> None:
        good = value <= limit
        self.failed |= not good
        print(f"    {'pass' if good else 'FAIL'}  {what}: {value:.3g}, at most {limit:.3g}")

    def fits(self, what: str, result: dict[str, Any]) -> None:
        if "refused" in result:
            print(f"    pass  {what} refused at once: {result['refused'][:90]}…")
        else:
            self.at_most(f"{what}, peak MB", result["peak"], BUDGET)


def cpu(folder: Path, checks: Checks, against: str | None, num_rows: list[int]) -> None:
    for number in num_rows:
        rows = generate(folder / f"{number}.parquet", number)
        base, found = run(plain, rows), run(build, rows)
        print(f"{number:,} × 10: read {base['cpu']:.2f} CPU s, build {found['cpu']:.2f} CPU s")
        checks.at_most("CPU of a build, in plain reads", found["cpu"] / base["cpu"], 9.0)
        limit = 1.3 * (found["passes"] + 1.0)
        checks.at_most("rows decoded, in passes", found["decoded"], limit)
        if against is not None:
            earlier = run(build, rows, source=against)
            checks.at_most("CPU of the earlier version's", found["cpu"] / earlier["cpu"], 0.45)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[3_000_000, 10_000_000])
    parser.add_argument("--against", help="the src folder of an earlier version")
    parser.add_argument("--engines", action="store_true")
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        name, *rest = arguments.measure
        result = globals()[name](*rest)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
        print(json.dumps({**result, "peak": peak}))
        return
    checks = Checks()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(prefix="corebayes-scale-") as name:
        folder = Path(name)
        cpu(folder, checks, arguments.against, arguments.rows)
        small = run(build, generate(folder / "small.parquet", 500_000, group=500))
        large = run(build, generate(folder / "large.parquet", 500_000, group=250_000))
        print(
            f"500,000 × 10: {small['cpu']:.2f} CPU s in 1,000 row groups, {large['cpu']:.2f} in 2"
        )
        checks.at_most("CPU of small row groups, in large ones", small["cpu"] / large["cpu"], 1.3)
        print(f"memory={BUDGET}MB")
        wide = generate(folder / "wide.parquet", 1_000_000, dim=50)
        checks.fits("build of 1e6 × 50", run(build, wide, 200, f"{BUDGET}MB"))
        first = folder / f"{arguments.rows[0]}.parquet"
        for what in (certify, report):
            checks.fits(f"{what.__name__} of {first.stem} × 10", run(what, first, f"{BUDGET}MB"))
        if arguments.engines:
            engines(first, checks)
    raise SystemExit(checks.failed)


def engines(rows: Path, checks: Checks) -> None:
    found: dict[str, dict[str, Any]] = {}
    for engine in 2 * ("inline", "processes:1", "processes:2", "dask:2"):
        result = run(passes, rows, engine)
        if engine not in found or result["seconds"] < found[engine]["seconds"]:
            found[engine] = result
    for engine, result in found.items():
        print(f"{engine:>16} {result['seconds']:9.2f} s a pass")
    checks.at_most("answers that differ", len({r["bits"] for r in found.values()}) - 1, 0)
    one, two = found["processes:1"]["seconds"], found["processes:2"]["seconds"]
    checks.at_most("time of 2 workers, in that of 1", two / one, 1.0 / 1.6)
    checks.at_most("time of Dask, in that of processes", found["dask:2"]["seconds"] / two, 1.3)


if __name__ == "__main__":
    main()
