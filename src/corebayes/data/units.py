"""Units of several rows (the visits of a patient) as the rows of a table: whole, or not at all.

A unit's potential is the sum of its rows', F_u(θ) = Σ_{n ∈ u} c_n f_n(θ), so a table of units is
like any other, and every construction, certificate and weight counts units. In a block a unit has
as many places as the longest unit has rows; places beyond its own count zero times. The rows behind
it are in memory once, sorted by unit, and only the block at hand has empty places.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from corebayes.data.arrays import COPIES_OF_A_PART, ArrayData, concatenated, row_bytes, usable
from corebayes.data.checks import Checking, conclude
from corebayes.data.columns import find
from corebayes.data.table import Table, Tally
from corebayes.data.unit_labels import UnitLabels, labels_of_array
from corebayes.types import Array, Block, Indices

# Fields that a block of units has beside those of its rows: how often each row counts, zero where
# there is none, and its number in the table that was opened.
COUNT, ROW = "unit_count", "unit_row"
# Rows of a shard, empty places included.
SHARD_PLACES = 16_384


def noun_of(template: Block) -> str:
    """What is counted: rows, or units of several rows."""
    return "units" if COUNT in template.fields else "rows"


@dataclass(frozen=True, kw_only=True, eq=False)
class UnitTable:
    """The units of a table; made by `open_units`."""

    flat: ArrayData
    """The rows, sorted by unit, those of one unit in their order."""
    numbers: Indices
    """Their numbers in the table that was opened."""
    starts: Indices
    """Where each unit begins, and the end."""
    labels: Any
    """What the units are called in their column."""
    length: int
    """Places of a unit: at least the rows of the longest."""
    unit_name: str
    original_rows: int
    """Rows of the table that was opened."""
    counts: Array | None = None
    scattered: bool = True
    sequential: bool = False

    @property
    def num_rows(self) -> int:
        return self.labels.size

    @property
    def total_count(self) -> float:
        return float(self.num_rows if self.counts is None else self.counts.sum())

    @property
    def column_names(self) -> tuple[str, ...]:
        return self.flat.column_names

    @property
    def target_name(self) -> str:
        return self.flat.target_name

    @property
    def design(self) -> Any:
        """How a formula made the columns of the rows."""
        return self.flat.design

    @property
    def template(self) -> Block:
        return self._block(np.empty(0, dtype=np.int64), Tally())

    @property
    def part_rows(self) -> int:
        return max(1, SHARD_PLACES // self.length)

    @property
    def part_bytes(self) -> int:
        return COPIES_OF_A_PART * row_bytes(self.template) * self.part_rows

    @property
    def shards(self) -> Sequence[tuple[int, int]]:
        starts = range(0, self.num_rows, self.part_rows)
        return tuple((start, min(start + self.part_rows, self.num_rows)) for start in starts)

    def parts(
        self, start: int, stop: int, rows: Indices | None, tally: Tally
    ) -> Iterator[tuple[Indices, Block]]:
        units = np.arange(start, stop) if rows is None else rows
        yield units, self._block(units, tally)

    def _block(self, units: Indices, tally: Tally) -> Block:
        lengths: Indices = self.starts[units + 1] - self.starts[units]
        # Positions of all rows of these units, and the place of each in its unit.
        before = np.repeat(np.cumsum(lengths) - lengths, lengths)
        places: Indices = np.arange(int(lengths.sum()), dtype=np.int64) - before
        positions: Indices = np.repeat(self.starts[units], lengths) + places
        of = np.repeat(np.arange(units.size), lengths), places
        if positions.size:
            ((_, block),) = self.flat.parts(0, self.flat.num_rows, positions, tally)
        else:
            block = self.flat.template
        values = {**block.fields, COUNT: block.multiplicity(), ROW: self.numbers[positions]}
        fields = dict[str, Array]()
        for name, array in values.items():
            fields[name] = np.zeros((units.size, self.length, *array.shape[1:]))
            fields[name][of] = array
        return Block(fields, None if self.counts is None else self.counts[units])

    def without(self, bad: Indices) -> UnitTable:
        counts = np.ones(self.num_rows) if self.counts is None else self.counts.copy()
        counts[bad] = 0.0
        return replace(self, counts=counts)

    def fingerprint(self, tally: Tally) -> str:
        digest = hashlib.blake2b(self.flat.fingerprint(tally).encode(), digest_size=32)
        digest.update(np.ascontiguousarray(self.starts).data)
        return digest.hexdigest()

    def __repr__(self) -> str:
        return f"{self.num_rows:,} units of {self.flat.num_rows:,} rows: {self.flat}"


def with_equal_places(tables: Sequence[Table]) -> Sequence[Table]:
    """Tables of units with as many places for each as the longest unit of all needs."""
    longest = max((t.length for t in tables if isinstance(t, UnitTable)), default=0)
    return [replace(t, length=longest) if isinstance(t, UnitTable) else t for t in tables]


def padded(fields: Mapping[str, Array], length: int) -> dict[str, Array]:
    """Fields of units with more places for each."""
    missing = length - fields[COUNT].shape[1]
    return {
        name: np.pad(values, [(0, 0), (0, missing), *[(0, 0)] * (values.ndim - 2)])
        for name, values in fields.items()
    }


def open_units(table: Table, unit: Any, *, on_bad: str, tally: Tally) -> UnitTable:
    """The units of a table by a column of X, by a field, or by a value or label for each row.

    Bad rows, and units of which no row counts, are left out. Memory: all rows.
    """
    checking = Checking(table.column_names, table.target_name, np.empty(0, dtype=np.int64))
    pieces, answers = list[tuple[Indices, Block]](), list[Any]()
    for start, stop in table.shards:
        for numbers, block in table.parts(start, stop, None, tally):
            pieces.append((numbers, block))
            answers.append(checking.answer(block, numbers))
    found = answers[0]
    for answer in answers[1:]:
        found = checking.merge(found, answer)
    bad = conclude(found, on_bad)
    numbers = np.concatenate([piece for piece, _ in pieces])
    rows = usable(concatenated([block for _, block in pieces]), bad)
    labels = None
    if isinstance(unit, str):
        names, fields, units = _split(rows, table.column_names, unit)
        name = unit
    else:
        names, fields = table.column_names, dict(rows.fields)
        units, labels, name = _labelled(unit, len(rows))
    kept = np.flatnonzero(rows.multiplicity() > 0.0)
    order = kept[np.argsort(units[kept], kind="stable")]
    used, starts = np.unique(units[order], return_index=True)
    ends = np.append(starts, order.size).astype(np.int64)
    flat = ArrayData(
        fields={key: np.ascontiguousarray(values[order]) for key, values in fields.items()},
        counts=None if rows.counts is None else np.ascontiguousarray(rows.counts[order]),
        column_names=names,
        target_name=table.target_name,
        design=getattr(table, "design", None),
    )
    return UnitTable(
        flat=flat,
        numbers=numbers[order],
        starts=ends,
        labels=used if labels is None else labels[used],
        length=int(np.diff(ends).max()),
        unit_name=name,
        original_rows=table.num_rows,
    )


def _labelled(unit: Any, num_rows: int) -> UnitLabels:
    found = unit if isinstance(unit, UnitLabels) else labels_of_array(unit)
    if found.numbers.shape != (num_rows,):
        shape = np.shape(found.numbers if isinstance(unit, UnitLabels) else unit)
        raise ValueError(
            f"unit must be a column, or one value for each of the {num_rows:,} rows, "
            f"got the shape {shape}"
        )
    return found


def _split(
    rows: Block, column_names: tuple[str, ...], unit: str
) -> tuple[tuple[str, ...], dict[str, Array], Array]:
    """Names and fields without the units, and the unit of every row."""
    fields = dict(rows.fields)
    if unit in fields and fields[unit].ndim == 1 and unit != "y":
        return column_names, fields, fields.pop(unit)
    place = find(unit, column_names, "unit")
    others = [k for k in range(len(column_names)) if k != place]
    if not others:
        raise ValueError(f"unit: column {unit!r} is the only one of X")
    units = fields["X"][:, place]
    fields["X"] = np.ascontiguousarray(fields["X"][:, others])
    return tuple(column_names[k] for k in others), fields, units
