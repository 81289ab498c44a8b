"""A progress bar on a terminal, nothing anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from corebayes.extras import install
from corebayes.scan.inline import Inline
from corebayes.scan.passes import Executor, Pass, Shard
from corebayes.types import Estimate


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


class Progress:
    """Shown after every step of a build; this one shows nothing."""

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def show(self, size: int, kl: Estimate | None, rows_per_second: float) -> None:
        """How far it is."""

    def note(self, text: str) -> None:
        """One line above the bar."""


class Bar(Progress):
    """Size, KL, rows per second and time left, by rich, on standard error."""

    def __init__(self, size: int | None):
        from rich import progress
        from rich.console import Console

        self._bar = progress.Progress(
            progress.SpinnerColumn(),
            progress.TextColumn("[bold]coreset"),
            progress.BarColumn(bar_width=28),
            progress.TextColumn("{task.fields[size]}"),
            progress.TextColumn("KL ≈ {task.fields[kl]}"),
            progress.TextColumn("{task.fields[speed]}"),
            progress.TimeElapsedColumn(),
            progress.TextColumn("left"),
            progress.TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._of = "" if size is None else f"/{size}"
        self._task: Any = self._bar.add_task("build", total=size, size="0 rows", kl="…", speed="")

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def note(self, text: str) -> None:
        self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def show(self, size: int, kl: Estimate | None, rows_per_second: float) -> None:
        self._bar.update(
            self._task,
            completed=size,
            size=f"{size}{self._of} rows",
            kl="…" if kl is None else f"{kl.value:.3g}",
            speed=f"{_short(rows_per_second)} rows/s",
        )


def make_progress(wanted: bool | None, size: int | None) -> Progress:
    """A bar when asked for, or by default when standard error is a terminal and rich is there."""
    if wanted is None:
        wanted = is_watched()
    if wanted and not has_rich():
        raise ModuleNotFoundError(
            f"the progress bar needs rich: {install('progress')}; or progress=False"
        )
    return Bar(size) if wanted else Progress()


def is_watched() -> bool:
    """Whether somebody may look at a bar."""
    return sys.stderr.isatty() and has_rich()


def has_rich() -> bool:
    from importlib.util import find_spec

    return find_spec("rich") is not None


def _short(number: float) -> str:
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:.1f}{unit}"
    return f"{number:.0f}"
