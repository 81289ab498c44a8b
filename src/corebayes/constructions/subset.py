"""A random subset to start from: M distinct rows that share the weight of all."""

from __future__ import annotations

import numpy as np

from corebayes.problem import Problem
from corebayes.tangent.geometry import random_points
from corebayes.types import Rng, WeightedPoints


def random_subset(rng: Rng, problem: Problem, size: int) -> WeightedPoints:
    """M rows without replacement of those that count, at w_n = c_n Σ c / Σ_subset c.

    Without counts that is N/M. Fewer rows when fewer count.
    """
    data, number = problem.data, size
    while True:
        drawn = random_points(rng, problem, number)
        counted = np.flatnonzero(drawn.weights > 0.0)
        if counted.size >= size or number >= data.num_rows:
            break
        number = min(2 * number, data.num_rows)
    if counted.size > size:
        counted = np.sort(rng.choice(counted, size=size, replace=False, shuffle=False))
    points = drawn.take(counted)
    return points.scaled(data.total_count / points.weights.sum())
