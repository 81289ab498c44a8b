"""Steps of a longer work, shown with a bar on a terminal and not at all anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from corebayes.progress import has_rich
from corebayes.scan.query import Executor, Pass, Shard

Advance = Callable[[int, int], None]


@dataclass(frozen=True)
class Watched:
    """An executor that says how many of a pass's rows are done."""

    executor: Executor
    advance: Advance

    def map(self, work: Pass, shards: Sequence[Shard]) -> Generator[Any]:
        total = sum(shard.stop - shard.start for shard in shards)
        done = 0
        self.advance(done, total)
        answers = self.executor.map(work, shards)
        try:
            for shard, answer in zip(shards, answers, strict=True):
                done += shard.stop - shard.start
                self.advance(done, total)
                yield answer
        finally:
            answers.close()


class Steps:
    """Says nothing."""

    def begin(self, words: str) -> None:
        """The next step, in words."""

    def watch(self, executor: Executor) -> Executor:
        """The executor, its passes shown as part of the step under way."""
        return executor


class ShownSteps(Steps):
    """One line on standard error: the step, how far its pass over the rows is, the time."""

    def __init__(self, bar: Any):
        self._bar = bar
        self._task = bar.add_task("", total=None)

    def begin(self, words: str) -> None:
        self._bar.reset(self._task, total=None, description=words)

    def watch(self, executor: Executor) -> Executor:
        return Watched(executor, self._advance)

    def _advance(self, done: int, total: int) -> None:
        self._bar.update(self._task, completed=done, total=total)


@contextmanager
def show_steps(wanted: bool | None = None) -> Generator[Steps]:
    """A bar when asked for, or by default when standard error is a terminal and rich is there."""
    if wanted is False or (wanted is None and not (sys.stderr.isatty() and has_rich())):
        yield Steps()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=28),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield ShownSteps(bar)
