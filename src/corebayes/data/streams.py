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

    def stream(
        self, start: int, stop: int, rows: Indices | None = None
    ) -> Iterator[tuple[Indices, Block]]:
        """Numbers and rows of a range, or of the given row numbers in it, by parts."""
        ...


def is_streamed(data: Data) -> TypeGuard[Streamed]:
    # Asked in every pass; for few rows a check of the protocol would take as long as the pass.
    return hasattr(data, "stream")


def parts_of(
    data: Data, start: int, stop: int, rows: Indices | None = None
) -> Iterator[tuple[Indices, Block]]:
    """Numbers and rows of a range, or of the given sorted numbers in it: by parts if need be."""
    if is_streamed(data):
        yield from data.stream(start, stop, rows)
    elif rows is None:
        yield np.arange(start, stop), data.read(start, stop)
    else:
        yield rows, data.take(rows)
