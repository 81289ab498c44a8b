"""Repeated rows become counts: data of few distinct rows shrinks, exactly.

Rows are the same when all their numbers are (0 and −0 are). The distinct ones are held in memory in
the order in which they first came, each counting as often as its copies did together: Σ_n c_n f_n
is the same sum with fewer terms, so every posterior is the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corebayes.data.arrays import ArrayData, row_bytes
from corebayes.data.checks import Checking, FoundValues, conclude
from corebayes.data.table import Table, Tally
from corebayes.data.warn import warn
from corebayes.types import Array, Block, Indices

# What the distinct rows may take in all, and what Python takes for each beside its numbers.
MOST_BYTES, OVERHEAD = 2**28, 250


def count_duplicates(
    table: Table, *, on_bad: str, tally: Tally, most_bytes: int | None = None
) -> Table:
    """The distinct rows with their counts; the table itself, with a warning, when there are more
    than memory may hold. Cost: one reading of all rows, which are checked on the way."""
    template = table.template
    most = (MOST_BYTES if most_bytes is None else most_bytes) // (row_bytes(template) + OVERHEAD)
    distinct, found = _Distinct(), None
    checking = Checking(table.column_names, table.target_name, np.empty(0, dtype=np.int64))
    for start, stop in table.shards:
        for numbers, block in table.parts(start, stop, None, tally):
            answer = checking.answer(block, numbers)
            found = answer if found is None else checking.merge(found, answer)
            distinct.add(_flat(block), _usable_counts(block, answer, numbers))
            if len(distinct.places) > most:
                warn(
                    f"more than {most:,} rows are distinct among the first {found.num_rows:,} of "
                    f"{table.num_rows:,}, so repeated rows are not counted: they would not fit in "
                    "the memory that this may take"
                )
                return table
    assert found is not None
    conclude(found, on_bad)
    flat = np.frombuffer(b"".join(distinct.places)).reshape(len(distinct.places), -1)
    return ArrayData(
        fields=_fields(flat, template),
        counts=np.array(distinct.counts),
        column_names=table.column_names,
        target_name=table.target_name,
        design=getattr(table, "design", None),
        duplicates="count",
    )


class _Distinct:
    """Rows by their bytes, in the order in which they came, and their counts."""

    def __init__(self) -> None:
        self.places: dict[bytes, int] = {}
        self.counts: list[float] = []

    def add(self, flat: Array, counts: Array) -> None:
        """Cost: a sort of the rows, and a look-up for each distinct one among them."""
        kept = np.flatnonzero(counts > 0.0)
        if kept.size == 0:
            return
        rows = np.ascontiguousarray(flat[kept])
        keys = rows.view([("", f"V{rows.shape[1] * 8}")]).ravel()
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        sums = np.bincount(inverse.ravel(), weights=counts[kept])
        # In the order of the rows, not of their bytes.
        for place in np.argsort(first):
            key = rows[first[place]].tobytes()
            known = self.places.setdefault(key, len(self.counts))
            if known == len(self.counts):
                self.counts.append(0.0)
            self.counts[known] += float(sums[place])


def _usable_counts(block: Block, answer: FoundValues, numbers: Indices) -> Array:
    counts = block.multiplicity().astype(np.float64)
    if answer.bad:
        counts = np.where(np.isin(numbers, np.concatenate(answer.bad)), 0.0, counts)
    return counts


def _flat(block: Block) -> Array:
    parts = [values.reshape(len(block), -1) for values in block.fields.values()]
    # Adding zero makes −0 a 0.
    return np.concatenate(parts, axis=1) + 0.0


def _fields(flat: Array, template: Block) -> dict[str, Any]:
    fields, first = dict[str, Any](), 0
    for name, values in template.fields.items():
        width = int(np.prod(values.shape[1:], dtype=int))
        part = flat[:, first : first + width]
        fields[name] = np.ascontiguousarray(part.reshape(len(flat), *values.shape[1:]))
        first += width
    return fields
