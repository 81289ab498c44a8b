"""Some columns of a table, and some of its rows left out: a nested model, a fold."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from corebayes.data.arrays import no_rows
from corebayes.data.columns import find
from corebayes.data.table import Table, Tally
from corebayes.types import Array, Block, Indices


@dataclass(frozen=True, kw_only=True)
class Narrowing:
    """What a model sees of a row: columns of X, and whether the row counts at all."""

    columns: tuple[int, ...] | None = None
    """Positions in X; None for all."""
    leave_out: Mapping[str, float] = field(default_factory=dict[str, float])
    """Rows with this value in this field count zero times: `{"fold": 3}`."""

    @property
    def is_whole(self) -> bool:
        return self.columns is None and not self.leave_out

    def mask(self, block: Block) -> Array | None:
        """One for rows that count and zero for those left out; None when all count."""
        if not self.leave_out:
            return None
        kept = np.ones(len(block), dtype=bool)
        for name, value in self.leave_out.items():
            kept &= block.fields[name] != value
        return kept.astype(np.float64)

    def fields(self, block: Block) -> Mapping[str, Array]:
        if self.columns is None:
            return block.fields
        return {**block.fields, "X": np.ascontiguousarray(block.X[..., list(self.columns)])}

    def of(self, block: Block) -> Block:
        """The block as the model sees it."""
        mask = self.mask(block)
        counts = block.counts if mask is None else block.multiplicity() * mask
        return Block(self.fields(block), counts)

    def names(self, names: Sequence[str]) -> tuple[str, ...]:
        if self.columns is None:
            return tuple(names)
        # What the whole model calls coefficients of columns without names.
        return tuple(names[k] if names else f"beta[{k}]" for k in self.columns)


def narrowing(
    template: Block,
    column_names: Sequence[str],
    features: Sequence[Any] | None,
    leave_out: Mapping[str, float] | None,
) -> Narrowing:
    """From names of features (positions where columns have no names) and fields."""
    for name in leave_out or {}:
        if name not in template.fields or template.fields[name].ndim != 1:
            known = [n for n, values in template.fields.items() if values.ndim == 1]
            raise ValueError(
                f"leave_out: the rows have no field {name!r} of one number a row, "
                f"only {', '.join(known) or 'none'}"
            )
    if features is None:
        return Narrowing(leave_out=dict(leave_out or {}))
    if isinstance(features, str):
        raise ValueError(f"features must be a list of column names, got the string {features!r}")
    known = tuple(column_names) or tuple(map(str, range(template.X.shape[-1])))
    columns = tuple(find(name, known, "features") for name in features)
    if not columns or len(set(columns)) < len(columns):
        raise ValueError(f"features must name at least one column, each once, got {list(features)}")
    return Narrowing(columns=columns, leave_out=dict(leave_out or {}))


@dataclass(frozen=True, kw_only=True, eq=False)
class Narrowed:
    """A table as a narrowing shows it."""

    table: Table
    narrowing: Narrowing
    apart: Indices = field(default_factory=no_rows)
    """Sorted numbers of rows that count zero times."""

    def __getattr__(self, name: str) -> Any:
        if name in ("num_rows", "shards", "part_rows", "scattered", "sequential", "target_name"):
            return getattr(self.table, name)
        if name == "flat":
            # The rows of units, which a model is bound to.
            of_units: Any = self.table
            return replace(self, table=of_units.flat, apart=no_rows())
        raise AttributeError(name)

    @property
    def column_names(self) -> tuple[str, ...]:
        return self.narrowing.names(self.table.column_names)

    @property
    def template(self) -> Block:
        return self._shown(no_rows(), self.table.template)

    @property
    def part_bytes(self) -> int:
        """As decoded, and once more as it is shown."""
        return 2 * self.table.part_bytes

    def parts(
        self, start: int, stop: int, rows: Indices | None, tally: Tally
    ) -> Iterator[tuple[Indices, Block]]:
        for numbers, block in self.table.parts(start, stop, rows, tally):
            yield numbers, self._shown(numbers, block)

    def _shown(self, numbers: Indices, block: Block) -> Block:
        block = self.narrowing.of(block)
        if self.apart.size == 0:
            return block
        counts = np.where(np.isin(numbers, self.apart), 0.0, block.multiplicity())
        return Block(block.fields, counts)

    def without(self, bad: Indices) -> Narrowed:
        return replace(self, table=self.table.without(bad))

    def fingerprint(self, tally: Tally) -> str:
        shown: list[Any] = [self.narrowing.columns, sorted(self.narrowing.leave_out.items())]
        if self.apart.size:
            shown.append(self.apart.tolist())
        written = json.dumps(["narrowed", self.table.fingerprint(tally), *shown]).encode()
        return hashlib.blake2b(written, digest_size=32).hexdigest()

    def __repr__(self) -> str:
        return f"{self.table}"
