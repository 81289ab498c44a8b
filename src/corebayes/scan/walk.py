"""All rows in their order, a block at a time, for answers too large to be kept."""

from __future__ import annotations

from collections.abc import Iterator

from corebayes.data.table import Table, Tally
from corebayes.deadline import check_time
from corebayes.scan.meter import Meter
from corebayes.types import Block


def walk(table: Table, block_rows: int, meter: Meter | None = None) -> Iterator[Block]:
    """Blocks of at most so many rows, read as they are asked for. Memory: one part of the table."""
    for start, stop in table.shards:
        tally = Tally()
        for _, part in table.parts(start, stop, None, tally):
            for first in range(0, len(part), block_rows):
                check_time()
                yield part.take(slice(first, first + block_rows))
        if meter is not None:
            meter.add(tally)
