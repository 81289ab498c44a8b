"""Builds in processes that are killed: what they run, and what they leave."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

import corebayes as cb
from corebayes.checkpoint import journal
from tests.problems import coins

NUM_ROWS = 60_000


def make_rows(folder: Path) -> None:
    """Rows in four shards."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(NUM_ROWS, 3))
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", coins(rng, X @ [1.0, -2.0, 0.5]))


def run(folder: Path, num_workers: int, *, checkpoint: bool = True) -> None:
    """One build; writes its result when it comes to its end, and its workers' process ids before.

    The checkpoint is written after every shard, however long that takes.
    """
    journal.SHARE_OF_TIME = 0.0
    options: dict[str, Any] = {"checkpoint": folder / "checkpoint"} if checkpoint else {}
    with cb.processes(num_workers or 1) as executor:
        if num_workers:
            options["executor"] = _Told(executor, folder)
        coreset = cb.build(
            cb.LogisticRegression(prior=cb.Normal()),
            (folder / "X.npy", folder / "y.npy"),
            size=5,
            method=cb.SparseVI(geometry=cb.MonteCarlo(num_draws=50)),
            **options,
        )
    part = folder / f"result-{os.getpid()}.npz"
    np.savez(part, indices=coreset.indices, weights=coreset.weights)
    part.rename(folder / "result.npz")


class _Told:
    """An executor that tells the process ids of its workers."""

    def __init__(self, inner: Any, folder: Path):
        self.inner, self.file = inner, folder / "workers"

    def map(self, work: Any, shards: Any) -> Any:
        answers = self.inner.map(work, shards)
        for answer in answers:
            part = self.file.with_suffix(".part")
            part.write_text(" ".join(map(str, self.inner.process_ids())))
            part.rename(self.file)
            yield answer
