"""Tables that are measured row by row, each row in a process of its own, and go on where they end.

A row is a key and what was measured: one line of JSON in a file. A row that is there is not run
again, so a table that was interrupted costs what is missing. A process that fails, or takes more
CPU seconds than it may, is a row too: it says how it failed.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

# One thread, so that CPU seconds of one method are those of another; JAX listens to XLA_FLAGS.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "PYTENSOR_FLAGS": "openmp=False",
}
LIBRARIES = ("numpy", "scipy", "numba", "jax", "numpyro", "nutpie", "pymc", "arviz")
MARK = "row: "
# The process limits itself: a fork of one that has JAX in it may hang.
LIMITED = """
import resource, runpy, sys
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
sys.argv = sys.argv[2:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


class Table:
    """The rows of a JSON-lines file, by key; the last of a key counts."""

    def __init__(self, path: Path):
        self.path = path
        self.rows: dict[str, dict[str, Any]] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                self.rows[row["key"]] = row

    def __contains__(self, key: str) -> bool:
        return key in self.rows

    def add(self, key: str, found: Mapping[str, Any]) -> dict[str, Any]:
        # Beside other work a CPU second does less.
        load = round(os.getloadavg()[0], 1)
        row = {"key": key, "commit": commit(), "load": load, **found}
        self.rows[key] = row
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        return row


def run_alone(module: str, arguments: Sequence[str], limit: float) -> dict[str, Any]:
    """What `python -m module arguments` hands back by `hand_back`, or {"failed": why}.

    The process has `limit` CPU seconds of all its threads, with the start of Python and imports.
    """
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LIMITED, str(int(limit)), module, *arguments],
        env={**os.environ, **ONE_THREAD},
        capture_output=True,
        text=True,
        check=False,
    )
    found = [line for line in ran.stdout.splitlines() if line.startswith(MARK)]
    if ran.returncode == 0 and found:
        return json.loads(found[-1].removeprefix(MARK))
    if ran.returncode < 0:
        return {"failed": f"stopped at the limit of {limit:g} CPU s"}
    said = [line.strip() for line in ran.stderr.splitlines() if line.strip()]
    return {"failed": shortened(said[-1] if said else f"exit code {ran.returncode}")}


def hand_back(found: Mapping[str, Any]) -> None:
    """Print a row for `run_alone`, from the process that measured it."""
    print(MARK + json.dumps(found), flush=True)


def shortened(words: str, most: int = 160) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"


def commit() -> str:
    """Of the code that measures; nothing outside a clone."""
    ran = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stdout.strip()


def commits(rows: Iterable[Mapping[str, Any]]) -> str:
    """The commits that rows were measured at, those of most rows first."""
    found = Counter(row.get("commit") or "unknown" for row in rows)
    return ", ".join(f"{name} ({number})" for name, number in found.most_common())


def versions(*more: str) -> str:
    """The libraries and Python, for the foot of a page."""
    found = [f"Python {platform.python_version()}"]
    for name in (*LIBRARIES, *more):
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"{name} not installed")
    return ", ".join(found)
