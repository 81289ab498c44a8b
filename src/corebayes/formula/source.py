"""The columns that a design makes of Parquet files, computed again for every part that is read.

Only what the formula needs is decoded, some ten thousand rows at a time; neither the table nor the
design matrix is ever in memory as a whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from corebayes.data import numbers
from corebayes.data.arrays import COPIES_OF_A_PART
from corebayes.data.frames import arrow_column
from corebayes.data.parquet import ParquetSource
from corebayes.data.parquet_files import open_parquet, parquet_names
from corebayes.data.stored import PART_ROWS, StoredData
from corebayes.data.table import Tally
from corebayes.formula.columns import BadRowError, Missing, Values, find_missing, read, take
from corebayes.formula.design import Design, check_way, designed, factors_in
from corebayes.formula.evaluate import Columns
from corebayes.formula.parser import parse
from corebayes.formula.seen import Streamed
from corebayes.types import Block, Indices


@dataclass(frozen=True, kw_only=True)
class DesignSource:
    """X and y of a design from stored columns; made by `look_at_files` and `design_files`."""

    files: ParquetSource
    made: Design
    stand_in: Block | None = None
    """A complete row: it stands where a row misses a value, and counts zero times."""
    sequential: bool = False
    scattered: bool = False

    @property
    def lengths(self) -> Sequence[int]:
        return self.files.lengths

    @property
    def column_names(self) -> tuple[str, ...]:
        return self.made.column_names

    @property
    def target_name(self) -> str:
        return self.made.target_name

    @cached_property
    def design(self) -> Mapping[str, Any]:
        return self.made.to_data()

    @property
    def template(self) -> Block:
        counted = self.files.roles.counts is not None or self.made.drops
        fields = {"X": np.empty((0, len(self.column_names))), "y": np.empty(0)}
        return Block(fields, np.empty(0) if counted else None)

    @property
    def part_bytes(self) -> int:
        width = len(self.column_names) + len(self.files.roles.features) + 2
        return COPIES_OF_A_PART * 8 * width * min(PART_ROWS, max(self.lengths))

    @property
    def packed_bytes(self) -> int:
        return self.files.packed_bytes

    def check(self, shard: int) -> None:
        self.files.check(shard)

    def parts(self, shard: int, positions: Indices | None, tally: Tally) -> Iterator[Block]:
        first = sum(self.lengths[:shard])
        for picked, table in self.files.batches(shard, positions, tally):
            try:
                yield self._block(table if isinstance(picked, slice) else table.take(picked))
            except BadRowError as error:
                row = error.row if isinstance(picked, slice) else int(picked[error.row])
                raise BadRowError(first + row, error.text) from None
            first += table.num_rows

    def fingerprint(self) -> str:
        """Of the files and of what is made of them."""
        written = json.dumps([self.files.fingerprint(), self.design], sort_keys=True, default=str)
        return hashlib.blake2b(written.encode(), digest_size=32).hexdigest()

    def _block(self, table: Any) -> Block:
        columns = read(table, self.made.needs)
        name, counts = self.files.roles.counts, None
        if name is not None:
            counts = arrow_column(table.column(name)).copy()
        gaps = find_missing(columns)
        if gaps is None:
            block = block_of(self.made, columns)
            counts = np.ones(len(block)) if self.made.drops and counts is None else counts
            return Block(block.fields, counts)
        if self.stand_in is None:
            row = int(gaps.rows.argmax())
            raise BadRowError(row, f"column {gaps.first!r} is missing")
        fields = {
            field: np.repeat(values, gaps.rows.size, axis=0)
            for field, values in self.stand_in.fields.items()
        }
        if not gaps.rows.all():
            for field, values in block_of(self.made, take(columns, ~gaps.rows)).fields.items():
                fields[field][~gaps.rows] = values
        return Block(fields, np.where(gaps.rows, 0.0, 1.0 if counts is None else counts))

    def __repr__(self) -> str:
        return f"{len(self.files.pieces):,} Parquet files, {self.made.formula}"


def block_of(design: Design, columns: Columns) -> Block:
    """X and y of complete columns."""
    return Block({"X": design.apply(columns), "y": design.target_of(columns)})


class LookedAt(NamedTuple):
    """Rows that are still to be opened, and what it took to know their columns."""

    table: StoredData
    design: Design
    gaps: Missing | None
    tally: Tally


def look_at_files(formula: str, source: Any, *, counts: str | None, missing: str) -> LookedAt:
    """The design of a formula, from one reading of the files or a few."""
    drops = check_way(missing)
    parsed = parse(formula, tuple(parquet_names(source)), counts)
    files = open_parquet(source, None, parsed.columns, counts, any_type=True)
    nodes = [parsed.target, *parsed.beside.values(), *factors_in(parsed).values()]
    groups, tally = [part.columns for part in parsed.groups], Tally()
    batches = partial(_columns, files, parsed.columns, tally)
    seen = Streamed(batches, nodes, groups, drops=drops, packed=files.packed_bytes)
    design = designed(formula, parsed, seen, drops=drops)
    made = DesignSource(files=files, made=design, stand_in=_stand_in(design, seen))
    return LookedAt(StoredData(source=made), design, seen.gaps, tally)


def design_files(design: Design, source: Any, *, counts: Any) -> LookedAt:
    """What a design that is known makes of other files."""
    named = counts if isinstance(counts, str) else None
    given = None if named is not None else numbers.counts(counts)
    files, tally = open_parquet(source, None, design.needs, named, any_type=True), Tally()
    stand_in, gaps = None, None
    if design.drops:
        names = design.needs
        batches = partial(_columns, files, names, tally)
        seen = Streamed(batches, [], [], drops=True, packed=files.packed_bytes)
        stand_in, gaps = _stand_in(design, seen), seen.gaps
    made = DesignSource(files=files, made=design, stand_in=stand_in)
    return LookedAt(StoredData(source=made, counts=given), design, gaps, tally)


def _stand_in(design: Design, seen: Streamed) -> Block | None:
    return None if seen.first is None else block_of(design, seen.first)


def _columns(
    files: ParquetSource, names: Sequence[str], tally: Tally
) -> Iterator[dict[str, Values]]:
    for shard in range(len(files.lengths)):
        for _, table in files.batches(shard, None, tally):
            yield read(table, names)
