"""Several tables as one: the rows of the first, then those of the second, and so on.

Row numbers run on from one table to the next, so a row that is number k of the third table has the
number of all rows before it, plus k.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from typing import Any

import numpy as np

from corebayes.data.arrays import together
from corebayes.data.table import Table, Tally
from corebayes.data.units import with_equal_places
from corebayes.types import Block, Indices

# The rows of units one by one, what tells units apart, and how many rows there were.
OF_UNITS = ("flat", "unit_name", "original_rows")


@dataclass(frozen=True, kw_only=True, eq=False)
class Joined:
    """Tables one below the other; made by `join`."""

    tables: tuple[Table, ...]

    @property
    def num_rows(self) -> int:
        return int(self._starts[-1])

    @property
    def total_count(self) -> float | None:
        """Σ_n c_n where every table knows it beforehand."""
        counts = [getattr(table, "total_count", None) for table in self.tables]
        known = [float(count) for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    @property
    def column_names(self) -> tuple[str, ...]:
        return next((t.column_names for t in self.tables if t.column_names), ())

    @property
    def target_name(self) -> str:
        return next((t.target_name for t in self.tables if t.target_name != "y"), "y")

    @property
    def design(self) -> Any:
        return self._first("design")

    @property
    def duplicates(self) -> str | None:
        return self._first("duplicates")

    def _first(self, name: str) -> Any:
        """What one of the tables knows, where one does."""
        return next((d for t in self.tables if (d := getattr(t, name, None)) is not None), None)

    @property
    def template(self) -> Block:
        counted = any(table.template.counts is not None for table in self.tables)
        return Block(self.tables[0].template.fields, np.empty(0) if counted else None)

    @property
    def shards(self) -> Sequence[tuple[int, int]]:
        """The shards of every table, in order."""
        return self._shards

    @cached_property
    def _shards(self) -> tuple[tuple[int, int], ...]:
        return tuple(
            (int(first) + start, int(first) + stop)
            for first, table in zip(self._starts, self.tables, strict=False)
            for start, stop in table.shards
        )

    @cached_property
    def _starts(self) -> Indices:
        lengths = [table.num_rows for table in self.tables]
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    def __getattr__(self, name: str) -> Any:
        """What only tables of units have, where all of these are such."""
        if name not in OF_UNITS:
            raise AttributeError(name)
        values = [getattr(table, name) for table in self.tables]
        if name == "flat":
            return join(values)
        return values[0] if name == "unit_name" else sum(values)

    @property
    def part_rows(self) -> int:
        return max(table.part_rows for table in self.tables)

    @property
    def part_bytes(self) -> int:
        return max(table.part_bytes for table in self.tables)

    @property
    def scattered(self) -> bool:
        return all(table.scattered for table in self.tables)

    @property
    def sequential(self) -> bool:
        return any(table.sequential for table in self.tables)

    def parts(
        self, start: int, stop: int, rows: Indices | None, tally: Tally
    ) -> Iterator[tuple[Indices, Block]]:
        parts = self._parts(start, stop, rows, tally)
        if rows is not None and self.scattered:
            # In one part, as from one table, so that sums have the same bits.
            yield rows, together([block for _, block in parts])
        else:
            yield from parts

    def _parts(
        self, start: int, stop: int, rows: Indices | None, tally: Tally
    ) -> Iterator[tuple[Indices, Block]]:
        counted = self.template.counts is not None
        first, last = np.searchsorted(self._starts, [start, stop - 1], side="right") - 1
        for place in range(int(first), int(last) + 1):
            begin, end = int(self._starts[place]), int(self._starts[place + 1])
            inside = (max(start, begin) - begin, min(stop, end) - begin)
            chosen = None
            if rows is not None:
                low, high = np.searchsorted(rows, [begin, end])
                chosen = rows[low:high] - begin
                if chosen.size == 0:
                    continue
            for numbers, block in self.tables[place].parts(*inside, chosen, tally):
                if counted and block.counts is None:
                    block = Block(block.fields, np.ones(len(block)))
                yield numbers + begin, block

    def without(self, bad: Indices) -> Joined:
        places = np.searchsorted(bad, self._starts)
        tables = tuple(
            table.without(bad[low:high] - first) if high > low else table
            for table, first, low, high in zip(
                self.tables, self._starts, places, places[1:], strict=False
            )
        )
        return replace(self, tables=tables)

    def fingerprint(self, tally: Tally) -> str:
        return joined_fingerprint([table.fingerprint(tally) for table in self.tables])

    def __repr__(self) -> str:
        return "; ".join(str(table) for table in self.tables)


def joined_fingerprint(fingerprints: Sequence[str]) -> str:
    """The fingerprint of tables one below the other, from theirs."""
    written = json.dumps(["joined", *fingerprints]).encode()
    return hashlib.blake2b(written, digest_size=32).hexdigest()


def join(tables: Sequence[Table]) -> Table:
    """The tables as one, if their fields and columns agree."""
    tables = with_equal_places(tables)
    for place, table in enumerate(tables[1:], 1):
        difference = table_difference(tables[0], table)
        if difference is not None:
            raise ValueError(
                f"the rows of source 0 and source {place} do not go together: {difference}"
            )
    return tables[0] if len(tables) == 1 else Joined(tables=tuple(tables))


def table_difference(first: Any, second: Any) -> str | None:
    """What keeps the rows of two tables from standing below each other, in words: the column by
    its name where columns have names."""
    names = first.column_names, second.column_names
    if all(names) and len(names[0]) != len(names[1]):
        return names_difference(*names)
    shapes = [
        {name: values.shape[1:] for name, values in table.template.fields.items()}
        for table in (first, second)
    ]
    for name in [*shapes[0], *(set(shapes[1]) - set(shapes[0]))]:
        ours, theirs = (written_shape(shape.get(name)) for shape in shapes)
        if ours != theirs:
            return f"the field {name!r} is {ours} in one and {theirs} in the other"
    return names_difference(*names) if all(names) else None


def written_shape(shape: tuple[int, ...] | None) -> str:
    if shape is None:
        return "missing"
    return "a number" if shape == () else f"{' × '.join(map(str, shape))} numbers"


def names_difference(first: Sequence[str], second: Sequence[str]) -> str | None:
    """The first column that is not the same in both."""
    for place, (ours, theirs) in enumerate(zip_longest(first, second), start=1):
        if ours != theirs:
            one, other = ("missing" if name is None else repr(name) for name in (ours, theirs))
            return f"column {place} is {one} in one and {other} in the other"
    return None
