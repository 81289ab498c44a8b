"""Results kept one by one, so that a long benchmark can be run in parts that add up.

Every result is a line of a file under `results/`, with the commit that it is of; what is there is
not computed again. Delete the file to start afresh, as after a change of the code that is measured.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

Row = dict[str, Any]
Job = TypeVar("Job")


@cache
def commit() -> str:
    """Of the code that runs; empty where there is no git to ask."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


class Kept:
    """Rows by key; new ones are computed for so many minutes at most."""

    def __init__(self, path: Path, minutes: float = 8.0) -> None:
        self.path, self.until = path, time.monotonic() + 60.0 * minutes
        self.rows: dict[str, Row] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                self.rows[row["key"]] = row

    def each(self, jobs: Iterable[tuple[str, Job]], compute: Callable[[Job], Row]) -> Iterator[Row]:
        """The rows of all jobs that are done or can be done in time, each with its CPU seconds."""
        for key, job in jobs:
            if key not in self.rows and time.monotonic() < self.until:
                began = time.process_time()
                row = {"key": key, **compute(job), "seconds": time.process_time() - began}
                row["commit"] = commit()
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self.path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                self.rows[key] = row
            if key in self.rows:
                yield self.rows[key]
