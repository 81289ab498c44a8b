"""Rows that are not in memory: read in parts, never all at once.

Where the rows lie is a `Source`: it knows how many rows each shard has and reads one shard, or
some rows of it, in parts that fit in memory. `StoredData` makes `Data` of any source: row numbers,
checked values, counts, dropped rows and rows by number are the same for all of them.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from corebayes.data.arrays import finite_float64, no_rows, row_numbers
from corebayes.data.checks import Findings
from corebayes.types import Array, Block, Indices

# Rows of a part, at most. What is in the file decides, never the machine, so that sums have the
# same bits everywhere.
PART_ROWS = 32_768


class Source(Protocol):
    """Where rows are kept. It is small, so that it can be sent to a worker."""

    @property
    def lengths(self) -> Sequence[int]:
        """Rows of each shard."""
        ...

    @property
    def column_names(self) -> tuple[str, ...]: ...

    @property
    def target_name(self) -> str: ...

    @property
    def sequential(self) -> bool:
        """Whether a shard can only be reached by passing through those before it."""
        ...

    @property
    def scattered(self) -> bool:
        """Whether single rows can be read without the rest of their shard."""
        ...

    def parts(self, shard: int, positions: Indices | None = None) -> Iterator[Block]:
        """The shard's rows, or those at the given sorted distinct positions, by parts.

        Values are float64, NaN where one is missing.
        """
        ...

    def fingerprint(self) -> str:
        """A hash of names, sizes, types and a sample of the content."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredData:
    """`Data` of a source; made and checked by `open_stored`."""

    source: Source
    counts: Array | None = None
    """How often each row counts, when it is no column of the source."""
    dropped: Indices = field(default_factory=no_rows)
    """Sorted numbers of rows left out for a NaN or infinite value. They keep their numbers,
    count zero times, and read as zero where the bad value was."""
    total_count: float = 0.0

    @property
    def num_rows(self) -> int:
        return int(self._starts[-1])

    @property
    def num_dropped(self) -> int:
        return int(self.dropped.size)

    @property
    def column_names(self) -> tuple[str, ...]:
        return self.source.column_names

    @property
    def target_name(self) -> str:
        return self.source.target_name

    @property
    def shards(self) -> Sequence[tuple[int, int]]:
        """The row ranges of the source's shards."""
        return self._shards

    @cached_property
    def _shards(self) -> tuple[tuple[int, int], ...]:
        return tuple(itertools.pairwise(self._starts.tolist()))

    @cached_property
    def _starts(self) -> Indices:
        return np.concatenate([[0], np.cumsum(self.source.lengths)]).astype(np.int64)

    @property
    def scattered(self) -> bool:
        return self.source.scattered

    @property
    def part_rows(self) -> int:
        """Rows of the largest part that `stream` holds."""
        return min(PART_ROWS, int(np.diff(self._starts).max()))

    def stream(
        self, start: int, stop: int, rows: Indices | None = None
    ) -> Iterator[tuple[Indices, Block]]:
        """Numbers and rows of a range, or of its given sorted distinct row numbers, by parts.

        Memory: one part. Cost: every shard of the range is read once, up to the last row asked.
        """
        first, last = np.searchsorted(self._starts, [start, stop - 1], side="right") - 1
        for shard in range(int(first), int(last) + 1):
            begin, end = self.shards[shard]
            if rows is None and start <= begin and end <= stop:
                # Not all numbers at once: files may claim to have any number of rows.
                for part in self.source.parts(shard):
                    these = np.arange(begin, begin + len(part))
                    begin += len(part)
                    yield these, self._usable(part, these)
                continue
            inside = np.arange(max(start, begin), min(stop, end)) if rows is None else rows
            low, high = np.searchsorted(inside, [begin, end])
            numbers = inside[low:high]
            if numbers.size == 0:
                continue
            whole = numbers.size == end - begin
            done = 0
            for part in self.source.parts(shard, None if whole else numbers - begin):
                these = numbers[done : done + len(part)]
                done += len(part)
                yield these, self._usable(part, these)

    def read(self, start: int, stop: int) -> Block:
        """The rows of one range, as float64."""
        return self._gather(np.arange(start, stop))

    def take(self, rows: Indices) -> Block:
        """The rows with these numbers, in this order; a row may be taken twice.

        Every shard that has one of them is read at most once, several at a time.
        """
        numbers = row_numbers(rows, self.num_rows)
        sorted_numbers, places = np.unique(numbers, return_inverse=True)
        if np.array_equal(sorted_numbers, numbers):
            return self._gather(sorted_numbers)
        return self._gather(sorted_numbers).take(places)

    def fingerprint(self) -> str:
        """A hash of the source's fingerprint and of counts that are none of its columns."""
        layout = [self.source.fingerprint(), list(self.column_names), self.target_name]
        digest = hashlib.blake2b(json.dumps(layout).encode(), digest_size=32)
        if self.counts is not None:
            digest.update(np.ascontiguousarray(self.counts).data)
        return digest.hexdigest()

    def _gather(self, numbers: Indices) -> Block:
        """The rows of sorted numbers, written straight to their place."""
        shards = np.unique(np.searchsorted(self._starts, numbers, side="right") - 1)
        if shards.size == 0:
            return next(self.stream(0, 1))[1].take(slice(0, 0))
        # A row tells the shapes before there is a part of which to copy them.
        first = int(numbers[0])
        model = next(self.stream(first, first + 1))[1]
        result = Block(
            {name: np.empty((numbers.size, *a.shape[1:])) for name, a in model.fields.items()},
            None if model.counts is None else np.empty(numbers.size),
        )

        def fill(shard: int) -> None:
            begin, end = self.shards[shard]
            low, high = np.searchsorted(numbers, [begin, end])
            place = int(low)
            for _, part in self.stream(begin, end, numbers[low:high]):
                here = slice(place, place + len(part))
                for name, values in part.fields.items():
                    result.fields[name][here] = values
                if result.counts is not None and part.counts is not None:
                    result.counts[here] = part.counts
                place += len(part)

        threads = 1 if self.source.sequential else min(os.cpu_count() or 1, shards.size)
        if threads == 1:
            for shard in shards.tolist():
                fill(shard)
        else:
            with ThreadPoolExecutor(threads) as pool:
                try:
                    # Asking for the answers raises what was raised.
                    list(pool.map(fill, shards.tolist()))
                finally:
                    # After an error or Ctrl-C nobody waits for the rows that are left.
                    pool.shutdown(wait=False, cancel_futures=True)
        return result

    def _usable(self, part: Block, numbers: Indices) -> Block:
        counts = part.counts if self.counts is None else self.counts[numbers]
        if self.num_dropped == 0:
            return Block(part.fields, counts)
        bad = np.flatnonzero(np.isin(numbers, self.dropped, assume_unique=True))
        counts = np.ones(len(part)) if counts is None else counts.copy()
        counts[bad] = 0.0
        fields = {name: finite_float64(values, bad) for name, values in part.fields.items()}
        return Block(fields, counts)

    def __repr__(self) -> str:
        return f"StoredData({self.num_rows:,} rows in {len(self.shards):,} shards: {self.source})"


def chosen(parts: Iterator[Block], positions: Indices | None) -> Iterator[Block]:
    """The rows at sorted positions of consecutive parts; nothing is read beyond the last."""
    if positions is None:
        yield from parts
        return
    first, passed = 0, 0
    for part in parts:
        last = int(np.searchsorted(positions, passed + len(part)))
        if last > first:
            yield part.take(positions[first:last] - passed)
        first, passed = last, passed + len(part)
        if first == positions.size:
            return


def check_stored(source: Source, *, counts: Array | None, on_bad: str) -> StoredData:
    """The source as data if all its rows are usable; see `as_data` for `on_bad`.

    Cost: one pass over the source, and memory for one part beside the bad row numbers.
    """
    num_rows = sum(source.lengths)
    if num_rows == 0:
        raise ValueError("the data is empty: it has no rows")
    if min(source.lengths) < 0 or num_rows > 2**53:
        raise ValueError(f"the data says that it has {num_rows:,} rows, which it cannot have")
    if counts is not None and counts.size != num_rows:
        raise ValueError(
            f"the numbers of rows differ: X has {num_rows:,}, counts has {counts.size:,}"
        )
    data = StoredData(source=source, counts=counts)
    findings = Findings(data)
    for _, part in data.stream(0, num_rows):
        findings.look(list(part.fields.items()), part.counts)
    bad = findings.conclude(on_bad)
    return StoredData(source=source, counts=counts, dropped=bad, total_count=findings.total_count)
