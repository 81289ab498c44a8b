"""Passes whose answer is one number for every row: N numbers, never N · S.

Each answer is a tuple of pieces in row order; `joined` puts them together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from corebayes.scan.passes import rows_of_width
from corebayes.types import Array, Block, Indices, Points, TangentSpace

Pieces = tuple[Array, ...]


def joined(pieces: Pieces) -> Array:
    return np.concatenate(pieces)


@dataclass(frozen=True)
class Norms:
    """c_n ‖g_n‖ for every row: zero where a potential is constant or a row counts zero times."""

    space: TangentSpace

    @property
    def width(self) -> int:
        return self.space.width

    @property
    def block_rows(self) -> int:
        return rows_of_width(self.width)

    def answer(self, block: Block, numbers: Indices) -> Pieces:
        return self.answer_embedded(self.space.embed(block, reuse=True), block, numbers)

    def answer_embedded(self, vectors: Any, block: Block, numbers: Indices) -> Pieces:
        """The answer of rows whose vectors are at hand."""
        norms = np.sqrt(self.space.squared_norms(vectors))
        return (norms if block.counts is None else block.counts * norms,)

    def merge(self, first: Pieces, second: Pieces) -> Pieces:
        return first + second


@dataclass(frozen=True)
class Projections:
    """⟨g_n, element⟩ for every row; zero where a row counts zero times."""

    space: TangentSpace
    element: Array

    @property
    def width(self) -> int:
        return self.space.width

    @property
    def block_rows(self) -> int:
        return rows_of_width(self.width)

    def answer(self, block: Block, numbers: Indices) -> Pieces:
        return self.answer_embedded(self.space.embed(block, reuse=True), block, numbers)

    def answer_embedded(self, vectors: Any, block: Block, numbers: Indices) -> Pieces:
        """The answer of rows whose vectors are at hand."""
        values = self.space.project(vectors, self.element)
        return (values if block.counts is None else np.where(block.counts > 0.0, values, 0.0),)

    def merge(self, first: Pieces, second: Pieces) -> Pieces:
        return first + second


@dataclass(frozen=True)
class Counts:
    """How often every row counts."""

    block_rows: int = 2**62

    def answer(self, block: Block, numbers: Indices) -> Pieces:
        return (block.multiplicity().copy(),)

    def merge(self, first: Pieces, second: Pieces) -> Pieces:
        return first + second


@dataclass(frozen=True)
class AllRows:
    """The rows themselves, for data small enough to be kept in one piece."""

    block_rows: int = 2**62

    def answer(self, block: Block, numbers: Indices) -> tuple[Points, ...]:
        return (Points(numbers, block),)

    def merge(self, first: tuple[Points, ...], second: tuple[Points, ...]) -> tuple[Points, ...]:
        return first + second
