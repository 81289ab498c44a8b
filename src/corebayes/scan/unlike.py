"""How unlike others a row is, by its columns alone.

The log-likelihood of a row depends on its columns, so a mode that rests on a handful of rows rests
on rows with columns that hardly any other has. Among some dozens of rows at random none is near
them: with columns centred and scaled, u_n is the distance to the nearest of those, once in each
column and once in all, and its power grows so fast that a few rows far off outweigh a million that
are a little apart. One of the few may be among those at random; so there are several sets of these,
and the set that a row is furthest from counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from corebayes.types import Array, Block, Indices

# Columns that are compared; of more, as many random sums.
MOST_COLUMNS = 20
# Sets of rows to compare with.
NUM_SETS = 4
# Distances count with the power 8, by squaring thrice; the distance that is as far as any.
DOUBLINGS, FURTHEST = 3, 1e6
# The least width of a column, as a share of its mean: what differs from a constant is far away.
LEAST_WIDTH = 1e-9


@dataclass(frozen=True, eq=False)
class Likeness:
    """Columns of rows at random, (U, C), centred and scaled."""

    centre: Array
    scale: Array
    mixing: Array | None
    reference: Array

    @classmethod
    def of(cls, block: Block) -> Likeness | None:
        """None where rows have no columns of numbers."""
        columns = number_columns(block)
        if columns is None or len(columns) < 2 * NUM_SETS:
            return None
        mixing = None
        centre, scale = columns.mean(axis=0), columns.std(axis=0)
        scale = np.maximum(scale, LEAST_WIDTH * np.maximum(np.abs(centre), 1.0))
        if columns.shape[1] > MOST_COLUMNS:
            shape = (columns.shape[1], MOST_COLUMNS)
            mixing = np.random.default_rng(len(columns)).standard_normal(shape) / np.sqrt(shape[0])
        made = cls(centre, scale, mixing, columns)
        return cls(centre, scale, mixing, made._scaled(columns))

    @property
    def width(self) -> int:
        return 1 + self.reference.shape[1]

    def unlikeness(self, block: Block) -> Array:
        """u_n in all columns and in each, (n, 1 + C). Cost: C·U flops a row, log U a number."""
        columns = number_columns(block)
        assert columns is not None
        columns, sets = self._scaled(columns), np.array_split(self.reference, NUM_SETS)
        # ‖x − y‖² = ‖x‖² − 2 (x·y − ½ ‖y‖²)
        crossed = columns @ self.reference.T
        crossed -= 0.5 * np.einsum("uc,uc->u", self.reference, self.reference)
        ends = np.cumsum([0, *(len(one) for one in sets[:-1])])
        nearest = np.maximum.reduceat(crossed, ends, axis=1).min(axis=1)
        squares = np.einsum("nc,nc->n", columns, columns) - 2.0 * nearest
        found = [np.sqrt(np.maximum(squares, 0.0))]
        ordered = [np.sort(one, axis=0) for one in sets]
        for number, values in enumerate(columns.T):
            found.append(np.max([_apart(values, one[:, number]) for one in ordered], axis=0))
        powers = np.column_stack(found)
        for _ in range(DOUBLINGS):
            np.square(powers, out=powers)
        return powers

    def _scaled(self, columns: Array) -> Array:
        scaled = np.clip((columns - self.centre) / self.scale, -FURTHEST, FURTHEST)
        return scaled if self.mixing is None else scaled @ self.mixing


def _apart(values: Array, others: Array) -> Array:
    """How far each value is from the nearest of the others, which are sorted."""
    above = cast(Indices, np.searchsorted(others[1:-1], values)) + 1
    return np.minimum(np.abs(values - others[above - 1]), np.abs(values - others[above]))


def number_columns(block: Block) -> Array | None:
    """The fields that are numbers, beside each other, (n, C); None without any."""
    columns = [
        values.reshape(len(block), -1).astype(np.float64)
        for values in block.fields.values()
        if values.dtype.kind in "fiub"
    ]
    return np.hstack(columns) if columns else None
