"""The groups of a formula's group terms: (1 + x | g) gives every value of g effects of its own.

In X a group is one column of codes 0, 1, …, G − 1: positions in its levels, which are those that
occur in the table it was fitted to, in order. Effects are independent of one another, each with a
standard deviation of its own, whether the formula has | or ||.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corebayes.formula.coding import Scoped
from corebayes.formula.columns import BadRowError, Categories, Numbers, Values, as_categories
from corebayes.formula.evaluate import Columns
from corebayes.types import Array

# A group needs rows of its own in every coreset; with fewer rows than this in the mean group there
# is nothing that a coreset could leave out.
LEAST_ROWS = 2.0

Level = tuple[Any, ...]


class Group(NamedTuple):
    """What rows are grouped by, and the effects that each group has."""

    columns: tuple[str, ...]
    """Whose values make the groups; several for a:b."""
    levels: tuple[Level, ...]
    """One value of each column."""
    terms: tuple[Scoped, ...]
    """The effects, as terms of the design; () is the constant."""

    @property
    def name(self) -> str:
        return ":".join(self.columns)

    @property
    def labels(self) -> tuple[str, ...]:
        """The groups for people, in the order of their codes; no two are the same."""
        labels = tuple(":".join(map(str, level)) for level in self.levels)
        if len(set(labels)) == len(labels):
            return labels
        return tuple(":".join(map(repr, level)) for level in self.levels)


class NewLevels:
    """Groups that a table has and the design has not: codes G, G + 1, … as they first come."""

    def __init__(self, group: Group) -> None:
        self.first = len(group.levels)
        self.codes: dict[Level, int] = {}

    def code(self, level: Level) -> int:
        return self.codes.setdefault(level, self.first + len(self.codes))

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(":".join(map(str, level)) for level in self.codes)


def find_levels(names: Sequence[str], columns: Columns) -> tuple[Level, ...]:
    """The groups that occur. Cost: N log N."""
    return _combinations([_groups_of(name, columns[name]) for name in names])[0]


def check_levels(names: Sequence[str], num_groups: int, num_rows: int) -> None:
    """Refuse groups of hardly more than a row each."""
    if num_rows < LEAST_ROWS * num_groups:
        raise ValueError(
            f"column {':'.join(names)!r} has {num_groups:,} groups in {num_rows:,} rows, and no "
            "coreset can be smaller than its groups, each of which needs rows of its own: group "
            f"by something coarser, or leave (… | {':'.join(names)}) out of the formula"
        )


def codes_of(group: Group, columns: Columns, new: NewLevels | None = None) -> Array:
    """The number of every row's group, as the column of X has it; groups that are not there are an
    error, or become `new` ones."""
    found, codes = _combinations([as_categories(columns[name]) for name in group.columns])
    places = {level: place for place, level in enumerate(group.levels)}
    if new is not None:
        places |= {level: new.code(level) for level in found if level not in places}
    lookup = np.array([places.get(level, -1) for level in found], dtype=np.intp)
    unknown = [level for level, place in zip(found, lookup, strict=True) if place < 0]
    if unknown:
        row = int(np.argmax(lookup[codes] < 0))
        some = ", ".join(repr(_shown(level)) for level in unknown[:5]) + ", …" * (len(unknown) > 5)
        raise BadRowError(
            row,
            f"column {group.name!r}: the group {_shown(found[codes[row]])!r} is not one "
            f"of the {len(group.levels):,} that the model was made for (rows are numbered from 0); "
            f"unknown are {some}: leave these rows out, or build with them",
        )
    return lookup[codes].astype(np.float64)


def _groups_of(name: str, values: Values) -> Categories:
    """The values of a column as groups; only whole numbers are names of groups."""
    if isinstance(values, Numbers):
        numbers = values.values
        fractional = ~np.isfinite(numbers) | (numbers != np.floor(numbers))
        if fractional.any():
            row = int(fractional.argmax())
            raise BadRowError(
                row,
                f"column {name!r} is no group: it has {numbers[row]:g}, and groups are texts, "
                f"categories or whole numbers. Round or bin it, or write (0 + {name} | g) for a "
                "slope in each group",
            )
        values = Numbers(numbers, whole=bool(np.abs(numbers).max(initial=0.0) < 2.0**53))
    return as_categories(values)


def _combinations(values: Sequence[Categories]) -> tuple[tuple[Level, ...], NDArray[np.intp]]:
    """The combinations of levels that occur, in order, and which of them each row has."""
    codes = values[0].codes
    occurring: list[tuple[int, ...]] = [()]
    for place, each in enumerate(values):
        width = len(each.levels)
        # codes are positions in `occurring`, so that they stay below N · width.
        joint = codes * width + each.codes if place else each.codes
        present, codes = np.unique(joint, return_inverse=True)
        occurring = [(*occurring[known // width], known % width) for known in map(int, present)]
    levels = tuple(
        tuple(each.levels[code] for each, code in zip(values, known, strict=True))
        for known in occurring
    )
    return levels, codes


def _shown(level: Level) -> Any:
    return level[0] if len(level) == 1 else ":".join(map(str, level))
