"""One construction under way: stepped, traced, journalled, and stopped for a reason."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from corebayes.build.rest import Rest, rest_of
from corebayes.build.tolerance import Tolerance
from corebayes.certify.same_data import check_same_data
from corebayes.checkpoint import open_journal, run_identity
from corebayes.constructions import Construction, Info
from corebayes.coreset import Coreset
from corebayes.data.units import noun_of
from corebayes.data.warn import ModeWarning, TimeWarning, warn
from corebayes.deadline import OutOfTimeError, TimeLimit
from corebayes.models.priors.table import statement_of
from corebayes.models.units import as_units
from corebayes.problem import Problem
from corebayes.rows import Rows
from corebayes.tangent.geometry import random_points
from corebayes.types import Indices, Model, WeightedPoints
from corebayes.version import __version__
from corebayes.watch.interrupts import is_interrupt
from corebayes.watch.logs import say

# Random rows of an open size.
NO_SIZE = 200
ALL_ROWS = "all rows, each as often as it counts: the posterior itself"


class Begun(NamedTuple):
    """Before a construction has a state of its own."""

    points: WeightedPoints


@dataclass
class Run:
    """One construction under way: its state, what was measured, and when to stop."""

    problem: Problem
    method: Construction
    seed: int
    rng: np.random.Generator
    limit: TimeLimit
    fingerprint: str
    """Taken at the beginning: a hash of all that is in memory would hold up Ctrl-C at the end."""
    state: Any = None
    """Of the construction, which may see the rest of the rows only."""
    rest: Rest | None = None
    """What is left beside rows that are kept whole, where there are any."""
    _at_random: int = 0
    """Rows to take where the time ends before the construction has any; none for a path."""
    asked: dict[str, Any] = field(default_factory=dict[str, Any])
    counts_name: str | None = None
    """The column that says how often rows count, so that nobody need say it again."""
    trace: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    warning: str | None = None
    """What the construction says of the coreset as it is now."""

    @classmethod
    def of(cls, model: Model, rows: Rows, method: Construction, seed: int, limit: TimeLimit) -> Run:
        # Whole units enter or stay out where the rows were opened with `unit`.
        problem = Problem(as_units(model, rows.template).bind(rows), rows.check())
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
            self.rest = rest_of(self.problem, self.method, size)
            if self.rest is not None:
                self._say_kept(self.rest)
                size = None if size is None else size - self.rest.kept.size
                start = None if start is None else self.rest.apart(start)
            self._at_random = min(size or NO_SIZE, self._seen.data.num_rows)
            try:
                if start is None:
                    self.state = self.method.init(self.rng, self._seen, size)
                else:
                    self.state = self.method.init_from(self.rng, self._seen, size, start)
            except OutOfTimeError:
                if self.limit.seconds is None:
                    raise
                self._take_random()

    def _take_random(self) -> None:
        """Random rows are a coreset, if a poor one, and it is said."""
        self.limit.allow_rows()
        points = random_points(self.rng, self._seen, self._at_random).positive()
        count = self._seen.data.total_count / points.weights.sum()
        self.state = Begun(points.scaled(count))
        self.warning = self.limit.early(type(self.method).__name__)

    @property
    def _seen(self) -> Problem:
        """What the construction works on."""
        return self.problem if self.rest is None else self.rest.problem

    @property
    def points(self) -> WeightedPoints:
        """The coreset so far."""
        points: WeightedPoints = self.state.points
        return points if self.rest is None else self.rest.joined(points)

    def whole(self) -> WeightedPoints | None:
        """Every row as often as it counts, where the coreset has all of them: π itself."""
        data = self.problem.data
        if self.size < data.num_rows - data.num_left_out:
            return None
        points = self.problem.points(np.arange(data.num_rows))
        self.warning = None
        if self.trace:
            self.trace[-1] |= {"kl": 0.0, "kl_se": 0.0}
        return points._replace(weights=points.rows.multiplicity()).positive()

    @property
    def size(self) -> int:
        """How many rows it has."""
        return int(self.state.points.size) + self._num_kept

    def init_path(self, sizes: Sequence[int]) -> int:
        """Begin with all sizes but the smallest that have no room for the rows of rare levels; how
        many these are."""
        self._say_begin(sizes[-1])
        first = 0
        with self.problem.data.stage("starting"):
            largest = rest_of(self.problem, self.method, sizes[-1])
            if largest is not None:
                rests = (rest_of(self.problem, self.method, size) for size in sizes)
                first, self.rest = next(
                    (place, rest)
                    for place, rest in enumerate(rests)
                    if rest is not None and rest.problem.model.dim == largest.problem.model.dim
                )
                self._say_kept(self.rest)
            sizes = [size - self._num_kept for size in sizes[first:]]
            self.state = self.method.init_path(self.rng, self._seen, sizes)
        return first

    def reached(self, sizes: Sequence[int]) -> dict[int, WeightedPoints]:
        """Of a path: the points of those sizes that it has passed."""
        found = self.method.reached(self.state, [size - self._num_kept for size in sizes])
        return {
            size + self._num_kept: points if self.rest is None else self.rest.joined(points)
            for size, points in found.items()
        }

    @property
    def _num_kept(self) -> int:
        return 0 if self.rest is None else self.rest.kept.size

    def _say_begin(self, size: int | None) -> None:
        data = self.problem.data
        number = data.num_rows - data.num_left_out
        statement = statement_of(self.problem.model)
        say(
            "begin",
            f"{type(self.method).__name__} of {number:,} rows, seed {self.seed}"
            + ("" if statement is None else f"\n{statement}"),
            model=statement,
            method=type(self.method).__name__,
            num_rows=data.num_rows,
            size=size,
            seed=self.seed,
        )

    @property
    def _beside(self) -> str:
        """What a construction does not know of its coreset."""
        return "" if self.rest is None else f"; beside {self.rest.kept.size} of rare levels"

    def _say_kept(self, rest: Rest) -> None:
        number, columns = rest.kept.size, self.problem.model.dim - rest.problem.model.dim
        rows = "1 row is" if number == 1 else f"{number} rows are"
        told = "a parameter" if columns == 1 else f"{columns} parameters"
        say(
            "kept",
            f"{rows} there from the first: of rare levels, which alone tell {told}",
            rows=number,
            parameters=columns,
        )

    def until(self, tolerance: Tolerance, show: Callable[..., None]) -> str:
        """Step until there is a reason to stop, and give it."""
        reason = self._until(tolerance, show)
        size = self.size
        say("end", f"{size} {self._noun}, stopped: {reason}", size=size, reason=reason)
        return reason

    def _until(self, tolerance: Tolerance, show: Callable[..., None]) -> str:
        if isinstance(self.state, Begun):
            return self.limit.reason
        try:
            while True:
                with self.problem.data.stage("steps"):
                    self.state, info = self.method.step(self.rng, self._seen, self.state)
                seconds = self.record(info)
                self.limit.has_answer()
                show(self.size, info.kl, self.problem.rows_scanned / seconds)
                if (end := tolerance.end(self, info, self._noun)) is not None:
                    return end
                if info.done is not None:
                    return info.done + self._beside
                if self.limit.is_over():
                    return self.limit.reason
        except OutOfTimeError:
            nothing = self.state.points.size == 0
            if self.limit.seconds is None or (nothing and not self._at_random):
                raise
            if nothing:
                self._take_random()
            elif not self.trace:
                self.warning = self.limit.early(type(self.method).__name__)
            return self.limit.reason
        except BaseException as error:
            if not is_interrupt(error) or self.state.points.size == 0:
                raise
            return "interrupted"

    def warn(self) -> None:
        """Nobody should take a coreset at the wrong mode for one of a posterior with that mode, or
        random rows for chosen ones."""
        if self.warning is not None:
            warn(self.warning, ModeWarning if self.trace else TimeWarning)

    @property
    def _noun(self) -> str:
        return noun_of(self.problem.data.template)

    def present(self) -> Coreset:
        """The coreset of the points that there are now."""
        return self.coreset(self.points, "")

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

    def record(self, info: Info) -> float:
        seconds = time.perf_counter() - self.limit.began
        kl, error = (info.kl if self.rest is None else self.rest.kl(info.kl)) or (None, None)
        self.warning = info.warning
        self.trace.append(
            {
                "step": len(self.trace) + 1,
                "size": self.size,
                "kl": kl,
                "kl_se": error,
                "seconds": seconds,
                "rows_scanned": self.problem.rows_scanned,
            }
        )
        say("step", _line(self.trace[-1], self.problem.data.num_rows), **self.trace[-1])
        return seconds

    def _provenance(self, data: Rows, indices: Indices) -> dict[str, Any]:
        return {
            **({} if data.design is None else {"design": data.design}),
            **_gathered(data),
            **({"left_out": data.num_left_out} if data.num_left_out else {}),
            "version": __version__,
            "method": repr(self.method),
            "seed": self.seed,
            "asked": {name: value for name, value in self.asked.items() if value is not None},
            "data": self.fingerprint,
            "column_names": list(data.column_names),
            "target_name": data.target_name,
            **({} if self.counts_name is None else {"counts_name": self.counts_name}),
            **_num_features(self.problem.model),
            "seconds": time.perf_counter() - self.limit.began,
            "passes": self.problem.rows_scanned / data.num_rows,
            **data.meter.to_dict(),
            **({"learned": True} if indices.min(initial=0) < 0 else {}),
        }


def _gathered(data: Rows) -> dict[str, Any]:
    """What the rows are where each stands for several: a unit, or all that are the same."""
    table: Any = data.table
    if getattr(table, "duplicates", None) is not None:
        return {"duplicates": table.duplicates}
    if not hasattr(table, "unit_name"):
        return {}
    return {"unit": table.unit_name, "unit_rows": table.original_rows}


def _num_features(model: Any) -> dict[str, int]:
    """How many columns a model of one's own sees as X, where it has more by name."""
    number = getattr(model, "num_features", None)
    return {} if number is None else {"num_features": number}


def _line(entry: dict[str, Any], num_rows: int) -> str:
    kl = "" if entry["kl"] is None else f", KL ≈ {entry['kl']:.3g}"
    passes = entry["rows_scanned"] / num_rows
    return (
        f"step {entry['step']}: {entry['size']} rows{kl}, "
        f"{passes:.2f} passes, {entry['seconds']:.1f} s"
    )


def starting_points(start: Coreset, data: Rows) -> WeightedPoints:
    check_same_data(start, data)
    return WeightedPoints(start.indices, data.take(start.indices), start.weights.copy())
