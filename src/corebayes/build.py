"""The loop: every construction is run, watched, traced and stopped here, once for all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, cast

import numpy as np

from corebayes.constructions import AnnealedSparseVI, Construction, Info, PathConstruction
from corebayes.data import as_data
from corebayes.problem import Problem
from corebayes.progress import make_progress
from corebayes.scan.inline import Inline, one_blas_thread
from corebayes.scan.query import Executor
from corebayes.types import Coreset, Data, Model
from corebayes.version import __version__


def build(
    model: Model,
    data: Any,
    *,
    size: int | str | None = None,
    tol: float | None = None,
    method: Construction | None = None,
    seed: int = 0,
    progress: bool | None = None,
    max_time: float | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    counts: Any = None,
    on_bad: str = "raise",
    executor: Executor | None = None,
) -> Coreset:
    """A few weighted rows whose posterior is close to the posterior of all rows.

    `data` is (X, y), an array, a mapping of arrays, a pandas or polars frame or an Arrow table
    (with `target`, `features` and `counts` as column names), or any `Data`. Stops at `size` rows;
    or when two certificates on fresh draws say KL(π_w ‖ π) ≤ `tol` (without a size the coreset
    grows until they do); or after `max_time` seconds; or when the method has nothing left to do.
    The coreset's `reason` says which. Ctrl-C returns the coreset so far. The same arguments give
    the same coreset.
    """
    size = _checked_size(size, tol)
    tol = _checked_positive("tol", tol)
    max_time = _checked_positive("max_time", max_time)
    rows = as_data(data, target=target, features=features, counts=counts, on_bad=on_bad)
    _check_enough_rows(size, rows)
    with one_blas_thread():
        run = _Run.of(model, rows, method, seed, executor)
        with make_progress(progress, size) as bar:
            run.init(size)
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
    wanted = _checked_sizes(sizes)
    max_time = _checked_positive("max_time", max_time)
    rows = as_data(data, target=target, features=features, counts=counts, on_bad=on_bad)
    _check_enough_rows(wanted[-1], rows)
    passed: dict[int, Any] = {}
    with one_blas_thread():
        run = _Run.of(model, rows, method, seed, executor)
        with make_progress(progress, wanted[-1]) as bar:

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
    def of(
        cls,
        model: Model,
        data: Data,
        method: Construction | None,
        seed: int,
        executor: Executor | None,
    ) -> _Run:
        seed = _checked_seed(seed)
        problem = Problem(model.bind(data), data, executor or Inline())
        return cls(problem, method or AnnealedSparseVI(), seed, np.random.default_rng(seed))

    def init(self, size: int | None) -> None:
        self.state = self.method.init(self.rng, self.problem, size)

    def init_path(self, sizes: Sequence[int]) -> None:
        if isinstance(self.method, PathConstruction):
            self.state = self.method.init_path(self.rng, self.problem, sizes)
        else:
            self.init(sizes[-1])

    def until(
        self, tolerance: _Tolerance, max_time: float | None, show: Callable[..., None]
    ) -> str:
        """Step until there is a reason to stop, and give it."""
        try:
            while True:
                self.state, info = self.method.step(self.rng, self.problem, self.state)
                seconds = self._record(info)
                show(self.state.weights.size, info.kl, self.problem.rows_scanned / seconds)
                if tolerance.holds(self, info):
                    return tolerance.reason(self.state.weights.size)
                if info.done is not None:
                    return info.done
                if max_time is not None and seconds >= max_time:
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
        return seconds

    def _provenance(self, data: Data) -> dict[str, Any]:
        return {
            "version": __version__,
            "method": repr(self.method),
            "seed": self.seed,
            "data": data.fingerprint(),
            "column_names": list(data.column_names),
            "target_name": data.target_name,
            "seconds": time.perf_counter() - self.began,
            "passes": self.problem.rows_scanned / data.num_rows,
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
        from corebayes.certify import certify

        assert self.tol is not None
        return certify(
            run.coreset(run.state, ""),
            run.problem.data,
            seed=int(run.rng.integers(2**31)),
            tol=self.tol,
            executor=run.problem.executor,
        ).certified


def _check_enough_rows(size: int | None, data: Data) -> None:
    if size is not None and size > data.num_rows:
        raise ValueError(f"size must be at most the number of rows, {data.num_rows}, got {size}")


def _checked_sizes(sizes: Any) -> list[int]:
    if isinstance(sizes, (str, Integral)) or not isinstance(sizes, Iterable):
        raise TypeError(f"sizes must be a list of whole numbers of rows, got {sizes!r}")
    wanted = sorted({_checked_size(size, None) or 0 for size in cast(Iterable[Any], sizes)})
    if not wanted:
        raise ValueError("sizes must name at least one number of rows")
    return wanted


def _checked_size(size: Any, tol: float | None) -> int | None:
    if size is None or size == "auto":
        if tol is None:
            raise ValueError("give a size (how many rows to keep) or a tol (how small KL must be)")
        return None
    if isinstance(size, bool) or not isinstance(size, Integral):
        raise TypeError(f"size must be a whole number of rows, got {size!r}")
    if int(size) < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    return int(size)


def _checked_positive(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    number = float(value)
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be positive and finite, got {value}")
    return number


def _checked_seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, Integral) or int(seed) < 0:
        raise TypeError(f"seed must be a whole number that is not negative, got {seed!r}")
    return int(seed)
