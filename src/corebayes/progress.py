"""A progress bar on a terminal, nothing anywhere else."""

from __future__ import annotations

import sys
from typing import Any, Protocol

from corebayes.types import Estimate


class Progress(Protocol):
    """Shown after every step of a build."""

    def __enter__(self) -> Progress: ...

    def __exit__(self, *_: object) -> None: ...

    def show(self, size: int, kl: Estimate | None, rows_per_second: float) -> None: ...


class Quiet:
    """No output."""

    def __enter__(self) -> Quiet:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def show(self, size: int, kl: Estimate | None, rows_per_second: float) -> None:
        return None


class Bar:
    """Size, KL, rows per second and time left, by rich, on standard error."""

    def __init__(self, size: int | None):
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("[bold]coreset"),
            BarColumn(bar_width=28),
            TextColumn("{task.fields[size]}"),
            TextColumn("KL ≈ {task.fields[kl]}"),
            TextColumn("{task.fields[speed]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._size = size
        self._task: Any = self._bar.add_task("build", total=size, size="0 rows", kl="…", speed="")

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, size: int, kl: Estimate | None, rows_per_second: float) -> None:
        of = "" if self._size is None else f"/{self._size}"
        self._bar.update(
            self._task,
            completed=size,
            size=f"{size}{of} rows",
            kl="…" if kl is None else f"{kl.value:.3g}",
            speed=f"{_short(rows_per_second)} rows/s",
        )


def make_progress(wanted: bool | None, size: int | None) -> Progress:
    """A bar when asked for, or by default when standard error is a terminal and rich is there."""
    if wanted is None:
        wanted = sys.stderr.isatty() and has_rich()
    if not wanted:
        return Quiet()
    if not has_rich():
        raise ModuleNotFoundError(
            'the progress bar needs rich: pip install "corebayes[progress]", or progress=False'
        )
    return Bar(size)


def has_rich() -> bool:
    from importlib.util import find_spec

    return find_spec("rich") is not None


def _short(number: float) -> str:
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:.1f}{unit}"
    return f"{number:.0f}"
