"""A coreset of units as a coreset of rows, each with the weight of its unit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from corebayes.coreset.coreset import Coreset, check_coreset
from corebayes.data.units import COUNT, ROW
from corebayes.models.units import Units, flat
from corebayes.types import Block

OF_UNITS = ("unit", "unit_rows", "left_out")


def unrolled(coreset: Coreset, total_count: float | None = None) -> Coreset:
    """The rows of the units, for tools that know of rows only: all exports take it.

    Every row has its own number, and its unit's weight times its own count. `total_count` is what
    the rows of the data count together, where they do not count once each.
    """
    check_coreset(coreset)
    if not isinstance(coreset.model, Units):
        raise TypeError("the coreset is of rows already: only one of units can be unrolled")
    if len(coreset.sources) > 1:
        raise ValueError(
            "the coreset is of several sources, whose rows have the same numbers: unroll it before "
            "it is updated or merged"
        )
    num_rows = int(coreset.provenance["unit_rows"])
    return _of_rows(coreset, num_rows, total_count)


def as_rows(coreset: Coreset) -> Coreset:
    """What tools that know of rows only are given: the rows of units, or the coreset as it is.

    Rows of several sources, which have the same numbers, are numbered as they come.
    """
    check_coreset(coreset)
    if not isinstance(coreset.model, Units):
        return coreset
    if len(coreset.sources) == 1:
        return unrolled(coreset)
    numbers = np.arange(coreset.rows[ROW].size, dtype=float).reshape(coreset.rows[ROW].shape)
    fields = {**coreset.rows.fields, ROW: numbers}
    renumbered = replace(coreset, rows=Block(fields, coreset.rows.counts))
    return _of_rows(renumbered, numbers.size, None)


def _of_rows(coreset: Coreset, num_rows: int, total_count: float | None) -> Coreset:
    assert isinstance(coreset.model, Units)
    rows = flat(coreset.rows)
    kept = np.flatnonzero(coreset.rows[COUNT].ravel() > 0.0)
    numbers = coreset.rows[ROW].ravel()[kept].astype(np.int64)
    plain = bool(np.all(rows.counts == 1.0)) and total_count is None
    order = np.argsort(numbers)
    return replace(
        coreset,
        indices=numbers[order],
        weights=rows.weights(coreset.weights)[order],
        rows=Block(rows.rows.fields, None if plain else rows.counts).take(order),
        model=coreset.model.model,
        num_rows=num_rows,
        total_count=float(num_rows if total_count is None else total_count),
        reserve=None,
        missed=None,
        # What counts units, and would open tables as units again.
        provenance={k: v for k, v in coreset.provenance.items() if k not in OF_UNITS},
    )
