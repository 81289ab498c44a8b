"""The loop: every construction is run, watched, traced and stopped here, once for all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np

from corebayes.constructions import AnnealedSparseVI, Construction, Info
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
    or when a certificate on fresh draws says KL(π_w ‖ π) ≤ `tol`; or after `max_time` seconds; or
    when the method has nothing left to do. The coreset's `reason` says which. Ctrl-C returns the
    coreset so far. The same arguments give the same coreset.
    """
    size = _checked_size(size, tol)
    tol = _checked_positive("tol", tol)
    max_time = _checked_positive("max_time", max_time)
    rows = as_data(data, target=target, features=features, counts=counts, on_bad=on_bad)
    if size is not None and size > rows.num_rows:
        raise ValueError(f"size must be at most the number of rows, {rows.num_rows}, got {size}")
    bar = make_progress(progress, size)
    with one_blas_thread():
        problem = Problem(model.bind(rows), rows, executor or Inline())
        run = _Run(
            problem, method or AnnealedSparseVI(), np.random.default_rng(_checked_seed(seed)), size
        )
        with bar:
            reason = run.until(tol, max_time, bar.show)
    return run.coreset(reason, seed)


@dataclass
class _Run:
    """One construction under way: its state, what was measured, and when to stop."""

    problem: Problem
    method: Construction
    rng: np.random.Generator
    size: int | None
    state: Any = None
    trace: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    began: float = field(default_factory=time.perf_counter)

    def until(self, tol: float | None, max_time: float | None, show: Callable[..., None]) -> str:
        """Step until there is a reason to stop, and give it."""
        check = _Tolerance(tol)
        try:
            self.state = self.method.init(self.rng, self.problem, self.size)
            while True:
                self.state, info = self.method.step(self.rng, self.problem, self.state)
                seconds = self._record(info)
                show(self.state.weights.size, info.kl, self.problem.rows_scanned / seconds)
                if check.holds(self, info):
                    return f"certified KL(π_w ‖ π) ≤ {tol:g}"
                if info.done is not None:
                    return info.done
                if max_time is not None and seconds >= max_time:
                    return f"time limit of {max_time:g} s"
        except KeyboardInterrupt:
            if self.state is None or self.state.weights.size == 0:
                raise
            return "interrupted"

    def coreset(self, reason: str, seed: int) -> Coreset:
        points, weights = self.state.points, self.state.weights
        order = np.argsort(points.indices)
        points, data = points.take(order), self.problem.data
        return Coreset(
            indices=points.indices,
            weights=weights[order],
            rows=points.rows,
            model=self.problem.model,
            num_rows=data.num_rows,
            total_count=data.total_count,
            reason=reason,
            trace=tuple(self.trace),
            provenance=self._provenance(data, seed),
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

    def _provenance(self, data: Data, seed: int) -> dict[str, Any]:
        return {
            "version": __version__,
            "method": repr(self.method),
            "seed": int(seed),
            "data": data.fingerprint(),
            "column_names": list(data.column_names),
            "target_name": data.target_name,
            "seconds": time.perf_counter() - self.began,
            "passes": self.problem.rows_scanned / data.num_rows,
        }


@dataclass
class _Tolerance:
    """Asks for a certificate when the construction's own KL is low enough, and not too often."""

    tol: float | None
    next_size: int = 1

    def holds(self, run: _Run, info: Info) -> bool:
        size = int(run.state.weights.size)
        if self.tol is None or info.kl is None or info.kl.value > self.tol or size < self.next_size:
            return False
        from corebayes.certify import certify

        self.next_size = size + max(1, size // 10)
        return certify(
            run.coreset("", 0),
            run.problem.data,
            seed=int(run.rng.integers(2**31)),
            tol=self.tol,
            executor=run.problem.executor,
        ).certified


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
