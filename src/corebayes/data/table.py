"""What lies behind the door: rows in shards, read by parts and counted as they are decoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from corebayes.types import Block, Indices


@dataclass
class Tally:
    """Rows that were decoded, whether they were wanted or not, and the bytes that took."""

    rows: int = 0
    num_bytes: int = 0
    keep: bool = False
    """Whether shards may stay in memory once they are decoded."""


class Table(Protocol):
    """Rows that can be read again. Only `corebayes.rows` and the passes it asks for read them."""

    @property
    def num_rows(self) -> int: ...

    @property
    def column_names(self) -> tuple[str, ...]: ...

    @property
    def target_name(self) -> str: ...

    @property
    def template(self) -> Block:
        """The fields without a row: names, shapes, and whether there are counts."""
        ...

    @property
    def shards(self) -> Sequence[tuple[int, int]]:
        """Half-open row ranges that cover all rows in order; one is a worker's task."""
        ...

    @property
    def part_rows(self) -> int:
        """Rows of the largest part."""
        ...

    @property
    def part_bytes(self) -> int:
        """Memory for a part while it is read."""
        ...

    @property
    def scattered(self) -> bool:
        """Whether single rows can be read without those around them."""
        ...

    @property
    def sequential(self) -> bool:
        """Whether a shard can only be reached by passing through those before it."""
        ...

    def parts(
        self, start: int, stop: int, rows: Indices | None, tally: Tally
    ) -> Iterator[tuple[Indices, Block]]:
        """Numbers and rows of a range, or of its given sorted distinct row numbers, by parts."""
        ...

    def without(self, bad: Indices) -> Table:
        """These rows keep their numbers, count zero times, and read as zero where bad."""
        ...

    def fingerprint(self, tally: Tally) -> str:
        """A hash of layout and content that changes when the rows do."""
        ...


class RowCheck(Protocol):
    """A model's question to every row, which answers whether the model has a density for it."""

    @property
    def key(self) -> Any:
        """Questions of one key need to be asked once."""
        ...

    @property
    def block_rows(self) -> int: ...

    def answer(self, block: Block, numbers: Indices) -> Any: ...

    def merge(self, first: Any, second: Any) -> Any: ...

    def conclude(self, answer: Any, target_name: str) -> Any:
        """An error that names the row, or what was learned of all rows."""
        ...
