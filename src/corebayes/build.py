"""The loop: every construction is run, watched, traced and stopped here, once for all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, cast

import numpy as np

from corebayes.arguments import (
    check_can_start,
    check_enough_rows,
    checked_positive,
    checked_seed,
    checked_size,
    checked_sizes,
)
from corebayes.checkpoint import open_journal, run_identity
from corebayes.constructions import AnnealedSparseVI, Construction, Info, PathConstruction
from corebayes.constructions.construction import GrowingConstruction
from corebayes.logs import say
from corebayes.problem import OutOfTimeError, Problem
from corebayes.progress import make_progress
from corebayes.rows import Rows, open_rows
from corebayes.scan.inline import one_blas_thread
from corebayes.scan.query import Executor
from corebayes.types import Coreset, Model, Points
from corebayes.version import __version__

# A step that is under way when `max_time` ends may take until so many times that; then it is given
# up, and the state before it is the answer.
OVERTIME = 1.25


def build(
    model: Model,
    data: Any,
    *,
    size: int | str | None = None,
    tol: float | None = None,
    method: Construction | None = None,
    seed: int = 0,
    start: Coreset | None = None,
    progress: bool | None = None,
    max_time: float | None = None,
    checkpoint: str | PathLike[str] | None = None,
    memory: str | int | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    counts: Any = None,
    on_bad: str = "raise",
    executor: Executor | None = None,
) -> Coreset:
    """A few weighted rows whose posterior is close to the posterior of all rows.

    `data` is what `corebayes.open` gives, or whatever it takes: (X, y), an array, a mapping of
    arrays, a table, files (with `target`, `features` and `counts` as column names). Stops at
    `size` rows; or when two certificates on fresh draws say KL(π_w ‖ π) ≤ `tol` (without a size
    the coreset grows until they do); or after `max_time` seconds; or when the method has nothing
    left to do. The coreset's `reason` says which. Ctrl-C returns the coreset so far. The same
    arguments give the same coreset.

    With `start`, an earlier coreset of the same data, the construction goes on from its rows and
    weights. With `checkpoint`, a folder, the answers of all passes are kept there as they come, and
    the same call after any interruption goes on where they end, to the same bits. `memory`, such as
    "500MB", is what the process may take in all; see `scan/budget.py`.
    """
    size = checked_size(size, tol)
    tol = checked_positive("tol", tol)
    max_time = checked_positive("max_time", max_time)
    seed = checked_seed(seed)
    method = method or AnnealedSparseVI()
    check_can_start(method, start, size)
    rows = open_rows(
        data,
        target=target,
        features=features,
        counts=counts,
        on_bad=on_bad,
        memory=memory,
        executor=executor,
    )
    check_enough_rows(size, rows)
    with one_blas_thread():
        if start is not None:
            rows.want(start.indices)
        run = _Run.of(model, rows, method, seed)
        points = None if start is None else _starting_points(start, rows)
        with run.recorded(checkpoint, [size], tol, start), make_progress(progress, size) as bar:
            run.init(size, points)
            reason = run.until(_Tolerance(tol), max_time, bar.show)
    return run.coreset(run.state, reason)


def build_path(
    model: Model,
    data: Any,
    *,
    sizes: Sequence[int],
    method: Construction | None = None,
    seed: int = 0,
    progress: bool | None = None,
    max_time: float | None = None,
    checkpoint: str | PathLike[str] | None = None,
    memory: str | int | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    counts: Any = None,
    on_bad: str = "raise",
    executor: Executor | None = None,
) -> list[Coreset]:
    """The coresets of all these sizes from one run, smallest first: for figures, and to choose M.

    With the default method the way to the posterior and the selection are shared by all sizes and
    only the weights are polished for each. A method that adds row after row gives the coresets
    that it passes on the way to the largest. All other arguments are those of `build`.
    Interrupted, or at the end of `max_time`, the sizes that are not reached are left out.
    """
    wanted = checked_sizes(sizes)
    max_time = checked_positive("max_time", max_time)
    seed = checked_seed(seed)
    rows = open_rows(
        data,
        target=target,
        features=features,
        counts=counts,
        on_bad=on_bad,
        memory=memory,
        executor=executor,
    )
    check_enough_rows(wanted[-1], rows)
    passed: dict[int, Any] = {}
    with one_blas_thread():
        run = _Run.of(model, rows, method or AnnealedSparseVI(), seed)
        with run.recorded(checkpoint, wanted), make_progress(progress, wanted[-1]) as bar:

            def watch(size: int, kl: Any, rate: float) -> None:
                bar.show(size, kl, rate)
                # Points may leave again, so the last state of no more rows counts.
                passed.update({most: run.state for most in wanted if 0 < size <= most})

            run.init_path(wanted)
            reason = run.until(_Tolerance(None), max_time, watch)
    if isinstance(run.method, PathConstruction):
        passed = dict(zip(wanted, run.state.answers, strict=False))
    return [run.coreset(passed[size], reason) for size in wanted if size in passed]


@dataclass
class _Run:
    """One construction under way: its state, what was measured, and when to stop."""

    problem: Problem
    method: Construction
    seed: int
    rng: np.random.Generator
    state: Any = None
    trace: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    began: float = field(default_factory=time.perf_counter)

    @classmethod
    def of(cls, model: Model, rows: Rows, method: Construction, seed: int) -> _Run:
        bound = model.bind(rows)
        return cls(Problem(bound, rows.check()), method, seed, np.random.default_rng(seed))

    @contextmanager
    def recorded(
        self,
        folder: str | PathLike[str] | None,
        sizes: Sequence[int | None],
        tol: float | None = None,
        start: Coreset | None = None,
    ) -> Generator[None]:
        """Answers of passes are kept in the folder, and those that are there are not asked."""
        if folder is None:
            yield
            return
        rows = self.problem.data
        header = run_identity(
            model=self.problem.model,
            data=rows,
            method=self.method,
            seed=self.seed,
            sizes=sizes,
            tol=tol,
            memory=None if rows.budget is None else rows.budget.num_bytes,
            start=start,
        )
        with open_journal(folder, header) as journal:
            rows.log = journal
            yield

    def init(self, size: int | None, start: tuple[Points, Any] | None = None) -> None:
        data = self.problem.data
        say(
            "begin",
            f"{type(self.method).__name__} of {data.num_rows:,} rows, seed {self.seed}",
            method=type(self.method).__name__,
            num_rows=data.num_rows,
            size=size,
            seed=self.seed,
        )
        with data.stage("starting"):
            if start is None:
                self.state = self.method.init(self.rng, self.problem, size)
            else:
                growing = cast(GrowingConstruction, self.method)
                self.state = growing.init_from(self.rng, self.problem, size, *start)

    def init_path(self, sizes: Sequence[int]) -> None:
        if isinstance(self.method, PathConstruction):
            with self.problem.data.stage("starting"):
                self.state = self.method.init_path(self.rng, self.problem, sizes)
        else:
            self.init(sizes[-1])

    def until(
        self, tolerance: _Tolerance, max_time: float | None, show: Callable[..., None]
    ) -> str:
        """Step until there is a reason to stop, and give it."""
        reason = self._until(tolerance, max_time, show)
        size = int(self.state.weights.size)
        say("end", f"{size} rows, stopped: {reason}", size=size, reason=reason)
        return reason

    def _until(
        self, tolerance: _Tolerance, max_time: float | None, show: Callable[..., None]
    ) -> str:
        try:
            while True:
                with self.problem.data.stage("steps"):
                    self.state, info = self.method.step(self.rng, self.problem, self.state)
                seconds = self._record(info)
                show(self.state.weights.size, info.kl, self.problem.rows_scanned / seconds)
                if tolerance.holds(self, info):
                    return tolerance.reason(self.state.weights.size)
                if info.done is not None:
                    return info.done
                if max_time is not None:
                    if seconds >= max_time:
                        return f"time limit of {max_time:g} s"
                    # The first step is always finished, so that there is something to return.
                    self.problem.data.deadline = self.began + OVERTIME * max_time
        except OutOfTimeError:
            return f"time limit of {max_time:g} s"
        except KeyboardInterrupt:
            if self.state.weights.size == 0:
                raise
            return "interrupted"

    def coreset(self, state: Any, reason: str) -> Coreset:
        """The coreset of a state, its rows in the order of the data."""
        order = np.argsort(state.points.indices)
        points, data = state.points.take(order), self.problem.data
        return Coreset(
            indices=points.indices,
            weights=state.weights[order],
            rows=points.rows,
            model=self.problem.model,
            num_rows=data.num_rows,
            total_count=data.total_count,
            reason=reason,
            trace=tuple(self.trace),
            provenance=self._provenance(data),
        )

    def _record(self, info: Info) -> float:
        seconds = time.perf_counter() - self.began
        kl, error = info.kl or (None, None)
        self.trace.append(
            {
                "step": len(self.trace) + 1,
                "size": int(self.state.weights.size),
                "kl": kl,
                "kl_se": error,
                "seconds": seconds,
                "rows_scanned": self.problem.rows_scanned,
            }
        )
        say("step", _line(self.trace[-1], self.problem.data.num_rows), **self.trace[-1])
        return seconds

    def _provenance(self, data: Rows) -> dict[str, Any]:
        return {
            "version": __version__,
            "method": repr(self.method),
            "seed": self.seed,
            "data": data.fingerprint(),
            "column_names": list(data.column_names),
            "target_name": data.target_name,
            "seconds": time.perf_counter() - self.began,
            "passes": self.problem.rows_scanned / data.num_rows,
            **data.meter.to_dict(),
        }


@dataclass
class _Tolerance:
    """Asks for certificates when the construction's own KL is low enough, and not too often."""

    tol: float | None
    next_size: int = 1

    def holds(self, run: _Run, info: Info) -> bool:
        """Whether two certificates, each on fresh draws, say so."""
        size = int(run.state.weights.size)
        if self.tol is None or info.kl is None or info.kl.value > self.tol or size < self.next_size:
            return False
        self.next_size = size + max(1, size // 10)
        return self._certified(run) and self._certified(run)

    def reason(self, size: int) -> str:
        return f"certified KL(π_w ‖ π) ≤ {self.tol:g}, twice, with {size} rows"

    def _certified(self, run: _Run) -> bool:
        from corebayes.certify import measure

        assert self.tol is not None
        rows, seed = run.problem.data, int(run.rng.integers(2**31))
        with rows.stage("certificates"):
            return measure(run.coreset(run.state, ""), rows, seed=seed, tol=self.tol).certified


def _line(entry: dict[str, Any], num_rows: int) -> str:
    kl = "" if entry["kl"] is None else f", KL ≈ {entry['kl']:.3g}"
    passes = entry["rows_scanned"] / num_rows
    return (
        f"step {entry['step']}: {entry['size']} rows{kl}, "
        f"{passes:.2f} passes, {entry['seconds']:.1f} s"
    )


def _starting_points(start: Coreset, data: Rows) -> tuple[Points, Any]:
    from corebayes.certify import check_same_data

    check_same_data(start, data)
    return Points(start.indices, data.take(start.indices)), start.weights.copy()
