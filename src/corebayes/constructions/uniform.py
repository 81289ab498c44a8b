"""Uniform subsampling, the baseline: M draws with replacement, w_n = (Σ c / M) · times drawn.

Rows are drawn in proportion to their counts. Unbiased for the log-likelihood, but its KL falls
only like N/M (Campbell 2024, Corollary 4.1). Cost: M rows fetched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from corebayes.constructions.construction import Info
from corebayes.problem import Problem
from corebayes.scan.every_row import Counts, joined
from corebayes.types import Array, Indices, Points


class State(NamedTuple):
    points: Points
    weights: Array
    size: int


@dataclass(frozen=True, kw_only=True)
class Uniform:
    """M rows at random, equally weighted; a row drawn k times gets k times the weight."""

    def passes(self, size: int | None) -> tuple[float, float]:
        return (0.0, 1.0)

    def init(self, rng: np.random.Generator, problem: Problem, size: int | None) -> State:
        if size is None:
            raise ValueError("Uniform needs a size: build(..., size=100, method=Uniform())")
        return State(problem.no_points(), np.empty(0), size)

    def step(self, rng: np.random.Generator, problem: Problem, state: State) -> tuple[State, Info]:
        drawn = _draw_rows(rng, problem, state.size)
        indices, times = np.unique(drawn, return_counts=True)
        weights = times.astype(np.float64) * (problem.data.total_count / state.size)
        points = Points(indices, problem.data.take(indices))
        done = f"all {state.size} draws taken"
        return State(points, weights, state.size), Info(kl=None, done=done)


def _draw_rows(rng: np.random.Generator, problem: Problem, number: int) -> Indices:
    """Row numbers in proportion to the counts: by inverting their running sum."""
    data = problem.data
    if data.total_count == data.num_rows:
        return rng.integers(data.num_rows, size=number)
    positions = np.sort(rng.uniform(0.0, data.total_count, size=number))
    # Where the sum stands after every row: N numbers.
    running = np.cumsum(joined(problem.ask(Counts())))
    return np.minimum(np.searchsorted(running, positions, side="right"), data.num_rows - 1)
