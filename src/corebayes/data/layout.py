"""The fields of a block as the columns of a flat table, and back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corebayes.types import Array, Block


class Field(NamedTuple):
    """One field: its name, the shape of a row's part, and the columns that hold it in C order."""

    name: str
    shape: tuple[int, ...]
    columns: tuple[str, ...]


def plan(
    rows: Block,
    *,
    column_names: Sequence[str] = (),
    target_name: str = "y",
    reserved: Collection[str] = (),
) -> tuple[Field, ...]:
    """How the fields become columns.

    `X` has a column for each feature (x0, x1, … without names), `y` one of the target's name,
    any other field `name`, or name[0], name[1], … when a row has several numbers. A name that is
    taken gets its field in front: X.weight.
    """
    taken = set(reserved)
    fields: list[Field] = []
    for name, values in rows.fields.items():
        shape = values.shape[1:]
        columns: list[str] = []
        for wanted in _names(name, shape, column_names, target_name):
            while wanted in taken:
                wanted = f"{name}.{wanted}"
            taken.add(wanted)
            columns.append(wanted)
        fields.append(Field(name, shape, tuple(columns)))
    return tuple(fields)


def flatten(rows: Block, fields: Sequence[Field]) -> dict[str, Array]:
    """The columns, by name, in the order of the plan."""
    return {
        column: np.ascontiguousarray(values)
        for field in fields
        for column, values in zip(
            field.columns, rows[field.name].reshape(len(rows), len(field.columns)).T, strict=True
        )
    }


def restore(columns: Mapping[str, NDArray[Any]], fields: Sequence[Field]) -> dict[str, Array]:
    """The fields that `flatten` took apart, bit for bit."""
    return {
        field.name: np.stack([columns[name] for name in field.columns], axis=1).reshape(
            -1, *field.shape
        )
        for field in fields
    }


def _names(
    name: str, shape: tuple[int, ...], column_names: Sequence[str], target_name: str
) -> list[str]:
    if name == "X" and len(shape) == 1:
        if len(column_names) == shape[0]:
            return list(column_names)
        return [f"x{position}" for position in range(shape[0])]
    if shape == ():
        return [target_name if name == "y" else name]
    return [f"{name}[{','.join(map(str, place))}]" for place in np.ndindex(*shape)]
