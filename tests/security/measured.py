"""Opens files, each in a process of its own, and prints what became of them, and at what cost.

A line of standard input is JSON [how, path]. A line of output is JSON: the error's type and message
(null when the file was read), the seconds and the megabytes beyond those of the imports.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet  # noqa: F401

import corebayes as cb
from corebayes.cli.inputs import Columns, read_rows
from corebayes.rows import open_rows

READ = {
    "load": cb.load,
    "rows": lambda path: open_rows(path, target="y" if path.endswith(".parquet") else None).check(),
    "command": lambda path: read_rows(Path(path), Columns(target="y")),
    "formula": lambda path: read_rows(path, Columns(formula="y ~ x")),
    "scaled formula": lambda path: read_rows(path, Columns(formula="scale(y) ~ scale(x)")),
    "matrix": lambda path: open_rows(path).check(),
    "npz": lambda path: read_rows(Path(path), Columns()),
}


def peak() -> float:
    """Megabytes at most since the last `forget_peak`; ru_maxrss would be the parent's."""
    line = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert line is not None
    return int(line[1]) / 1000.0


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def measure(kind: str, path: str) -> dict[str, Any]:
    forget_peak()
    before, began = peak(), time.process_time()
    failed = message = None
    try:
        READ[kind](path)
    except Exception as error:
        failed, message = type(error).__name__, str(error)
    cost = {"seconds": time.process_time() - began, "megabytes": peak() - before}
    return {"failed": failed, "message": message, **cost}


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # a file that is never read to its end
            print(json.dumps(measure(*json.loads(line))), flush=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            print(json.dumps({"failed": f"status {status}"}), flush=True)


if __name__ == "__main__":
    main()
