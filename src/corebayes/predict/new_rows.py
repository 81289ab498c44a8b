"""New rows in the columns that a coreset was built with; they need no target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from corebayes.data import frames
from corebayes.data.arrays import ArrayData
from corebayes.data.parquet_files import is_parquet, parquet_batches
from corebayes.formula.columns import find_missing, read
from corebayes.formula.design import Design
from corebayes.formula.groups import NewLevels
from corebayes.rows import Rows, open_rows
from corebayes.scan.walk import walk
from corebayes.types import Block

# Rows of a file that a formula is computed for at once.
BATCH_ROWS = 65_536


@dataclass
class NewRows:
    """The opened rows, and the labels of groups that the design has not seen."""

    rows: Rows
    design: Design | None = None
    new_levels: dict[str, NewLevels] = field(default_factory=dict[str, NewLevels])

    @property
    def num_rows(self) -> int:
        return self.rows.num_rows

    def check(self) -> None:
        self.rows.check()

    def blocks(self, block_rows: int) -> Iterator[Block]:
        """In their order, read as they are asked for."""
        return walk(self.rows.table, block_rows, self.rows.meter)

    def labels(self, column: str, codes: set[float]) -> list[Any]:
        """What new groups are called."""
        known = self.new_levels.get(column)
        if known is None:
            return [int(code) if code == int(code) else code for code in sorted(codes)]
        return list(known.labels)


def open_new_rows(
    source: Any, *, design: Design | None, names: Sequence[str], width: int
) -> NewRows:
    """Rows with the field X of `width` columns: from the formula's design, by name, or as given."""
    if isinstance(source, Rows):
        _check_width(source, names, width)
        return NewRows(source)
    by_name = frames.as_frame(source) is not None or is_parquet(source)
    if by_name and design is not None:
        return _by_design(source, design)
    if by_name and names:
        return NewRows(_by_name(source, names))
    rows = open_rows(source)
    _check_width(rows, names, width)
    return NewRows(rows)


def _by_name(source: Any, column_names: Sequence[str]) -> Rows:
    try:
        return open_rows(source, features=list(column_names))
    except ValueError as error:
        if "Intercept" not in column_names:
            raise
        raise ValueError(
            f"{error}. The coreset has columns that Bambi computed: predict there, with "
            "model.predict(cb.sample(coreset), data=frame), or pass these columns"
        ) from None


def _by_design(source: Any, design: Design) -> NewRows:
    """A frame at once; a file in batches, read again in every pass."""
    groups = zip(design.group_names, design.groups, strict=True)
    new = {name: NewLevels(group) for name, group in groups}

    def matrix(table: Any) -> ArrayData:
        columns = read(table, design.needs_of_rows)
        gaps = find_missing(columns)
        if gaps is not None:
            raise ValueError(
                f"{gaps.words()}: nothing can be predicted there; fill these values, or leave the "
                "rows out of the new ones"
            )
        X = design.apply(columns, new)
        return ArrayData(fields={"X": X}, column_names=design.column_names)

    if not is_parquet(source):
        return NewRows(open_rows(matrix(source)), design, new)

    def batches() -> Iterator[Mapping[str, Any]]:
        first = 0
        for batch in parquet_batches(source, design.needs_of_rows, BATCH_ROWS):
            try:
                yield {"X": matrix(batch).fields["X"]}
            except ValueError as error:
                raise ValueError(f"from row {first:,} on, {error}") from None
            first += batch.num_rows

    return NewRows(open_rows(batches), design, new)


def _check_width(rows: Rows, column_names: Sequence[str], width: int) -> None:
    found = rows.template.fields.get("X")
    number = None if found is None or found.ndim != 2 else found.shape[1]
    if number != width:
        some = ", ".join(map(repr, column_names[:10])) + ", …" * (len(column_names) > 10)
        named = f": {some}" if column_names else ""
        has = "no columns X" if number is None else f"{number} columns"
        raise ValueError(f"the new rows have {has}, and the model was built with {width}{named}")
