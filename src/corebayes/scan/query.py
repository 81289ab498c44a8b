"""What one pass over the rows can be asked, and the pass itself.

An answer is a pure function of (block of rows, query) and answers merge in row order, so
every executor returns the same bits. Nothing here holds more than one block of vectors:
memory is O(block_rows · S) for each worker, never N · S.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from corebayes.data.table import Table, Tally
from corebayes.deadline import check_time, current_deadline
from corebayes.types import Array, Block, Indices, Model, Points, TangentSpace

if TYPE_CHECKING:
    from corebayes.scan.budget import Budget
    from corebayes.scan.meter import Meter

Answer = TypeVar("Answer")


class Query(Protocol[Answer]):
    """A question to every row whose answers add up."""

    @property
    def block_rows(self) -> int:
        """Rows to answer for at once: enough for long loops, few enough for little memory."""
        ...

    def answer(self, block: Block, numbers: Indices) -> Answer:
        """The answer of these rows alone; `numbers` are their row numbers."""
        ...

    def merge(self, first: Answer, second: Answer) -> Answer:
        """The answer of two sets of rows, the first before the second."""
        ...


class Shard(NamedTuple):
    """A worker's task: a range of rows, or the given sorted row numbers in it."""

    start: int
    stop: int
    rows: Indices | None = None

    def __str__(self) -> str:
        return f"rows {self.start:,} to {self.stop - 1:,}"


class Answered(NamedTuple):
    """The answer of a shard, and what was decoded for it."""

    answer: Any
    tally: Tally


@dataclass(frozen=True)
class Pass:
    """One question to one data set. Calling it with a shard answers for that shard.

    It is a pure function of the shard, whoever calls it: any worker, once or twice.
    """

    query: Query[Any]
    data: Table
    block_rows: int

    def __call__(self, shard: Shard, stopped: Callable[[], bool] = lambda: False) -> Answered:
        """Read one shard and fold the answers of its blocks; no answer when it is stopped."""
        result, tally = None, Tally()
        for numbers, part in self.data.parts(*shard, tally):
            for first in range(0, len(part), self.block_rows):
                if stopped():
                    return Answered(None, tally)
                answer = self.query.answer(*self._block(part, numbers, first))
                result = answer if result is None else self.query.merge(result, answer)
        return Answered(result, tally)

    def _block(self, part: Block, numbers: Indices, first: int) -> tuple[Block, Indices]:
        if len(part) <= self.block_rows:
            return part, numbers
        rows = slice(first, first + self.block_rows)
        return part.take(rows), numbers[rows]


class Executor(Protocol):
    """Answers the shards of one pass and hands back the answers in their order."""

    def map(self, work: Pass, shards: Sequence[Shard]) -> Generator[Answered]:
        """Closed before its end, the generator stops the work that is under way."""
        ...


class PassLog(Protocol):
    """Remembers what passes were answered, so that they need not be asked again."""

    def recall(self, work: Pass, shards: Sequence[Shard]) -> tuple[Any, int]:
        """The answer of the first shards of a pass that begins, and how many these are."""
        ...

    def keep(self, answer: Any, done: int) -> None:
        """The answer of the first `done` shards of the pass under way."""
        ...


class Forgetful:
    """Remembers nothing."""

    def recall(self, work: Pass, shards: Sequence[Shard]) -> tuple[Any, int]:
        return None, 0

    def keep(self, answer: Any, done: int) -> None:
        return None


def scan(
    query: Query[Answer],
    data: Table,
    executor: Executor,
    rows: Indices | None = None,
    *,
    budget: Budget | None = None,
    log: PassLog | None = None,
    meter: Meter | None = None,
) -> Answer:
    """Ask every row, or only the given sorted row numbers. Cost: one pass over those rows.

    What the log remembers is not asked again. Answers are merged from the first shard on, so the
    sums have the same bits wherever a pass was taken up again.
    """
    shards = _shards(data, rows)
    block_rows = query.block_rows if budget is None else budget.block_rows(query, data)
    work = Pass(query, data, block_rows)
    log = log or Forgetful()
    result, done = log.recall(work, shards)
    # One small shard is the inner loop of every weight update: no executor, no overhead.
    if len(shards) > 1:
        answers = executor.map(work, shards[done:])
    else:
        answers = map(partial(work, stopped=current_deadline().passed), shards[done:])
    check_time()
    try:
        for answer, tally in answers:
            check_time()
            if meter is not None:
                meter.add(tally)
            result = answer if done == 0 else query.merge(result, answer)
            done += 1
            log.keep(result, done)
    finally:
        if isinstance(answers, Generator):
            # Now, and not when nobody remembers the exception any more.
            answers.close()
    return result


# Numbers in a block: 4,096 rows at 100 draws, 3.3 MB. Shorter blocks stay in a nearer cache, but
# then threads spend their time handing the interpreter to each other.
BLOCK_VALUES = 409_600
# Scattered rows of a task.
GATHERED_ROWS = 16_384


def rows_of_width(width: int) -> int:
    """Rows in a block when `width` numbers are computed of each; what numbers there are decides,
    never the machine, so that sums have the same bits everywhere."""
    return min(max(BLOCK_VALUES // width, 64), 4096)


def _shards(data: Table, rows: Indices | None) -> list[Shard]:
    """The tasks of a pass over all rows or the given ones.

    A few rows in each of thousands of shards are one task where that costs nothing to read.
    """
    if rows is None:
        return [Shard(start, stop) for start, stop in data.shards]
    if data.scattered:
        groups = np.split(rows, range(GATHERED_ROWS, rows.size, GATHERED_ROWS)) if rows.size else []
        return [Shard(int(group[0]), int(group[-1]) + 1, group) for group in groups]
    groups = np.split(rows, np.searchsorted(rows, [start for start, _ in data.shards[1:]]))
    pairs = zip(data.shards, groups, strict=True)
    return [Shard(start, stop, group) for (start, stop), group in pairs if group.size]


def _added(first: Any, second: Any) -> Any:
    """Two answers of the same named fields, field by field."""
    return type(first)(*(a + b for a, b in zip(first, second, strict=True)))


class Sums(NamedTuple):
    """Σ c_n g_n over the rows asked, Σ c_n E_w f_n, and Σ c_n."""

    total: Array
    mean: float
    weight: float


@dataclass(frozen=True)
class Totals:
    """Σ_n c_n g_n and Σ_n c_n E_w f_n. Cost: N·S potentials, or N·d² flops in a Hermite space."""

    space: TangentSpace

    @property
    def width(self) -> int:
        return self.space.width

    @property
    def block_rows(self) -> int:
        return rows_of_width(self.width)

    def answer(self, block: Block, numbers: Indices) -> Sums:
        total, mean = self.space.total(block)
        # One bad number anywhere makes this sum bad.
        if not (math.isfinite(mean) and math.isfinite(float(total.sum()))):
            raise BadPotentialError(_bad_row(self.space, block, numbers))
        weight = float(len(block) if block.counts is None else block.counts.sum())
        return Sums(total, mean, weight)

    def merge(self, first: Sums, second: Sums) -> Sums:
        return _added(first, second)


class BadPotentialError(ValueError):
    """A potential is NaN or infinite at a draw of π_w."""

    def __init__(self, row: int):
        super().__init__(
            f"row {row}: its log-likelihood is NaN or infinite at a draw of the coreset posterior; "
            "check the row's values, or the model's log-likelihood for overflow"
        )
        self.row = row

    def __reduce__(self) -> tuple[Any, ...]:
        return (BadPotentialError, (self.row,))


def _bad_row(space: TangentSpace, block: Block, numbers: Indices) -> int:
    for position, number in enumerate(numbers):
        if not np.isfinite(space.total(block.take(slice(position, position + 1))).mean):
            return int(number)
    return int(numbers[0])


class Best(NamedTuple):
    """The best-aligned rows, best first, and how many rows had a constant potential."""

    points: Points
    scores: Array
    num_flat: int


@dataclass(frozen=True)
class BestRows:
    """The rows with the largest ⟨g_n, r⟩ / ‖g_n‖, leaving out `exclude` (sorted).

    Divided by ‖r‖ the score is corr_w[f_n, r]. Rows with a constant potential have no
    direction: they are counted, never returned.
    """

    space: TangentSpace
    residual: Array
    num_best: int
    exclude: Indices

    @property
    def width(self) -> int:
        return self.space.width

    @property
    def block_rows(self) -> int:
        return rows_of_width(self.width)

    def answer(self, block: Block, numbers: Indices) -> Best:
        return self.answer_embedded(self.space.embed(block, reuse=True), block, numbers)

    def answer_embedded(self, vectors: Any, block: Block, numbers: Indices) -> Best:
        """The answer of rows whose vectors are at hand."""
        squared_norms = self.space.squared_norms(vectors)
        flat = squared_norms <= 0.0
        scores = self.space.project(vectors, self.residual)
        scores /= np.sqrt(np.where(flat, 1.0, squared_norms))
        scores[flat] = -np.inf
        first, last = np.searchsorted(self.exclude, [numbers[0], numbers[-1] + 1])
        if first < last:
            scores[np.isin(numbers, self.exclude[first:last], assume_unique=True)] = -np.inf
        if block.counts is not None:
            scores[block.counts == 0.0] = -np.inf
            flat &= block.counts > 0.0
        best = _largest(scores, self.num_best)
        points = Points(numbers[best], block.take(best))
        return Best(points, scores[best], int(np.count_nonzero(flat)))

    def merge(self, first: Best, second: Best) -> Best:
        num_flat = first.num_flat + second.num_flat
        full = first.scores.size >= self.num_best
        if second.scores.size == 0 or (full and second.scores[0] <= first.scores[-1]):
            return first._replace(num_flat=num_flat)
        scores = np.concatenate([first.scores, second.scores])
        best = _largest(scores, self.num_best)
        points = first.points.append(second.points).take(best)
        return Best(points, scores[best], num_flat)


def _largest(scores: Array, number: int) -> Indices:
    """Positions of the largest finite scores, best first, ties by position."""
    if number < scores.size // 8:
        threshold = np.partition(scores, scores.size - number)[scores.size - number]
        kept = np.flatnonzero(scores >= threshold)
    else:
        kept = np.arange(scores.size)
    best = kept[np.argsort(-scores[kept], kind="stable")][:number]
    return best[np.isfinite(scores[best])]


class Slopes(NamedTuple):
    """Σ c_n f_n, its gradient and its Hessian at one θ."""

    value: float
    gradient: Array
    hessian: Array


@dataclass(frozen=True)
class Derivatives:
    """The full-data log-likelihood at θ with gradient and Hessian. Cost: N · d² flops."""

    model: Model
    theta: Array

    @property
    def width(self) -> int:
        return self.theta.size

    @property
    def block_rows(self) -> int:
        return rows_of_width(self.width)

    def answer(self, block: Block, numbers: Indices) -> Slopes:
        weights = block.multiplicity()
        value = float(self.model.sum_potentials(self.theta[None, :], block, weights)[0])
        return Slopes(value, *self.model.gradient_and_hessian(self.theta, block, weights))

    def merge(self, first: Slopes, second: Slopes) -> Slopes:
        return _added(first, second)


@dataclass(frozen=True)
class Statistics:
    """Additive sufficient statistics of a conjugate model. Cost: N · d² flops."""

    model: Any

    @property
    def width(self) -> int:
        return self.model.dim

    @property
    def block_rows(self) -> int:
        return rows_of_width(self.width)

    def answer(self, block: Block, numbers: Indices) -> Any:
        return self.model.statistics(block, block.multiplicity())

    def merge(self, first: Any, second: Any) -> Any:
        return _added(first, second)
