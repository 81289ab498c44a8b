"""The pass itself: every shard asked, answers merged in their order."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import TypeVar

import numpy as np

from corebayes.data.table import Table
from corebayes.deadline import check_time, current_deadline
from corebayes.scan.budget import Budget
from corebayes.scan.meter import Meter
from corebayes.scan.passes import Executor, Forgetful, Pass, PassLog, Query, Shard
from corebayes.types import Indices

Answer = TypeVar("Answer")

# Scattered rows of a task.
GATHERED_ROWS = 16_384


def scan(
    query: Query[Answer],
    data: Table,
    executor: Executor,
    rows: Indices | None = None,
    *,
    budget: Budget | None = None,
    log: PassLog | None = None,
    meter: Meter | None = None,
) -> Answer:
    """Ask every row, or only the given sorted row numbers. Cost: one pass over those rows.

    What the log remembers is not asked again. Answers are merged from the first shard on, so the
    sums have the same bits wherever a pass was taken up again.
    """
    shards = _shards(data, rows)
    block_rows = query.block_rows if budget is None else budget.block_rows(query, data)
    work = Pass(query, data, block_rows, keep=budget is None)
    log = log or Forgetful()
    result, done = log.recall(work, shards)
    # One small shard is the inner loop of every weight update: no executor, no overhead.
    if len(shards) > 1:
        answers = executor.map(work, shards[done:])
    else:
        answers = map(partial(work, stopped=current_deadline().passed), shards[done:])
    check_time()
    try:
        for answer, tally in answers:
            check_time()
            if meter is not None:
                meter.add(tally)
            result = answer if done == 0 else query.merge(result, answer)
            done += 1
            log.keep(result, done)
    finally:
        if isinstance(answers, Generator):
            # Now, and not when nobody remembers the exception any more.
            answers.close()
    return result


def _shards(data: Table, rows: Indices | None) -> list[Shard]:
    """The tasks of a pass over all rows or the given ones.

    A few rows in each of thousands of shards are one task where that costs nothing to read.
    """
    if rows is None:
        return [Shard(start, stop) for start, stop in data.shards]
    if data.scattered:
        groups = np.split(rows, range(GATHERED_ROWS, rows.size, GATHERED_ROWS)) if rows.size else []
        return [Shard(int(group[0]), int(group[-1]) + 1, group) for group in groups]
    groups = np.split(rows, np.searchsorted(rows, [start for start, _ in data.shards[1:]]))
    pairs = zip(data.shards, groups, strict=True)
    return [Shard(start, stop, group) for (start, stop), group in pairs if group.size]
