"""Steps of a longer work, shown with a bar on a terminal and not at all anywhere else."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from corebayes.scan.inline import Inline
from corebayes.scan.passes import Executor, Pass, Shard
from corebayes.watch.progress import is_watched


@dataclass(frozen=True)
class Watched:
    """An executor that says how many of a pass's rows are done, and of how many."""

    executor: Executor
    advance: Callable[[int, int], None]

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
    """One line on standard error: the step, how far its pass over the rows is, the time. Without a
    bar it says nothing."""

    def __init__(self, bar: Any = None):
        self._bar = bar
        self._task = None if bar is None else bar.add_task("", total=None)

    def begin(self, words: str) -> None:
        """The next step, in words."""
        if self._bar is not None:
            self._bar.reset(self._task, total=None, description=words)

    def watch(self, executor: Executor) -> Executor:
        """The executor, its passes shown as part of the step under way."""
        if self._bar is None:
            return executor
        return Watched(
            executor or Inline(),
            lambda done, total: self._bar.update(self._task, completed=done, total=total),
        )


@contextmanager
def show_steps(wanted: bool | None = None) -> Generator[Steps]:
    """A bar when asked for, or by default when standard error is a terminal and rich is there."""
    if not (is_watched() if wanted is None else wanted):
        yield Steps()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    words = TextColumn("{task.description}", markup=False)
    columns = (SpinnerColumn(), words, BarColumn(bar_width=28), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield Steps(bar)
