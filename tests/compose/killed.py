"""Updates and merges in processes that die: what they run, and what they leave."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np

import corebayes as cb
from corebayes.checkpoint import journal
from corebayes.scan.inline import Inline
from tests.compose.rows import MODEL, piece


class Dying:
    """An executor whose process is killed after so many shards."""

    def __init__(self, num_shards: int) -> None:
        self.left = num_shards

    def map(self, work: Any, shards: Any) -> Any:
        for answer in Inline().map(work, shards):
            yield answer
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def night() -> tuple[np.ndarray, np.ndarray]:
    """Rows in several shards."""
    return piece(1, 40_000)


def run(folder: Path, num_shards: int | None) -> None:
    """One update of the coreset in the folder, killed after so many shards; the checkpoint is
    written after every one."""
    journal.SHARE_OF_TIME = 0.0
    grown = cb.update(
        cb.load(folder / "first.parquet"),
        night(),
        size=12,
        seed=3,
        checkpoint=folder / "kept",
        executor=None if num_shards is None else Dying(num_shards),
    )
    grown.save(folder / "grown.parquet")


def first(folder: Path) -> cb.Coreset:
    coreset = cb.build(MODEL, piece(0), size=12, reserve=34, seed=0)
    coreset.save(folder / "first.parquet")
    return coreset
