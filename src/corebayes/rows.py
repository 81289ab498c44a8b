"""The one door to the rows: opened once, checked once, every row that is decoded counted.

Nothing else in the package reads rows, so the memory budget, the deadline, the checkpoint journal
and the counters hold for every pass and for every single row that is looked at.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np

from corebayes.arguments import check_choices
from corebayes.data.arrays import no_rows, row_numbers
from corebayes.data.checks import Checking, FoundValues, conclude
from corebayes.data.distinct import count_duplicates
from corebayes.data.entry import open_table, refuse
from corebayes.data.parquet_files import is_parquet
from corebayes.data.random_rows import random_rows
from corebayes.data.table import RowCheck, Table, Tally
from corebayes.data.unit_labels import unit_apart
from corebayes.data.units import open_units
from corebayes.deadline import check_time
from corebayes.scan.budget import as_budget
from corebayes.scan.fetch import fetch
from corebayes.scan.inline import Inline
from corebayes.scan.kept import Kept, joined
from corebayes.scan.meter import Meter
from corebayes.scan.passes import Executor, PassLog, Query
from corebayes.scan.scan import scan
from corebayes.types import Block, Indices, Points

Answer = TypeVar("Answer")

# Random rows that the first pass picks up where single rows cost whole row groups, for pools; of so
# many bytes at most, like all rows that are kept; and the first rows, on which models are tried.
RESERVE_ROWS, KEPT_BYTES, FIRST_ROWS = 2**17, 2**26, 5


@dataclass
class _Behind:
    """What all handles of the same rows share."""

    table: Table
    on_bad: str
    total_count: float = 0.0
    num_left_out: int = 0
    checked: bool = False
    asked: dict[Any, Any] = field(default_factory=dict[Any, Any])
    """What models' questions concluded, by key."""
    wanted: Indices = field(default_factory=no_rows)
    kept: Kept | None = None


class Rows:
    """Opened rows; made by `corebayes.open`, taken by `build`, `certify`, `report` and others.

    Opening looks at headers only. The first pass checks every value and, when a model is known by
    then, whether the model has a density for every row. `ask` and `take` are the only reads.
    """

    def __init__(
        self, table: Table, *, executor: Executor | None, memory: Any, on_bad: str = "raise"
    ) -> None:
        self._behind = _Behind(table, on_bad)
        self.meter = Meter()
        self.log: PassLog | None = None  # remembers the answers of passes
        self._set(executor, memory)
        if not table.scattered:
            most = KEPT_BYTES if self.budget is None else self.budget.kept_bytes(KEPT_BYTES)
            kept = self._behind.kept = Kept.of(table, RESERVE_ROWS, most)
            self.want(np.concatenate([np.arange(min(FIRST_ROWS, table.num_rows)), kept.reserve]))

    def _set(self, executor: Executor | None, memory: Any) -> None:
        self.budget = as_budget(memory)
        self.executor = executor or Inline()
        if self.budget is not None and self.executor == Inline():
            self.executor = Inline(threads=self.budget.num_threads(self._table))

    def using(self, *, executor: Executor | None = None, memory: Any = None) -> Rows:
        """The same rows for one run of its own executor, budget and journal, counted here too."""
        other = copy.copy(self)
        other.meter = Meter(parent=self.meter)
        if executor is not None or memory is not None:
            other._set(executor or self.executor, self.budget if memory is None else memory)
        return other

    def with_sampling(self) -> Rows:
        """For a run that also draws with NUTS: a refusal at once if the budget is too small."""
        if self.budget is not None:
            own = None if isinstance(self.executor, Inline) else self.executor
            self._set(own, self.budget.with_sampling())
        return self

    @property
    def table(self) -> Table:
        """What lies behind this door, to be joined with others and opened again."""
        return self.check()._table if self._behind.on_bad == "drop" else self._table

    @property
    def flat(self) -> Rows:
        """The rows of units one by one."""
        return self.showing(cast(Any, self._table).flat)

    def showing(self, table: Table) -> Rows:
        """The same rows as another table shows them; what is read there is counted here as well."""
        other = Rows(table, executor=self.executor, memory=self.budget)
        other.meter, other.log = Meter(parent=self.meter), self.log
        return other

    @property
    def _table(self) -> Table:
        return self._behind.table

    @property
    def num_rows(self) -> int:
        return self._table.num_rows

    @property
    def num_shards(self) -> int:
        return len(self._table.shards)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns of `X`; empty when they have none."""
        return self._table.column_names

    @property
    def target_name(self) -> str:
        """The name of the column `y`, for messages and files."""
        return self._table.target_name

    @property
    def design(self) -> Any:
        """How a formula made the columns, as plain data; None without one."""
        return getattr(self._table, "design", None)

    @property
    def template(self) -> Block:
        """The fields without a row."""
        return self._table.template

    @property
    def total_count(self) -> float:
        """Σ_n c_n: the number of rows when there are no counts."""
        return self.check()._behind.total_count

    @property
    def num_left_out(self) -> int:
        """Rows that count zero times, such as those left out for a bad or missing value."""
        return self.check()._behind.num_left_out

    def want(self, numbers: Indices) -> None:
        """These rows will be taken: if the first pass is still to come it picks them up."""
        if not self._behind.checked and not self._table.scattered:
            # As np.union1d, which takes thirty times as long.
            both = np.sort(np.concatenate([self._behind.wanted, numbers]))
            self._behind.wanted = both[np.diff(both, prepend=-1) > 0]

    def check(self, question: RowCheck | None = None) -> Rows:
        """Look at every value, and ask a model's question, unless that was done: one pass."""
        behind = self._behind
        if behind.checked and (question is None or question.key in behind.asked):
            return self
        check_time()
        with self.stage("checking"):
            if behind.checked:
                answer = self._scan(question)
            else:
                names = self.column_names, self.target_name
                answer = self._conclude(self._scan(Checking(*names, behind.wanted, question)))
        if question is not None:
            behind.asked[question.key] = question.conclude(answer, self.target_name)
        return self

    def learn(self, question: RowCheck) -> Any:
        """What a model's question concludes, asked as in `check`."""
        return self.check(question)._behind.asked[question.key]

    def _conclude(self, found: FoundValues) -> Any:
        behind = self._behind
        bad = conclude(found, behind.on_bad)
        behind.table = behind.table.without(bad) if bad.size else behind.table
        behind.num_left_out = found.num_rows - found.num_counted
        behind.total_count = getattr(behind.table, "total_count", None) or found.total_count
        behind.wanted, behind.checked = no_rows(), True
        if behind.kept is not None:
            behind.kept.points = joined(self.template, found.kept)
        return found.more

    def ask(self, query: Query[Answer], numbers: Indices | None = None) -> Answer:
        """The answer of all rows, or of the given sorted row numbers. Cost: one pass over them."""
        self.check()
        check_time()
        self.meter.ask(self.num_rows if numbers is None else numbers.size)
        kept = self._behind.kept
        if numbers is not None and kept is not None and kept.holds(numbers):
            budget, rows = self.budget, query.block_rows
            rows = rows if budget is None else budget.block_rows(query, self._table)
            return kept.answer(query, numbers, rows)
        return self._scan(query, numbers)

    def _scan(self, query: Any, numbers: Indices | None = None) -> Any:
        return scan(
            query,
            self._table,
            self.executor,
            numbers,
            budget=self.budget,
            log=self.log if self._behind.checked else None,
            meter=self.meter,
        )

    def take(self, numbers: Any) -> Block:
        """The rows with these numbers, in this order; a row may be taken twice.

        Rows that are not read singly without cost are kept: they are fetched once.
        """
        numbers, kept = row_numbers(numbers, self.num_rows), self._behind.kept
        if numbers.size == 0:
            return self.template
        self.check()
        check_time()
        if kept is not None:
            missing = kept.missing(numbers)
            if missing.size and kept.has_room(missing.size):
                kept.add(Points(missing, self._fetch(missing)))
            if kept.holds(numbers):
                return kept.take(numbers)
        distinct, places = np.unique(numbers, return_inverse=True)
        block = self._fetch(distinct)
        return block if np.array_equal(distinct, numbers) else block.take(places)

    def _fetch(self, numbers: Indices) -> Block:
        threads = None if self.budget is None else self.budget.num_threads(self._table)
        block, tally = fetch(self._table, numbers, threads)
        self.meter.add(tally)
        return block

    @property
    def num_at_hand(self) -> int:
        """How many random rows can be looked at without reading all."""
        return self.num_rows if (kept := self._behind.kept) is None else kept.reserve.size

    def some(self, rng: np.random.Generator, size: int) -> Indices:
        """`size` different row numbers at random, sorted: of those that are kept if that is
        enough, so that taking them reads nothing."""
        kept = self._behind.kept
        if kept is None or size > kept.reserve.size:
            return random_rows(rng, self.num_rows, size)
        return kept.reserve[random_rows(rng, kept.reserve.size, size)]

    def fingerprint(self) -> str:
        """A hash of layout and content that changes when the rows do."""
        tally = Tally()
        with self.stage("fingerprint"):
            result = self.check()._table.fingerprint(tally)
            self.meter.add(tally)
        return result

    def stage(self, name: str) -> AbstractContextManager[None]:
        """What is read in this context is counted under this name."""
        return self.meter.stage(name)

    def __repr__(self) -> str:
        return f"Rows({self.num_rows:,} rows in {self.num_shards:,} shards: {self._table})"


def open_rows(
    source: Any,
    *,
    target: str | int | None = None,
    features: Sequence[str | int] | None = None,
    counts: Any = None,
    on_bad: str = "raise",
    duplicates: str | None = None,
    unit: Any = None,
    memory: str | int | None = None,
    executor: Executor | None = None,
) -> Rows:
    """Open rows once, for any number of builds, certificates and reports.

    `source` is one of

    - an array (n, d), or (n,) for one column: the field `X`;
    - a pair (X, y): the fields `X` and `y`; each may be a frame or a series;
    - a mapping from names to arrays whose first axes agree: these fields;
    - a table of any library that speaks Arrow's PyCapsule stream (pandas, polars, pyarrow, …): the
      column `target` is `y`, the columns `features` are `X` (by default all columns but the target
      and the counts);
    - a polars LazyFrame or a DuckDB relation: columns as in a table, run again in every pass;
    - a Parquet file, a folder or a pattern of such files (`"rows/*.parquet"`), a list of paths, a
      pyarrow dataset: columns as in a table, read by name from every file; paths may be addresses
      (s3://, gs://, abfs://, file://);
    - a .npy file, whose columns are called 0, 1, … ; in a pair or a mapping each array may be a
      .npy file or a memory map;
    - a function that returns an iterator of blocks, or an object that can be iterated over again:
      each block is any of the first four;
    - `Rows`: the same rows, with another `memory` or `executor` if given;
    - a list of pairs (X, y), of `Rows`, or with a `target` of frames and paths: the rows of the
      first, then those of the second, …, numbered through.

    `counts` says how often each row counts: an array of length n, or the name of a column. It may
    be fractions (weights of a survey, of an earlier coreset); a row that counts zero times is
    passed over, and a negative count is an error. With `duplicates="count"` repeated rows become
    one that counts as often as they do together, in one reading, if the distinct ones fit in
    memory; rows are then numbered as the distinct ones first came. With `unit`, a column of
    anything (numbers, texts, days) or an array, all rows of one unit (a patient) are one row of the
    data, held in memory: they enter a coreset or stay out together, with one weight.
    `memory`, such as "500MB", is what a process may take in all; see `scan/budget.py`.

    The first pass is an error that names row and column where a value is NaN, missing or infinite.
    With `on_bad="drop"` such rows keep their numbers but count zero times, with one warning. Arrays
    are not copied and never written to. Files, streams and blocks are read again in every pass, but
    for 256 MiB of Parquet rows read often without a `memory`, and refused when they changed.
    """
    check_choices(on_bad, duplicates, unit)
    if isinstance(source, Rows) and duplicates is None and unit is None:
        refuse(source, target=target, features=features, counts=counts)
        if on_bad == "drop":
            raise ValueError("on_bad goes with the opening of the rows, which are open already")
        return source.using(executor=executor, memory=memory)
    if isinstance(source, Rows):
        memory, executor = memory or cast(Any, source.budget), executor or source.executor
        source = source.table
    elif isinstance(source, list):
        given = cast("list[Any]", source)
        if isinstance(unit, str) and not is_parquet(given):
            names: Any = {"target": target, "features": features, "counts": counts, "unit": unit}
            given, unit = [open_rows(one, on_bad=on_bad, **names) for one in given], None
        source = [one.table if isinstance(one, Rows) else one for one in given]
    meter, tally = Meter(), Tally()
    with meter.stage("opening"):
        if isinstance(unit, str):
            unit, features = unit_apart(source, unit, target, features, counts)
        table = open_table(source, target, features, counts, tally)
        if duplicates is not None:
            budget = as_budget(memory)
            most = None if budget is None else max(0, budget.left) // 2
            table = count_duplicates(table, on_bad=on_bad, tally=tally, most_bytes=most)
        if unit is not None:
            table = open_units(table, unit, on_bad=on_bad, tally=tally)
        meter.add(tally)
    rows = Rows(table, executor=executor, memory=memory, on_bad=on_bad)
    rows.meter = meter
    return rows
