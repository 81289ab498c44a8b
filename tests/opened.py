"""Rows for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from corebayes.data.table import Tally
from corebayes.rows import Rows, open_rows
from corebayes.types import Block


def checked(source: Any, **options: Any) -> Rows:
    """Opened, and every value looked at."""
    return open_rows(source, **options).check()


def table(rows: Any) -> Any:
    """What lies behind the door."""
    return rows._behind.table if isinstance(rows, Rows) else rows


def read(rows: Any, start: int, stop: int) -> Block:
    """A range of rows as a pass reads them, in one piece."""
    parts = [part for _, part in table(rows).parts(start, stop, None, Tally())]
    fields = {name: _joined([part[name] for part in parts]) for name in parts[0].fields}
    counts = [part.counts for part in parts]
    return Block(fields, None if counts[0] is None else _joined(counts))


def shards(rows: Any) -> Any:
    return table(rows).shards


def scan(
    query: Any, rows: Any, executor: Any, numbers: Any = None, memory: Any = None, log: Any = None
) -> Any:
    """One pass of this executor."""
    opened = open_rows(rows, executor=executor, memory=memory)
    opened.log = log
    return opened.ask(query, numbers)


def _joined(arrays: list[Any]) -> Any:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
