"""Rows that are not in memory: read in parts, never all at once.

Where the rows lie is a `RowSource`: it knows how many rows each shard has and reads one shard, or
some rows of it, in parts that fit in memory. `StoredData` makes a `Table` of any source: row
numbers, counts and dropped rows are the same for all of them.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from corebayes.data.arrays import (
    COPIES_OF_A_PART,
    no_rows,
    row_bytes,
    together,
    usable,
)
from corebayes.data.decoded import Decoded
from corebayes.data.limits import USUAL_RATIO
from corebayes.data.table import Tally
from corebayes.types import Array, Block, Indices

# Rows of a part, at most. What is in the file decides, never the machine, so that sums have the
# same bits everywhere.
PART_ROWS = 32_768


class RowSource(Protocol):
    """Where rows are kept. It is small, so that it can be sent to a worker."""

    @property
    def lengths(self) -> Sequence[int]:
        """Rows of each shard."""
        ...

    @property
    def template(self) -> Block:
        """The fields without a row."""
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

    def parts(self, shard: int, positions: Indices | None, tally: Tally) -> Iterator[Block]:
        """The shard's rows, or those at the given sorted distinct positions, by parts.

        Values are float64, NaN where one is missing. What is decoded for it is counted.
        """
        ...

    def fingerprint(self) -> str:
        """A hash of names, sizes, types and a sample of the content."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredData:
    """The table of a source."""

    source: RowSource
    counts: Array | None = None
    """How often each row counts, when it is no column of the source."""
    dropped: Indices = field(default_factory=no_rows)
    """Sorted numbers of rows left out for a NaN or infinite value. They keep their numbers,
    count zero times, and read as zero where the bad value was."""
    decoded: Decoded = field(default_factory=Decoded, repr=False)

    @property
    def num_rows(self) -> int:
        return int(self._starts[-1])

    @property
    def column_names(self) -> tuple[str, ...]:
        return self.source.column_names

    @property
    def target_name(self) -> str:
        return self.source.target_name

    @property
    def design(self) -> Any:
        """How a formula made the columns, as plain data; None without one."""
        return getattr(self.source, "design", None)

    @property
    def template(self) -> Block:
        given = self.source.template
        counted = given.counts is not None or self.counts is not None or self.dropped.size
        return Block(given.fields, np.empty(0) if counted else None)

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
    def sequential(self) -> bool:
        return self.source.sequential

    @property
    def part_rows(self) -> int:
        return int(np.diff(self._starts).max())

    @property
    def part_bytes(self) -> int:
        own = getattr(self.source, "part_bytes", None)
        if own is not None:
            return own
        return COPIES_OF_A_PART * row_bytes(self.template) * self.part_rows

    def parts(
        self, start: int, stop: int, rows: Indices | None, tally: Tally
    ) -> Iterator[tuple[Indices, Block]]:
        """Memory: one part, or the given rows where single rows can be read.

        Cost: every shard of the range is read once, up to the last row.
        """
        parts = self._parts(start, stop, rows, tally)
        if rows is not None and self.scattered:
            # In one part, as from memory, so that sums have the same bits.
            yield rows, together([block for _, block in parts])
        else:
            yield from parts

    def _parts(
        self, start: int, stop: int, rows: Indices | None, tally: Tally
    ) -> Iterator[tuple[Indices, Block]]:
        first, last = np.searchsorted(self._starts, [start, stop - 1], side="right") - 1
        for shard in range(int(first), int(last) + 1):
            begin, end = self.shards[shard]
            if rows is None and start <= begin and end <= stop:
                # Not all numbers at once: files may claim to have any number of rows.
                for part in self._shard(shard, None, tally):
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
            for part in self._shard(shard, None if whole else numbers - begin, tally):
                these = numbers[done : done + len(part)]
                done += len(part)
                yield these, self._usable(part, these)

    def _shard(self, shard: int, positions: Indices | None, tally: Tally) -> Iterator[Block]:
        """Its parts, from memory if it was kept."""
        source: Any = self.source
        if positions is None and not tally.keep:
            self.decoded.forget()
        kept = self.decoded.get(shard)
        if kept is not None:
            source.check(shard)
            return chosen(iter(kept), positions)
        parts = source.parts(shard, positions, tally)
        keep = positions is None and tally.keep and self._may_stay
        return self.decoded.keeping(shard, parts) if keep else parts

    @cached_property
    def _may_stay(self) -> bool:
        """Whether decoded shards may stay in memory: not those of a source that cannot tell a
        change without reading, and not what next to nothing unpacks to."""
        packed = getattr(self.source, "packed_bytes", 0)
        return row_bytes(self.template) * self.num_rows <= USUAL_RATIO * packed

    def without(self, bad: Indices) -> StoredData:
        return replace(self, dropped=bad)

    def fingerprint(self, tally: Tally) -> str:
        """A hash of the source's fingerprint and of counts that are none of its columns."""
        layout = [self.source.fingerprint(), list(self.column_names), self.target_name]
        digest = hashlib.blake2b(json.dumps(layout).encode(), digest_size=32)
        if self.counts is not None:
            digest.update(np.ascontiguousarray(self.counts).data)
        return digest.hexdigest()

    def _usable(self, part: Block, numbers: Indices) -> Block:
        counts = part.counts if self.counts is None else self.counts[numbers]
        block = Block(part.fields, counts)
        if self.dropped.size == 0:
            return block
        if block.counts is None:
            block = Block(block.fields, np.ones(len(block)))
        bad = np.flatnonzero(np.isin(numbers, self.dropped, assume_unique=True))
        return usable(block, bad)

    def __repr__(self) -> str:
        return f"{self.source}"


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
