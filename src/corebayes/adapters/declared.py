"""Which parameters rows touch, as a custom model says it: `CustomModel(groups=…)`.

It is held against the rows: a row changes with the effects of its own groups and with no others'.
Parameters of no group that some row changes with are shared, the rest are the prior's alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corebayes.adapters.structure import NUM_ROWS, STEP, row_slopes, row_structure
from corebayes.models.custom.model import CustomModel
from corebayes.models.custom.touching import Driver, RowStructure
from corebayes.rows import Rows
from corebayes.scan.passes import rows_of_width
from corebayes.types import Array, Block, Indices

# Groups whose effects are moved to see which rows change.
TRIED = 24
# A change that is no rounding.
ROUNDING = 1e-9


def declared_structure(model: CustomModel, data: Rows) -> RowStructure:
    """The structure of a bound model with `groups`, or an error that names row and parameter.

    Cost: a pass over the rows with two potentials for every parameter of no group.
    """
    drivers = [_driver(name, len(places), data) for name, places in model.groups.items()]
    terms = list(zip(drivers, model.groups.values(), strict=True))
    others = np.setdiff1d(np.arange(model.dim), np.concatenate([p.ravel() for _, p in terms]))
    rng = np.random.default_rng(0)
    theta = STEP * rng.normal(size=model.dim)
    found = data.ask(_Touched(model, theta, others, tuple(drivers)))
    if found.bad is not None:
        row, name, value, number = found.bad
        raise ValueError(
            f"row {row}, column {name!r}: {value:g} is not the number of a group: groups has "
            f"places for {number}, so 0 to {number - 1}"
        )
    numbers = data.some(rng, min(NUM_ROWS, data.num_rows))
    block = data.take(numbers)
    for driver, places in terms:
        _check_others(rng, model, theta, block, numbers, driver, places)
    shared = np.zeros(model.dim, dtype=bool)
    shared[others[found.touched]] = True
    seen = row_slopes(model.row_terms, block, model.dim, rng) if model.is_traced else None
    return row_structure(terms, shared, block, seen)


def _driver(name: str, num_groups: int, data: Rows) -> Driver:
    fields, columns = data.template.fields, list(data.column_names)
    if name in fields and fields[name].ndim == 1:
        return Driver(name, None, 0, num_groups - 1)
    if name in columns and "X" in fields:
        return Driver("X", columns.index(name), 0, num_groups - 1, name)
    known = ", ".join(map(repr, [*fields, *columns][:12]))
    raise ValueError(f"groups names {name!r}, which is no column of the data: it has {known}")


def _check_others(
    rng: np.random.Generator,
    model: CustomModel,
    theta: Array,
    block: Block,
    numbers: Indices,
    driver: Driver,
    places: Indices,
) -> None:
    """Refuse effects that rows of other groups change with."""
    groups = driver.values(block).astype(np.int64)
    moved = rng.choice(len(places), min(TRIED, len(places)), replace=False)
    draws = np.tile(theta, (1 + moved.size, 1))
    for draw, group in zip(draws[1:], moved, strict=True):
        draw[places[group]] += STEP
    wrong = _changed(model.potentials(draws, block)) & (groups[:, None] != moved)
    if wrong.any():
        row, tried = (int(place[0]) for place in np.nonzero(wrong))
        own: list[int] = places[int(moved[tried])].tolist()
        effects = " or ".join(model.parameter_names[place] for place in own)
        raise ValueError(
            f"row {numbers[row]} is of group {groups[row]} of {driver.name!r} and changes with "
            f"{effects}, which groups gives to group {moved[tried]}"
        )


def _changed(values: Array) -> NDArray[np.bool_]:
    """Whether rows (n, S) differ from their first entry, for each other one."""
    here = values[:, :1]
    return np.abs(values[:, 1:] - here) > ROUNDING * (1.0 + np.abs(here))


class _Found(NamedTuple):
    touched: NDArray[np.bool_]
    bad: tuple[int, str, float, int] | None
    """A row, its column, what is there, and the number of groups."""


@dataclass(frozen=True)
class _Touched:
    """Which parameters of no group some row changes with, and the first group that is none."""

    model: CustomModel
    theta: Array
    others: Indices
    drivers: tuple[Driver, ...]

    @property
    def block_rows(self) -> int:
        return rows_of_width(64 + 2 * self.others.size)

    def answer(self, block: Block, numbers: Indices) -> _Found:
        for driver in self.drivers:
            values = driver.values(block)
            wrong = (values != np.rint(values)) | (values < 0) | (values > driver.last)
            if wrong.any():
                row = int(np.flatnonzero(wrong)[0])
                bad = int(numbers[row]), driver.name, float(values[row]), driver.last + 1
                return _Found(np.zeros(self.others.size, dtype=bool), bad)
        moves = np.zeros((2 * self.others.size + 1, self.theta.size))
        for sign, first in ((STEP, 1), (-STEP, 1 + self.others.size)):
            moves[first + np.arange(self.others.size), self.others] = sign
        up, down = np.split(_changed(self.model.potentials(self.theta + moves, block)), 2, axis=1)
        return _Found(np.any(up | down, axis=0), None)

    def merge(self, first: _Found, second: _Found) -> _Found:
        bad = first.bad if first.bad is not None else second.bad
        return _Found(first.touched | second.touched, bad)
