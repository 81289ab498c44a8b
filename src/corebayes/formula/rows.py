"""Rows for a model from a table and a design."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from corebayes.coreset import Coreset
from corebayes.data import frames, numbers
from corebayes.data.arrays import ArrayData
from corebayes.data.columns import find
from corebayes.data.parquet_files import (
    is_local,
    is_parquet,
    parquet_shape,
    read_parquet,
)
from corebayes.data.unit_labels import labels_of_column
from corebayes.data.warn import warn
from corebayes.formula.columns import Missing, complete, open_frame, read
from corebayes.formula.design import Design, look
from corebayes.formula.evaluate import Columns
from corebayes.formula.parser import parse
from corebayes.formula.source import LookedAt, design_files, look_at_files
from corebayes.formula.stored import design_from_data
from corebayes.formula.tokens import mentioned
from corebayes.formula.tree import Binary, Column, Literal
from corebayes.rows import Rows, open_rows
from corebayes.watch.logs import say

# Numbers of Parquet files that are held in memory: decoding them in every pass costs more.
HELD_NUMBERS = 2**23


def design_rows(
    formula: str,
    source: Any,
    *,
    counts: str | None = None,
    missing: str = "refuse",
    **options: Any,
) -> Rows:
    """The design and the target that a formula makes of a frame or of Parquet files, checked.

    With `missing="drop"` incomplete rows keep their row numbers but count zero times, with one
    warning that names all columns. Files of many rows are read in parts, in every pass; `options`
    are those of `open_rows`.
    """
    files = is_parquet(source)
    if files and not is_small(source):
        found = look_at_files(formula, source, counts=counts, missing=missing)
        _say(found.design, found.gaps)
        return _opened(found, options)
    if files:
        # Also what is written only to be taken away again: y ~ . - when.
        source = read_parquet(
            source,
            lambda names: {counts, *parse(formula, names, counts).columns, *mentioned(formula)},
        )
    design, columns = look(formula, source, ignore=counts, missing=missing)
    _say(design, complete(columns, drops=design.drops)[1])
    return _rows(design, columns, source, counts, **options)


def rows_of(
    design: Design, source: Any, *, counts: Any = None, unit: Any = None, **options: Any
) -> Rows:
    """The rows of a frame or of Parquet files as the design has them; `options` are those of
    `open_rows`."""
    if unit is not None:
        return in_units(rows_of(design, source, counts=counts, **options), source, unit)
    files = is_parquet(source)
    if files and not is_small(source):
        return _opened(design_files(design, source, counts=counts), options)
    if files:
        source = read_parquet(source, lambda _: {counts, *design.needs})
    return _rows(design, read(source, design.needs), source, counts, **options)


def is_small(source: Any) -> bool:
    """Whether Parquet files are on this machine and few enough numbers to be held."""
    if not is_local(source):
        return False
    num_rows, num_columns = parquet_shape(source)
    return num_rows * num_columns <= HELD_NUMBERS


def _opened(found: LookedAt, options: dict[str, Any]) -> Rows:
    drops = found.design.drops
    rows = open_rows(found.table, on_bad="drop" if drops else "raise", **options)
    with rows.stage("formula"):
        rows.meter.add(found.tally)
    return rows.check()


def _say(design: Design, gaps: Missing | None) -> None:
    say("target", describe_target(design), formula=design.formula)
    if gaps is not None:
        number = int(gaps.rows.sum())
        rows, are = ("row", "is") if number == 1 else ("rows", "are")
        warn(f"{number:,} {rows} with missing values {are} left out: {gaps.words()}")


def in_units(rows: Rows, frame: Any, unit: Any) -> Rows:
    """The rows of a frame with all of one unit as one, by a column of the frame or an array."""
    labels = labels_of_column(frame, unit) if isinstance(unit, str) else unit
    if rows.design is not None and design_from_data(rows.design).groups:
        raise ValueError(
            "unit is for rows that are independent: of a formula with group terms whole groups "
            'are kept by build(..., unit="group")'
        )
    return open_rows(rows, unit=labels)


def describe_target(design: Design) -> str:
    """What is learned, as people say it: of two levels which one is 1."""
    match design.target:
        case Binary("==", Column(name), Literal(level)):
            return f"y is 1 where {name} = {level}, and 0 elsewhere"
        case _ if design.target_levels is not None:
            numbers = ", ".join(f"{k} = {level}" for k, level in enumerate(design.target_levels))
            return f"y is {design.target_name}: {numbers}"
        case _:
            return f"y is {design.target_name}"


def _rows(design: Design, columns: Columns, source: Any, counts: Any, **options: Any) -> Rows:
    if isinstance(counts, str):
        frame = open_frame(source)
        counts = frame.column(find(counts, frame.names, "counts"))
    counts = numbers.counts(counts)
    present, gaps = complete(columns, drops=design.drops)
    fields = {"X": design.apply(present), "y": design.target_of(present)}
    if gaps is not None:
        # Any complete row stands where a row is not: it counts zero times.
        places = np.maximum(np.cumsum(~gaps.rows) - 1, 0)
        fields = {name: values[places] for name, values in fields.items()}
        counts = np.where(gaps.rows, 0.0, 1.0 if counts is None else counts)
    rows = ArrayData(
        fields=fields,
        counts=counts,
        column_names=design.column_names,
        target_name=design.target_name,
        design=design.to_data(),
    )
    return open_rows(rows, on_bad="drop" if design.drops else "raise", **options).check()


def stored_design(coreset: Coreset) -> Design | None:
    """The design a coreset was built with, from the data it keeps about it."""
    data = coreset.provenance.get("design")
    if data is None:
        return None
    design = design_from_data(data)
    rows = coreset.data_rows
    if "X" not in rows.fields or rows.X.shape[-1:] != (len(design.column_names),):
        raise ValueError("the stored design cannot be used: its columns are not the coreset's")
    return design


def as_built(
    coreset: Coreset, source: Any, *, memory: Any = None, executor: Any = None, **columns: Any
) -> Rows:
    """`open_rows`, but a table becomes the columns of the coreset's formula, or has those that the
    coreset was built from, without being told again."""
    named = columns["target"] is not None or columns["features"] is not None
    if not named and (_are_several(source) or _were_counted_apart(coreset, source)):
        each = [as_built(coreset, one, **columns) for one in source]
        return open_rows(each, memory=memory, executor=executor)
    unit, duplicates = (coreset.provenance.get(name) for name in ("unit", "duplicates"))
    framed = not named and (frames.as_frame(source) is not None or is_parquet(source))
    if framed and coreset.provenance.get("design") is not None:
        design = stored_design(coreset)
        assert design is not None
        known: Any = {"counts": columns["counts"], "unit": unit, "duplicates": duplicates}
        return rows_of(design, source, memory=memory, executor=executor, **known)
    if framed:
        columns = _known_columns(coreset, columns)
    elif is_parquet(source) or frames.as_frame(source) is not None:
        columns = {**columns, "unit": unit}
    if not isinstance(source, Rows):
        columns = {**columns, "duplicates": duplicates}
    return open_rows(source, memory=memory, executor=executor, **columns)


def _are_several(source: Any) -> bool:
    """Tables in a list, one below the other, perhaps with others that are open already."""
    if not isinstance(source, list):
        return False
    given = cast("list[Any]", source)
    framed = [frames.as_frame(one) is not None for one in given]
    opened = [isinstance(one, Rows) or is_parquet(one) for one in given]
    return any(framed) and all(a or b for a, b in zip(framed, opened, strict=True))


def _were_counted_apart(coreset: Coreset, source: Any) -> bool:
    """Whether repeated rows were counted in each of several sources."""
    counted = coreset.provenance.get("duplicates") is not None
    return counted and isinstance(source, list) and len(coreset.sources) > 1


def _known_columns(coreset: Coreset, columns: dict[str, Any]) -> dict[str, Any]:
    """The names that the coreset kept, where it has kept some."""
    known = coreset.provenance
    names = known.get("column_names")
    if not names:
        return columns
    found = {**columns, "features": list(names)}
    if known.get("unit") is not None:
        found["unit"] = str(known["unit"])
    if "y" in coreset.rows.fields:
        found["target"] = str(known.get("target_name") or "y")
    if columns.get("counts") is None and known.get("counts_name") is not None:
        found["counts"] = str(known["counts_name"])
    return found
