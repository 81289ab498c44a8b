"""The factors of a formula's terms: expressions, and categories with their levels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corebayes.formula.columns import BadRowError, Categories, Numbers, as_categories
from corebayes.formula.evaluate import Columns
from corebayes.formula.functions import coding_of, transform_of
from corebayes.formula.splines import BSpline
from corebayes.formula.tree import Call, Column, Node, columns_of


class Factor(NamedTuple):
    node: Node
    levels: tuple[Any, ...] | None = None
    """Of categories, in order; None for numbers."""


def length(columns: Columns) -> int:
    first = next(iter(columns.values()))
    return len(first.values if isinstance(first, Numbers) else first.codes)


def levels_of(node: Node, columns: Columns) -> tuple[Any, ...] | None:
    """The levels of a factor that is categories, be it by C() or by what the column holds."""
    name = columns_of(node)[0]
    if not is_coded(node) and not (
        isinstance(node, Column) and isinstance(columns[name], Categories)
    ):
        return None
    found = as_categories(columns[name])
    levels = coding_of(node).levels or found.levels
    codes_in(found, levels, name)
    return levels


def codes_in(found: Categories, levels: tuple[Any, ...], name: str) -> NDArray[np.intp]:
    """The positions of the rows' values in `levels`."""
    places = {level: place for place, level in enumerate(levels)}
    lookup = np.array([places.get(level, -1) for level in found.levels], dtype=np.intp)
    codes = lookup[found.codes]
    unknown = np.flatnonzero(codes < 0)
    if unknown.size:
        row = int(unknown[0])
        some = ", ".join(map(repr, levels[:10])) + ", ..." * (len(levels) > 10)
        raise BadRowError(
            row,
            f"column {name!r}: {found.levels[found.codes[row]]!r} is none of the levels "
            f"{some} (rows are numbered from 0): leave such rows out, or build with a formula that "
            f"names all levels, C({name}, levels=[...])",
        )
    return codes


def spans_one(factor: Factor) -> bool:
    """Whether the columns of a factor add up to one."""
    transform = transform_of(factor.node)
    return factor.levels is not None or (
        isinstance(transform, BSpline) and transform.include_intercept
    )


def is_coded(node: Node) -> bool:
    return isinstance(node, Call) and node.function == "C"
