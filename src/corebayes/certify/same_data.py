"""Whether data are those that a coreset was built from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from corebayes.coreset import Coreset, GroupCoreset
from corebayes.rows import Rows


def check_same_data(coreset: Coreset, data: Rows) -> None:
    """A coreset stands for the rows it was built from, so only these can judge it.

    Its model must have a density for every row. Cost: one pass, unless it was made before.
    """
    # Learned rows have negative numbers: there is nothing in the data to compare them with.
    taken = np.flatnonzero((coreset.indices >= 0) & (coreset.indices < data.num_rows))
    data.want(coreset.indices[taken])
    row_check = getattr(coreset.model, "row_check", None)
    data.check(None if row_check is None or data.num_rows != coreset.num_rows else row_check())
    # Sums of fractional counts differ in their last digits from one way of reading to another.
    same_count = np.isclose(data.total_count, coreset.total_count, rtol=1e-9, atol=0.0)
    if data.num_rows != coreset.num_rows or not same_count:
        raise ValueError(
            f"the coreset was built from {coreset.num_rows:,} rows with a total count of "
            f"{coreset.total_count:,g}; this data has {data.num_rows:,} rows and "
            f"{data.total_count:,g}: pass the data it was built from"
        )
    _check_names(coreset.provenance.get("column_names", ()), data.column_names)
    rows = data.take(coreset.indices[taken])
    for name, ours in coreset.rows.take(taken).fields.items():
        theirs = rows.fields.get(name)
        if theirs is None or theirs.shape != ours.shape:
            shape = "missing" if theirs is None else f"of shape {theirs.shape[1:]}"
            raise ValueError(
                f"the coreset's rows have a field {name!r} of shape {ours.shape[1:]}, which in "
                f"this data is {shape}: pass the data the coreset was built from"
            )
        # Files may round the last digit; that changes no verdict.
        other = np.argwhere(~np.isclose(ours, theirs, rtol=1e-9, atol=0.0))
        if other.size:
            row = coreset.indices[taken[other[0, 0]]]
            raise ValueError(
                f"row {row} of this data differs from the coreset's in "
                f"{name!r}: pass the data the coreset was built from, in its order"
            )


def has_every_row(coreset: Coreset, data: Rows) -> bool:
    """Whether it has every row as often as it counts: π_w is π, however hard that is to draw."""
    if coreset.size < data.num_rows - data.num_left_out or isinstance(coreset, GroupCoreset):
        return False
    if np.unique(coreset.indices).size < coreset.size:
        return False
    return np.array_equal(data.take(coreset.indices).multiplicity(), coreset.weights)


def _check_names(built: Sequence[str], given: Sequence[str]) -> None:
    """Where both sides have names for the columns of X, they must be the same."""
    if not built or not given:
        return
    for place, (theirs, ours) in enumerate(zip_longest(built, given), start=1):
        if theirs != ours:
            raise ValueError(
                f"feature {place} of this data is {'missing' if ours is None else repr(ours)}, "
                f"where the coreset was built on {'no more' if theirs is None else repr(theirs)}: "
                "name the same features, in the same order"
            )
