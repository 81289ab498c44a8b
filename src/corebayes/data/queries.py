"""Lazy queries of polars and DuckDB: run again for every pass, never in memory as a whole.

An engine may cut its answer anywhere, so it is cut again into shards of a fixed length. Every
reading must give the same rows in the same order, which `blocks.py` checks by hashes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from corebayes.data.blocks import SHARD_ROWS
from corebayes.data.columns import choose_roles
from corebayes.data.frames import check_names, import_pyarrow, is_kind


def is_query(source: Any) -> bool:
    """A polars LazyFrame, or a DuckDB relation."""
    return is_kind(source, "polars", "LazyFrame") or is_kind(source, "duckdb", "DuckDBPyRelation")


@dataclass(frozen=True)
class LazyQuery:
    """The columns that are used of a query; called, it is run and gives tables of equal length."""

    source: Any

    def __call__(self) -> Iterator[Any]:
        pyarrow = import_pyarrow()
        waiting: list[Any] = []
        number = 0
        for batch in self._batches():
            waiting.append(batch)
            number += batch.num_rows
            while number >= SHARD_ROWS:
                table = pyarrow.concat_tables(waiting)
                yield table.slice(0, SHARD_ROWS)
                waiting, number = [table.slice(SHARD_ROWS)], number - SHARD_ROWS
        if number:
            yield pyarrow.concat_tables(waiting)

    def _batches(self) -> Iterator[Any]:
        pyarrow = import_pyarrow()
        if is_kind(self.source, "polars", "LazyFrame"):
            for frame in self.source.collect_batches(chunk_size=SHARD_ROWS, maintain_order=True):
                yield pyarrow.table(frame)
        else:
            for batch in pyarrow.RecordBatchReader.from_stream(self.source):
                yield pyarrow.Table.from_batches([batch])

    def __repr__(self) -> str:
        return f"a query of {type(self.source).__name__}"


def used_columns(
    source: Any, target: Any, features: Sequence[Any] | None, counts: Any
) -> LazyQuery:
    """The query for the columns that have a role, so that the engine reads no others."""
    lazy = is_kind(source, "polars", "LazyFrame")
    names = tuple(source.collect_schema().names() if lazy else source.columns)
    check_names(names)
    roles = choose_roles(names, target, features, counts)
    used = [*roles.features, *(n for n in (roles.target, roles.counts) if n is not None)]
    if lazy:
        return LazyQuery(source.select(used))
    return LazyQuery(
        source.project(", ".join('"' + name.replace('"', '""') + '"' for name in used))
    )
