"""Rows by parts: what does not fit in memory is never there as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeGuard

import numpy as np

from corebayes.types import Block, Data, Indices


class Streamed(Protocol):
    """Data that hands over a range of rows in parts instead of at once."""

    @property
    def part_rows(self) -> int:
        """Rows of the largest part."""
        ...

    @property
    def scattered(self) -> bool:
        """Whether single rows can be read without those around them."""
        ...

    def stream(
        self, start: int, stop: int, rows: Indices | None = None
    ) -> Iterator[tuple[Indices, Block]]:
        """Numbers and rows of a range, or of the given row numbers in it, by parts."""
        ...


def is_streamed(data: Data) -> TypeGuard[Streamed]:
    # Asked in every pass; for few rows a check of the protocol would take as long as the pass.
    return hasattr(data, "stream")


def is_scattered(data: Data) -> bool:
    """Whether rows here and there cost no more than as many that lie together."""
    return not is_streamed(data) or data.scattered


def parts_of(
    data: Data, start: int, stop: int, rows: Indices | None = None
) -> Iterator[tuple[Indices, Block]]:
    """Numbers and rows of a range, or of the given sorted numbers in it: by parts if need be."""
    if rows is not None and is_scattered(data):
        yield rows, data.take(rows)
    elif is_streamed(data):
        yield from data.stream(start, stop, rows)
    else:
        yield np.arange(start, stop), data.read(start, stop)
