"""Rows that were fetched once and stay in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebayes.data.arrays import concatenated, no_rows, row_bytes
from corebayes.data.random_rows import random_rows
from corebayes.data.table import Table
from corebayes.types import Block, Indices, Points


@dataclass
class Kept:
    """Some rows by their numbers, sorted, up to a number of bytes."""

    points: Points
    most_bytes: int
    reserve: Indices
    """Numbers of the random rows among them."""

    @classmethod
    def of(cls, table: Table, num_random: int, most_bytes: int) -> Kept:
        """None yet, and which are to be kept: the same for every seed, executor and layout."""
        size = min(table.num_rows, num_random, most_bytes // (2 * row_bytes(table.template)))
        reserve = random_rows(np.random.default_rng(table.num_rows), table.num_rows, size)
        return cls(Points(no_rows(), table.template), most_bytes, reserve)

    def holds(self, numbers: Indices) -> bool:
        return bool(np.all(self._here(numbers)))

    def missing(self, numbers: Indices) -> Indices:
        """Those that are not here, sorted."""
        return np.unique(numbers[~self._here(numbers)])

    def _here(self, numbers: Indices) -> NDArray[np.bool_]:
        if self.points.indices.size == 0:
            return np.zeros(numbers.size, dtype=bool)
        places = np.searchsorted(self.points.indices, numbers)
        places = np.minimum(places, self.points.indices.size - 1)
        return self.points.indices[places] == numbers

    def take(self, numbers: Indices) -> Block:
        return self.points.rows.take(np.searchsorted(self.points.indices, numbers))

    def has_room(self, number: int) -> bool:
        return (self.points.indices.size + number) * row_bytes(self.points.rows) <= self.most_bytes

    def answer(self, query: Any, numbers: Indices, block_rows: int) -> Any:
        """A query's answer of these rows, all of which are here."""
        result = None
        for first in range(0, numbers.size, block_rows):
            these = numbers[first : first + block_rows]
            answer = query.answer(self.take(these), these)
            result = answer if result is None else query.merge(result, answer)
        return result

    def add(self, points: Points) -> None:
        """Keep these too."""
        both = self.points.append(points)
        numbers, first = np.unique(both.indices, return_index=True)
        self.points = Points(numbers, both.rows.take(first))


def joined(template: Block, pieces: tuple[Points, ...]) -> Points:
    """All the pieces as one."""
    if not pieces:
        return Points(no_rows(), template)
    rows = concatenated([piece.rows for piece in pieces])
    return Points(np.concatenate([piece.indices for piece in pieces]), rows)
