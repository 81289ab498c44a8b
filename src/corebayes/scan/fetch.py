"""Single rows by their numbers, written straight to their place."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from corebayes.data.table import Table, Tally
from corebayes.types import Block, Indices


def fetch(table: Table, numbers: Indices, threads: int | None = None) -> tuple[Block, Tally]:
    """The rows of sorted distinct numbers, and what was decoded for them.

    Every shard that has one of them is read once, several at a time.
    """
    template = table.template
    result = Block(
        {name: np.empty((numbers.size, *a.shape[1:])) for name, a in template.fields.items()},
        None if template.counts is None else np.empty(numbers.size),
    )
    starts = np.array([start for start, _ in table.shards])
    shards = np.unique(np.searchsorted(starts, numbers, side="right") - 1).tolist()

    def fill(shard: int) -> Tally:
        tally = Tally()
        start, stop = table.shards[shard]
        low, high = np.searchsorted(numbers, [start, stop])
        place = int(low)
        for _, part in table.parts(start, stop, numbers[low:high], tally):
            here = slice(place, place + len(part))
            for name, values in part.fields.items():
                result.fields[name][here] = values
            if result.counts is not None and part.counts is not None:
                result.counts[here] = part.counts
            place += len(part)
        return tally

    threads = 1 if table.sequential else min(threads or os.cpu_count() or 1, len(shards))
    if threads <= 1:
        tallies = [fill(shard) for shard in shards]
    else:
        with ThreadPoolExecutor(threads) as pool:
            try:
                tallies = list(pool.map(fill, shards))
            finally:
                # After an error or Ctrl-C nobody waits for the rows that are left.
                pool.shutdown(wait=False, cancel_futures=True)
    return result, Tally(sum(t.rows for t in tallies), sum(t.num_bytes for t in tallies))
