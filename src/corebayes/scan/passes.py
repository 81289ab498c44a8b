"""What one pass over the rows is made of: a query, shards, an executor and a log.

An answer is a pure function of (block of rows, query) and answers merge in row order, so
every executor returns the same bits. Nothing here holds more than one block of vectors:
memory is O(block_rows · S) for each worker, never N · S.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from corebayes.data.table import Table, Tally
from corebayes.types import Block, Indices

Answer = TypeVar("Answer")

# Numbers in a block: 4,096 rows at 100 draws, 3.3 MB. Shorter blocks stay in a nearer cache, but
# then threads spend their time handing the interpreter to each other.
BLOCK_VALUES = 409_600
# Rows in a block at most: NumPy's calls are a tenth of the work then.
MOST_ROWS = 8192


def rows_of_width(width: int) -> int:
    """Rows in a block when `width` numbers are computed of each; what numbers there are decides,
    never the machine, so that sums have the same bits everywhere."""
    return min(max(BLOCK_VALUES // width, 64), MOST_ROWS)


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
    keep: bool = False
    """Whether what is decoded may stay in memory."""

    def __call__(self, shard: Shard, stopped: Callable[[], bool] = lambda: False) -> Answered:
        """Read one shard and fold the answers of its blocks; no answer when it is stopped."""
        result, tally = None, Tally(keep=self.keep)
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
