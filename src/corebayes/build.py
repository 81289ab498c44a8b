"""The loop: every construction is run, watched, traced and stopped here, once for all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from corebayes.arguments import checked_positive, checked_seed
from corebayes.build_arguments import (
    check_can_start,
    check_enough_rows,
    check_method,
    checked_size,
    checked_sizes,
)
from corebayes.checkpoint import check_folder, open_journal, run_identity
from corebayes.constructions import AnnealedSparseVI, Construction, Info
from corebayes.deadline import OutOfTimeError, TimeLimit, time_limit
from corebayes.interrupts import is_interrupt
from corebayes.logs import say
from corebayes.problem import Problem
from corebayes.progress import make_progress
from corebayes.rows import Rows, open_rows
from corebayes.scan.inline import one_blas_thread
from corebayes.scan.query import Executor
from corebayes.types import Coreset, Indices, Model, WeightedPoints
from corebayes.version import __version__


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
    left to do. The coreset's `reason` says which. Ctrl-C returns the coreset so far; so does the
    end of `max_time`, or a TimeoutError when there is none yet. The same arguments give the same
    coreset.

    With `start`, an earlier coreset of the same data, the construction goes on from its rows and
    weights. With `checkpoint`, a folder, the answers of all passes are kept there as they come, and
    the same call after any interruption goes on where they end, to the same bits. `memory`, such as
    "500MB", is what the process may take in all; see `scan/budget.py`.
    """
    size = checked_size(size, tol)
    tol = checked_positive("tol", tol)
    max_time = checked_positive("max_time", max_time)
    seed = checked_seed(seed)
    check_folder(checkpoint)
    method = method or AnnealedSparseVI()
    check_method(method)
    check_can_start(method, start, size)
    with one_blas_thread(), time_limit(max_time) as limit:
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
        if start is not None:
            rows.want(start.indices)
        run = _Run.of(model, rows, method, seed, limit)
        begun = None if start is None else f"a coreset of {start.size} rows"
        run.asked = {"size": size, "tol": tol, "max_time": max_time, "start": begun}
        points = None if start is None else _starting_points(start, rows)
        with run.recorded(checkpoint, [size], tol, start), make_progress(progress, size) as bar:
            run.init(size, points)
            reason = run.until(_Tolerance(tol), bar.show)
    return run.coreset(run.state.points, reason)


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
    check_folder(checkpoint)
    method = method or AnnealedSparseVI()
    check_method(method)
    passed: dict[int, WeightedPoints] = {}
    with one_blas_thread(), time_limit(max_time) as limit:
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
        run = _Run.of(model, rows, method, seed, limit)
        run.asked = {"sizes": wanted, "max_time": max_time}
        with run.recorded(checkpoint, wanted), make_progress(progress, wanted[-1]) as bar:

            def watch(size: int, kl: Any, rate: float) -> None:
                bar.show(size, kl, rate)
                # Points may leave again, so the last state of no more rows counts.
                passed.update(run.method.reached(run.state, wanted))

            run.init_path(wanted)
            reason = run.until(_Tolerance(None), watch)
    return [run.coreset(passed[size], reason) for size in wanted if size in passed]


@dataclass
class _Run:
    """One construction under way: its state, what was measured, and when to stop."""

    problem: Problem
    method: Construction
    seed: int
    rng: np.random.Generator
    limit: TimeLimit
    fingerprint: str
    """Taken at the beginning: a hash of all that is in memory would hold up Ctrl-C at the end."""
    state: Any = None
    asked: dict[str, Any] = field(default_factory=dict[str, Any])
    trace: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @classmethod
    def of(
        cls, model: Model, rows: Rows, method: Construction, seed: int, limit: TimeLimit
    ) -> _Run:
        problem = Problem(model.bind(rows), rows.check())
        limit.deadline.doing = f"{type(method).__name__} took its first step"
        rng = np.random.default_rng(seed)
        return cls(problem, method, seed, rng, limit, rows.fingerprint())

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

    def init(self, size: int | None, start: WeightedPoints | None = None) -> None:
        self._say_begin(size)
        with self.problem.data.stage("starting"):
            if start is None:
                self.state = self.method.init(self.rng, self.problem, size)
            else:
                self.state = self.method.init_from(self.rng, self.problem, size, start)

    def init_path(self, sizes: Sequence[int]) -> None:
        self._say_begin(sizes[-1])
        with self.problem.data.stage("starting"):
            self.state = self.method.init_path(self.rng, self.problem, sizes)

    def _say_begin(self, size: int | None) -> None:
        data = self.problem.data
        say(
            "begin",
            f"{type(self.method).__name__} of {data.num_rows:,} rows, seed {self.seed}",
            method=type(self.method).__name__,
            num_rows=data.num_rows,
            size=size,
            seed=self.seed,
        )

    def until(self, tolerance: _Tolerance, show: Callable[..., None]) -> str:
        """Step until there is a reason to stop, and give it."""
        reason = self._until(tolerance, show)
        size = int(self.state.points.size)
        say("end", f"{size} rows, stopped: {reason}", size=size, reason=reason)
        return reason

    def _until(self, tolerance: _Tolerance, show: Callable[..., None]) -> str:
        try:
            while True:
                with self.problem.data.stage("steps"):
                    self.state, info = self.method.step(self.rng, self.problem, self.state)
                seconds = self._record(info)
                self.limit.has_answer()
                show(self.state.points.size, info.kl, self.problem.rows_scanned / seconds)
                if tolerance.holds(self, info):
                    return tolerance.reason(self.state.points.size)
                if info.done is not None:
                    return info.done
                if self.limit.is_over():
                    return self.limit.reason
        except OutOfTimeError:
            if self.limit.seconds is None or self.state.points.size == 0:
                raise
            return self.limit.reason
        except BaseException as error:
            if not is_interrupt(error) or self.state.points.size == 0:
                raise
            return "interrupted"

    def coreset(self, points: WeightedPoints, reason: str) -> Coreset:
        """The coreset of these points, in the order of the data."""
        points, data = points.take(np.argsort(points.indices)), self.problem.data
        return Coreset(
            indices=points.indices,
            weights=points.weights,
            rows=points.rows,
            model=self.problem.model,
            num_rows=data.num_rows,
            total_count=data.total_count,
            reason=reason,
            trace=tuple(self.trace),
            provenance=self._provenance(data, points.indices),
        )

    def _record(self, info: Info) -> float:
        seconds = time.perf_counter() - self.limit.began
        kl, error = info.kl or (None, None)
        self.trace.append(
            {
                "step": len(self.trace) + 1,
                "size": int(self.state.points.size),
                "kl": kl,
                "kl_se": error,
                "seconds": seconds,
                "rows_scanned": self.problem.rows_scanned,
            }
        )
        say("step", _line(self.trace[-1], self.problem.data.num_rows), **self.trace[-1])
        return seconds

    def _provenance(self, data: Rows, indices: Indices) -> dict[str, Any]:
        learned = {"learned": True} if indices.min(initial=0) < 0 else {}
        design = data.design
        return {
            **({} if design is None else {"design": design}),
            "version": __version__,
            "method": repr(self.method),
            "seed": self.seed,
            "asked": {name: value for name, value in self.asked.items() if value is not None},
            "data": self.fingerprint,
            "column_names": list(data.column_names),
            "target_name": data.target_name,
            "seconds": time.perf_counter() - self.limit.began,
            "passes": self.problem.rows_scanned / data.num_rows,
            **data.meter.to_dict(),
            **learned,
        }


@dataclass
class _Tolerance:
    """Asks for certificates when the construction's own KL is low enough, and not too often."""

    tol: float | None
    next_size: int = 1

    def holds(self, run: _Run, info: Info) -> bool:
        """Whether two certificates, each on fresh draws, say so."""
        size = int(run.state.points.size)
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
            coreset = run.coreset(run.state.points, "")
            return measure(coreset, rows, seed=seed, tol=self.tol).certified


def _line(entry: dict[str, Any], num_rows: int) -> str:
    kl = "" if entry["kl"] is None else f", KL ≈ {entry['kl']:.3g}"
    passes = entry["rows_scanned"] / num_rows
    return (
        f"step {entry['step']}: {entry['size']} rows{kl}, "
        f"{passes:.2f} passes, {entry['seconds']:.1f} s"
    )


def _starting_points(start: Coreset, data: Rows) -> WeightedPoints:
    from corebayes.certify import check_same_data

    check_same_data(start, data)
    return WeightedPoints(start.indices, data.take(start.indices), start.weights.copy())
