"""What is shown while trials run: a bar on a terminal, a line for each trial anywhere else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from corebayes.experiments.catalogue import NAMES
from corebayes.experiments.trials import Trial


class Watcher:
    """Told what happens, and says it on standard error; a quiet one says nothing."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True, highlight=False, markup=False, quiet=quiet)
        self._bar: Progress | None = None
        self._task: Any = None
        self._total = self._done = 0

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    @property
    def progress(self) -> str:
        """How far it came, for the one who interrupts."""
        return f"{self._done} of {self._total} trials"

    def say(self, text: str) -> None:
        self._console.print(text, soft_wrap=True)

    def begin(self, total: int, kept: int) -> None:
        self._total, self._done = total, kept
        if kept:
            self.say(f"{kept} of {total} trials are kept from before")
        if self._console.is_terminal and not self._console.quiet and kept < total:
            columns = (BarColumn(bar_width=28), MofNCompleteColumn(), TimeElapsedColumn())
            last = TextColumn("{task.fields[last]}")
            self._bar = Progress(TextColumn("trials"), *columns, last, console=self._console)
            self._task = self._bar.add_task("trials", total=total, completed=kept, last="")
            self._bar.start()

    def done(self, trial: Trial, outcome: Mapping[str, Any]) -> None:
        self._done += 1
        last = outcome["rows"][-1]
        text = (
            f"{trial.data}, {NAMES[trial.method]}, trial {trial.number + 1}: KL {last['kl']:.2g} "
            f"at M = {last['size_asked']}, {last['cpu_seconds']:.1f} s CPU"
        )
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, last=text)
        else:
            self.say(f"[{self._done}/{self._total}] {text}")
