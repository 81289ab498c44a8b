"""Uniform subsampling, the baseline: M draws with replacement, w_n = (Σ c / M) · times drawn.

Rows are drawn in proportion to their counts. Unbiased for the log-likelihood, but its KL falls
only like N/M (Campbell 2024, Corollary 4.1). Cost: M rows fetched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from corebayes.constructions.construction import Construction, Info, Style
from corebayes.problem import Problem
from corebayes.scan.every_row import Counts, joined
from corebayes.types import Indices, Rng, WeightedPoints


class State(NamedTuple):
    points: WeightedPoints
    size: int


@dataclass(frozen=True, kw_only=True)
class Uniform(Construction):
    """M rows at random, equally weighted; a row drawn k times gets k times the weight."""

    style = Style("#9A9A9A", "x", "--")

    def passes(self, size: int | None) -> tuple[float, float]:
        return (0.0, 1.0)

    def init(self, rng: Rng, problem: Problem, size: int | None) -> State:
        return State(problem.no_points(), self.require(size))

    def step(self, rng: Rng, problem: Problem, state: State) -> tuple[State, Info]:
        size = state.size
        indices, times = np.unique(_draw_rows(rng, problem, size), return_counts=True)
        weights = times.astype(np.float64) * (problem.data.total_count / size)
        points = problem.points(indices, weights)
        return State(points, size), Info(kl=None, done=f"all {size} draws taken")


def _draw_rows(rng: Rng, problem: Problem, number: int) -> Indices:
    """Row numbers in proportion to the counts: by inverting their running sum."""
    data = problem.data
    if data.template.counts is None:
        return rng.integers(data.num_rows, size=number)
    positions = np.sort(rng.uniform(0.0, data.total_count, size=number))
    # Where the sum stands after every row: N numbers.
    running = np.cumsum(joined(problem.ask(Counts())))
    return np.minimum(np.searchsorted(running, positions, side="right"), data.num_rows - 1)
