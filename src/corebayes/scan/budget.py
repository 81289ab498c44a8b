"""How much memory a pass may take: what a person writes, as rows in a block.

    memory = interpreter and libraries + threads · (part of the data + blocks of numbers)

The budget is for each process. It decides the rows in a block and how many threads work at once,
and since only the first can change the bits of a sum, the first follows from the budget alone,
never from the machine.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from corebayes.data.streams import is_streamed
from corebayes.scan.query import BLOCK_VALUES, Query
from corebayes.sizes import num_bytes, written
from corebayes.types import Data

# What Python, NumPy, SciPy, pyarrow and numba take before any row is read: 195 MB measured.
LIBRARIES = 200_000_000
# Arrays of a block's size that a tangent space holds at once, at most.
ARRAYS_OF_A_BLOCK = 6
# A part is there as it was decoded, as a matrix, and as the rows picked of it.
COPIES_OF_A_PART = 3
# Fewer rows in a block are not worth the calls.
MIN_ROWS = 16


@dataclass(frozen=True)
class Budget:
    """Bytes that a process may take in all."""

    num_bytes: int

    def block_rows(self, query: Query[Any], data: Data) -> int:
        """Rows to answer for at once; an error, before anything is allocated, when none fit."""
        rows = query.block_rows
        # What the query says of its own accord, or what its rows would fill a block with.
        width = int(getattr(query, "width", max(1, BLOCK_VALUES // rows)))
        of_a_row = 8 * ARRAYS_OF_A_BLOCK * width
        fitting = (self.num_bytes - LIBRARIES - _part_bytes(data)) // of_a_row
        if fitting < min(rows, MIN_ROWS):
            needed = LIBRARIES + _part_bytes(data) + of_a_row * min(rows, MIN_ROWS)
            raise self._refusal(data, needed, f"{width:,} numbers for each row of a block")
        return int(min(rows, fitting))

    def num_threads(self, data: Data) -> int:
        """Threads whose parts and blocks fit side by side; an error when not even one does."""
        part, block = _part_bytes(data), 8 * ARRAYS_OF_A_BLOCK * BLOCK_VALUES
        left = self.num_bytes - LIBRARIES
        if left < part:
            raise self._refusal(data, LIBRARIES + part, "nothing but the rows")
        return max(1, min(os.cpu_count() or 1, left // (part + block)))

    def _refusal(self, data: Data, needed: int, what: str) -> MemoryBudgetError:
        return MemoryBudgetError(
            f"memory={written(self.num_bytes)} is not enough: Python and its libraries take "
            f"{written(LIBRARIES)}, {_part_rows(data):,} rows read at once "
            f"{written(_part_bytes(data))}, and with {what} that makes {written(needed)}; give at "
            "least that, or use fewer draws, fewer columns or smaller shards"
        )


class MemoryBudgetError(ValueError):
    """What was asked for cannot be done in the memory that it may take."""


def as_budget(memory: Any) -> Budget | None:
    """The budget of `memory="500MB"` or of a number of bytes; None stays None.

    >>> as_budget("1.5 GB")
    Budget(num_bytes=1500000000)
    """
    if memory is None or isinstance(memory, Budget):
        return memory
    return Budget(num_bytes(memory, "memory"))


def _part_rows(data: Data) -> int:
    if is_streamed(data):
        return data.part_rows
    return max(stop - start for start, stop in data.shards)


def _part_bytes(data: Data) -> int:
    """Memory for the rows that are read at once."""
    row = data.read(0, 1)
    numbers = 1 + sum(values.size for values in row.fields.values())
    return 8 * COPIES_OF_A_PART * numbers * _part_rows(data)
