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

from corebayes.data.arrays import row_bytes
from corebayes.data.limits import num_bytes, written
from corebayes.data.table import Table
from corebayes.scan.passes import BLOCK_VALUES, Query

# What Python, NumPy, SciPy, pyarrow and numba with compiled kernels take: 287 MB measured as the
# peak of a build and a certificate of 20,000 rows of Parquet, 311 MB when it compiles them; and
# what drawing with NUTS takes beside them: 205 MB with nutpie and all that it loads.
LIBRARIES, SAMPLING = 320_000_000, 230_000_000
# What a construction holds beside the pass: a little, and its pools of up to 20,000 rows as rows,
# vectors and copies of them.
LITTLE, POOL_ROWS, COPIES_OF_A_POOL = 20_000_000, 20_000, 12
# Arrays of a block's size that a tangent space holds at once, at most.
ARRAYS_OF_A_BLOCK = 6
# Fewer rows in a block are not worth the calls.
MIN_ROWS = 16


@dataclass(frozen=True)
class Budget:
    """Bytes that a process may take in all."""

    num_bytes: int
    libraries: int = LIBRARIES

    @property
    def left(self) -> int:
        """What the libraries leave for rows and numbers."""
        return self.num_bytes - self.libraries

    def with_sampling(self) -> Budget:
        """The budget of a process that also draws with NUTS."""
        return Budget(self.num_bytes, LIBRARIES + SAMPLING)

    def block_rows(self, query: Query[Any], data: Table) -> int:
        """Rows to answer for at once; an error, before anything is allocated, when none fit."""
        rows = query.block_rows
        # What the query says of its own accord, or what its rows would fill a block with.
        width = int(getattr(query, "width", max(1, BLOCK_VALUES // rows)))
        of_a_row = 8 * ARRAYS_OF_A_BLOCK * width
        fitting = (self.left - _held(data) - data.part_bytes) // of_a_row
        if fitting < min(rows, MIN_ROWS):
            needed = self.libraries + _held(data) + data.part_bytes + of_a_row * min(rows, MIN_ROWS)
            raise self._refusal(data, needed, f"{width:,} numbers for each row of a block")
        return int(min(rows, fitting))

    def num_threads(self, data: Table) -> int:
        """Threads whose parts and blocks fit side by side; an error when not even one does."""
        part, block = data.part_bytes, 8 * ARRAYS_OF_A_BLOCK * BLOCK_VALUES
        left = self.left - _held(data)
        if left < part:
            raise self._refusal(data, self.libraries + _held(data) + part, "nothing but the rows")
        return max(1, min(os.cpu_count() or 1, left // (part + block)))

    def kept_bytes(self, most: int) -> int:
        """Memory for rows that are kept: a sixteenth of what the libraries leave."""
        return max(0, min(most, self.left // 16))

    def _refusal(self, data: Table, needed: int, what: str) -> MemoryBudgetError:
        return MemoryBudgetError(
            f"memory={written(self.num_bytes)} is not enough: Python and its libraries take "
            f"{written(self.libraries)}, pools of rows {written(_held(data))}, "
            f"{data.part_rows:,} rows read at once {written(data.part_bytes)}, and with {what} "
            f"that makes {written(needed)}; give at least that, "
            "or use fewer draws, fewer columns or smaller shards"
        )


class MemoryBudgetError(ValueError):
    """What was asked for cannot be done in the memory that it may take."""


def as_budget(memory: Any) -> Budget | None:
    """The budget of `memory="500MB"` or of a number of bytes; None stays None.

    >>> as_budget("1.5 GB")
    Budget(num_bytes=1500000000, libraries=320000000)
    """
    if memory is None or isinstance(memory, Budget):
        return memory
    return Budget(num_bytes(memory, "memory"))


def _held(data: Table) -> int:
    return LITTLE + COPIES_OF_A_POOL * min(POOL_ROWS, data.num_rows) * row_bytes(data.template)
