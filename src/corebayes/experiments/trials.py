"""Trials on worker processes, each kept in a small file as soon as it is done.

A run that was interrupted continues where it stopped: a trial whose file is there, made with the
same settings on the same data, is not run again.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple, cast

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from corebayes.experiments.catalogue import NAMES, DataFiles, Experiment, make_experiment
from corebayes.experiments.datasets import DATASETS
from corebayes.experiments.measure import METHOD_SEEDS, run_trial
from corebayes.files.atomic import write_atomically


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


# What a trial's file must be made with to count.
FORMAT = 1
MAX_BYTES = 1 << 22
# `measure.Outcome` as JSON has it.
Outcome = dict[str, Any]


class Trial(NamedTuple):
    """One method on one data set with one seed: a worker's task, and small."""

    experiment: str
    data: str
    method: str
    number: int
    quick: bool
    path: str | None
    housing: str

    @property
    def settings(self) -> Experiment:
        return make_experiment(self.experiment, quick=self.quick, housing_set=self.housing)

    def run(self) -> Outcome:
        path = None if self.path is None else Path(self.path)
        return run_trial(self.settings, self.data, path, self.method, self.number)._asdict()

    def __str__(self) -> str:
        where = "" if self.data == self.experiment else f" {self.data}"
        return f"{self.experiment}{where}, {self.method}, trial {self.number + 1}"


def plan(names: Sequence[str], num_trials: int, sources: DataFiles, *, quick: bool) -> list[Trial]:
    """All trials: the slowest methods first, so that no worker is left with one at the end, and a
    trial number on all sets before the next, so that an interrupted run is balanced."""
    trials: list[tuple[int, int, Trial]] = []
    for name in names:
        experiment = make_experiment(name, quick=quick, housing_set=sources.housing)
        for data in experiment.sets:
            file = sources.files.get(data)
            path = None if file is None else str(file)
            for place, method in enumerate(experiment.methods):
                for number in range(num_trials):
                    trial = Trial(name, data, method, number, quick, path, sources.housing)
                    trials.append((place, number, trial))
    return [trial for _, _, trial in sorted(trials, key=lambda each: each[:2])]


class TrialStore:
    """The files of finished trials, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, trial: Trial) -> Path:
        """A name to read and, since settings may change, a digest of what the trial depends on."""
        experiment = trial.settings
        settings = [
            FORMAT,
            trial.quick,
            repr(experiment.methods[trial.method]),
            experiment.sizes,
            None if trial.path is None else DATASETS[trial.data].sha256,
            METHOD_SEEDS,
        ]
        digest = hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:10]
        method = "".join(letter if letter.isalnum() else "-" for letter in trial.method.lower())
        stem = f"{trial.experiment}-{trial.data}-{method}-{trial.number}"
        return self.folder / f"{stem}-{digest}.json"

    def read(self, trial: Trial) -> Outcome | None:
        """The outcome, or None if there is none (or it was cut short by another program)."""
        path = self.path(trial)
        try:
            if path.stat().st_size > MAX_BYTES:
                return None
            kept: Any = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, RecursionError, ValueError):
            return None
        whole = isinstance(kept, dict) and "rows" in kept and "coresets" in kept
        return cast(Outcome, kept) if whole else None

    def write(self, trial: Trial, outcome: Outcome) -> None:
        write_atomically(self.path(trial), json.dumps(outcome).encode())


def run_missing(
    trials: Sequence[Trial],
    store: TrialStore,
    *,
    workers: int | None,
    begin: Callable[[int, int], None] = lambda total, kept: None,
    show: Callable[[Trial, Outcome], None] = lambda trial, outcome: None,
) -> dict[Trial, Outcome]:
    """All outcomes: those in the store, and the others, run on `workers` processes and kept.

    A trial that fails ends the run, with its error; interrupted or failed, no process stays.
    """
    outcomes = {trial: kept for trial in trials if (kept := store.read(trial)) is not None}
    missing = [trial for trial in trials if trial not in outcomes]
    begin(len(trials), len(outcomes))
    number = min(workers or os.cpu_count() or 1, len(missing))
    serial = ((trial, trial.run()) for trial in missing)
    for trial, outcome in serial if number <= 1 else _on_processes(missing, number):
        store.write(trial, outcome)
        outcomes[trial] = outcome
        show(trial, outcome)
    return outcomes


def _on_processes(trials: Sequence[Trial], number: int) -> Iterator[tuple[Trial, Outcome]]:
    """Outcomes as they come."""
    # Fresh interpreters: nothing of this one, such as its threads, is inherited.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(number, mp_context=context, initializer=_begin_worker)
    try:
        running = {pool.submit(Trial.run, trial): trial for trial in trials}
        for future in as_completed(running):
            try:
                outcome = future.result()
            except Exception as error:
                error.add_note(f"in the trial: {running[future]}")
                raise
            yield running[future], outcome
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    pool.shutdown()


def _begin_worker() -> None:
    # Ctrl-C reaches every process of a terminal; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The first one turns SIGTERM into an interrupt; here it is the end.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
