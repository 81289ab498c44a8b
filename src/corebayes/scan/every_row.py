"""Passes whose answer is one number for every row: N numbers, never N · S.

Each answer is a tuple of pieces in row order; `joined` puts them together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from corebayes.scan.query import OfVectors
from corebayes.types import Array, Block, Indices, Points, TangentSpace

Pieces = tuple[Array, ...]


def joined(pieces: Pieces) -> Array:
    return np.concatenate(pieces)


class InPieces:
    """Answers that follow each other."""

    def merge(self, first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
        return first + second


@dataclass(frozen=True)
class Norms(InPieces, OfVectors[Pieces]):
    """c_n ‖g_n‖ for every row: zero where a potential is constant or a row counts zero times."""

    space: TangentSpace

    def answer_embedded(self, vectors: Any, block: Block, numbers: Indices) -> Pieces:
        norms = np.sqrt(self.space.squared_norms(vectors))
        return (norms if block.counts is None else block.counts * norms,)


@dataclass(frozen=True)
class Projections(InPieces, OfVectors[Pieces]):
    """⟨g_n, element⟩ for every row; zero where a row counts zero times."""

    space: TangentSpace
    element: Array

    def answer_embedded(self, vectors: Any, block: Block, numbers: Indices) -> Pieces:
        values = self.space.project(vectors, self.element)
        return (values if block.counts is None else np.where(block.counts > 0.0, values, 0.0),)


@dataclass(frozen=True)
class Counts(InPieces):
    """How often every row counts."""

    block_rows: int = 2**62

    def answer(self, block: Block, numbers: Indices) -> Pieces:
        return (block.multiplicity().copy(),)


@dataclass(frozen=True)
class AllRows(InPieces):
    """The rows themselves, for data small enough to be kept in one piece."""

    block_rows: int = 2**62

    def answer(self, block: Block, numbers: Indices) -> tuple[Points, ...]:
        return (Points(numbers, block),)
