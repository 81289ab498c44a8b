"""One model on one data set: what constructions ask their questions to."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from corebayes.data.arrays import ArrayData
from corebayes.deadline import OutOfTimeError, check_time, part_of_time
from corebayes.rows import Rows, open_rows
from corebayes.samplers.exact import is_conjugate
from corebayes.samplers.modes.places import NO_ROWS, Places, find_places, modes_near
from corebayes.samplers.modes.search import Mode
from corebayes.samplers.modes.subsamples import Sampled
from corebayes.scan.passes import Query
from corebayes.scan.query import Statistics
from corebayes.types import Array, Gaussian, Indices, Model, Points, WeightedPoints

Answer = TypeVar("Answer")

# The share of the time left that a search for modes may take.
SEARCHING = 0.25


@dataclass
class Problem:
    """A bound model and the door to its rows."""

    model: Model
    data: Rows
    """Anything that `open_rows` takes."""
    closed_form: Any = field(default=None, repr=False)
    """What the closed-form geometry derives from the statistics, once."""
    known_places: Places | None = field(default=None, repr=False)
    strays: Array | None = field(default=None, repr=False)
    """Places (K, d) at which coresets on the way had modes of their own."""

    def __post_init__(self) -> None:
        if not isinstance(self.data, Rows):  # pyright: ignore[reportUnnecessaryIsInstance]
            self.data = open_rows(self.data)

    def ask(self, query: Query[Answer], rows: Indices | None = None) -> Answer:
        """One pass over all rows, or over the given sorted row numbers."""
        return self.data.ask(query, rows)

    @property
    def rows_scanned(self) -> int:
        """Rows that passes went over, by this run or by the one that it goes on from."""
        return self.data.meter.rows_asked

    def of_points(self, points: WeightedPoints) -> Problem:
        """The same model on these rows, each counted as often as its weight says."""
        rows = open_rows(ArrayData(fields=points.rows.fields, counts=points.weights))
        known = None if self.known_places is None else Places(self.known_places.modes)
        return Problem(self.model, rows, known_places=known, strays=self.strays)

    @property
    def places(self) -> Array:
        """Modes of the posterior of all rows, the heaviest first, (K, d); see `find_places`."""
        return self._found.modes

    @property
    def carriers(self) -> Indices:
        """Rows that a mode may rest on alone, to choose from beside random ones."""
        return self._found.carriers if self.known_places is not None else NO_ROWS

    def modes_near(self, places: Array) -> list[Mode]:
        """The modes of the posterior of all rows that these places lead to."""
        if len(places) == 0:
            return []
        sampled = self._found.sampled
        if sampled is None:
            fixed = np.random.default_rng(self.data.num_rows)
            sampled = Sampled.from_nothing(fixed, self.model, self.data)
        return modes_near(sampled, places)

    @property
    def _found(self) -> Places:
        """Found once, with the same random numbers always, so that looks can be compared."""
        if self.known_places is None:
            fixed = np.random.default_rng(self.data.num_rows)
            try:
                with part_of_time(SEARCHING):
                    self.known_places = find_places(fixed, self.model, self.data)
            except OutOfTimeError:
                # Nobody who gave a time wants to spend it all on a search before the first row.
                check_time()
                self.known_places = Places(np.empty((0, self.model.dim)))
        return self.known_places

    @property
    def watched(self) -> Array:
        """The places, and those where coresets have had modes that are none of π's."""
        return self.places if self.strays is None else np.vstack([self.places, self.strays])

    def watch(self, strays: Array) -> None:
        """From now on looks are also from here, and what all rows say here is fitted."""
        self.strays = strays if self.strays is None else np.vstack([self.strays, strays])

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
