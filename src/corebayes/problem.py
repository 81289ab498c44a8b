"""One model on one data set: what constructions ask their questions to."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from corebayes.samplers.exact import is_conjugate
from corebayes.scan.budget import Budget
from corebayes.scan.inline import Inline
from corebayes.scan.query import Executor, PassLog, Query, Statistics, scan
from corebayes.types import Array, Data, Gaussian, Indices, Model, Points, WeightedPoints

Answer = TypeVar("Answer")


@dataclass
class Problem:
    """A bound model, its data, and the executor of passes; counts the rows that were read."""

    model: Model
    data: Data
    executor: Executor = field(default_factory=Inline)
    budget: Budget | None = None
    """The memory that a pass may take; None leaves it at its default of a few megabytes."""
    log: PassLog | None = field(default=None, repr=False)
    """Remembers the answers of passes; None to forget them."""
    rows_scanned: int = 0
    """Rows that passes went over, by this run or by the one that it goes on from."""
    closed_form: Any = field(default=None, repr=False)
    """What the closed-form geometry derives from the statistics, once."""

    def __post_init__(self) -> None:
        if self.budget is not None and self.executor == Inline():
            self.executor = Inline(threads=self.budget.num_threads(self.data))

    def ask(self, query: Query[Answer], rows: Indices | None = None) -> Answer:
        """One pass over all rows, or over the given sorted row numbers."""
        self.rows_scanned += self.data.num_rows if rows is None else rows.size
        return scan(query, self.data, self.executor, rows, self.budget, self.log)

    @cached_property
    def statistics(self) -> Any:
        """Sufficient statistics of all rows of a conjugate model: one pass, then kept."""
        return self.ask(Statistics(self.model))

    @cached_property
    def full_posterior(self) -> Gaussian:
        """The exact posterior of all rows of a conjugate model."""
        if not is_conjugate(self.model):
            raise TypeError(f"{type(self.model).__name__} has no closed-form posterior")
        return self.model.posterior(self.statistics)

    def points(self, rows: Indices, weights: Array | None = None) -> WeightedPoints:
        """The rows with these numbers, at weight zero unless weights are given."""
        return Points(rows, self.data.take(rows)).weighted(weights)

    def no_points(self) -> WeightedPoints:
        return self.points(np.empty(0, dtype=np.int64))
