"""A random subset to start from: M distinct rows that share the weight of all."""

from __future__ import annotations

import numpy as np

from corebayes.problem import Problem
from corebayes.tangent.geometry import subsample
from corebayes.types import Array, Points


def random_subset(
    rng: np.random.Generator, problem: Problem, size: int | None, method: str
) -> tuple[Points, Array]:
    """M rows without replacement of those that count, at w_n = c_n Σ c / Σ_subset c.

    Without counts that is N/M. Fewer rows when fewer count. `method` is for the message when no
    size was given.
    """
    if size is None:
        raise ValueError(f"{method} needs a size: build(..., size=100, method={method}())")
    data, number = problem.data, size
    while True:
        rows = subsample(rng, problem, number)
        rows = np.arange(data.num_rows) if rows is None else rows
        drawn = Points(rows, data.take(rows))
        counted = np.flatnonzero(drawn.rows.multiplicity() > 0.0)
        if counted.size >= size or number >= data.num_rows:
            break
        number = min(2 * number, data.num_rows)
    if counted.size > size:
        counted = np.sort(rng.choice(counted, size=size, replace=False, shuffle=False))
    points = drawn.take(counted)
    counts = points.rows.multiplicity()
    return points, counts * (data.total_count / counts.sum())
