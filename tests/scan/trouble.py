"""Queries that bring trouble to the worker that answers them, a given number of times."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import corebayes as cb
from corebayes.rows import open_rows
from corebayes.scan.query import BadPotentialError, Totals
from corebayes.tangent.monte_carlo import MonteCarloSpace
from tests.problems import coins

NUM_ROWS, SHARD_ROWS = 90_000, 16_384
# In the third of six shards, rows 32,768 to 49,151.
ROW = 40_000


@dataclass(frozen=True)
class Trouble:
    """The inner query, and what happens in the block that has the row, the first few times.

    Each time leaves a file with the worker's process id.
    """

    inner: Any
    folder: Path
    what: str
    times: int = 1
    row: int = ROW

    @property
    def block_rows(self) -> int:
        return self.inner.block_rows

    def answer(self, block: Any, numbers: np.ndarray) -> Any:
        if numbers[0] <= self.row <= numbers[-1]:
            before = len(self.process_ids())
            if before < self.times:
                (self.folder / f"{before}-{os.getpid()}").touch()
                self._happen()
        return self.inner.answer(block, numbers)

    def merge(self, first: Any, second: Any) -> Any:
        return self.inner.merge(first, second)

    def process_ids(self) -> list[int]:
        """Of the workers that were in trouble, in order."""
        return [int(file.name.split("-")[1]) for file in sorted(self.folder.iterdir())]

    def _happen(self) -> None:
        kind, _, detail = self.what.partition(" ")
        if kind == "signal":
            os.kill(os.getpid(), signal.Signals[detail])
        elif kind == "sleep":
            time.sleep(float(detail))
        elif kind == "chat":
            print("this must not get between the answers", flush=True)
            assert sys.stdin.read() == ""
        elif kind == "disk":
            raise OSError("the disk is away")
        else:
            raise BadPotentialError(self.row)


@dataclass(frozen=True)
class ColumnSums:
    """Σ x_n x_nᵀ and Σ y_n: rounded differently in every other order of the rows."""

    block_rows: int = 1000

    def answer(self, block: Any, numbers: np.ndarray) -> tuple[np.ndarray, float]:
        return block.X.T @ block.X, float(block.y @ block.X[:, 0])

    def merge(self, first: Any, second: Any) -> Any:
        return first[0] + second[0], first[1] + second[1]


def make_files(folder: Path) -> tuple[Any, Totals]:
    """Data in .npy files of six shards, and a question to them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(NUM_ROWS, 3))
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", coins(rng, X @ [1.0, -2.0, 0.5]))
    data = open_rows((folder / "X.npy", folder / "y.npy"))
    model = cb.LogisticRegression(prior=cb.Normal()).bind(data)
    return data, Totals(MonteCarloSpace(model, rng.normal(size=(30, 3))))


def same_bits(first: Any, second: Any) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def is_running(process_id: int) -> bool:
    try:
        status = Path(f"/proc/{process_id}/stat").read_text()
    except FileNotFoundError:
        return False
    # A zombie has ended.
    return status.rsplit(")", 1)[1].split()[0] != "Z"


def wait_until(condition: Any, seconds: float) -> bool:
    ends = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > ends:
            return False
        time.sleep(0.02)
    return True
