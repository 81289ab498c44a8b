"""Stand-ins for data, and perhaps new rows below them, as one problem."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from corebayes.build.missed import is_plain, put_right
from corebayes.coreset import Coreset
from corebayes.coreset.check import has_learned_rows
from corebayes.coreset.missed import Missed
from corebayes.coreset.sources import Source
from corebayes.data.arrays import ArrayData, concatenated
from corebayes.data.joined import join
from corebayes.problem import Problem
from corebayes.rows import Rows, open_rows
from corebayes.tangent.geometry import element_of
from corebayes.tangent.hermite import HermiteSpace
from corebayes.tangent.polynomial import element_at
from corebayes.types import Array, Block, Gaussian, Indices, Model, WeightedPoints


@dataclass(frozen=True)
class Union:
    """Coresets, whose finest rows stand for their data, and new rows, if there are any."""

    coresets: tuple[Coreset, ...]
    new: Rows | None
    sources: tuple[Source, ...]
    """Of the coresets in their order, and of the new rows."""
    weights: Array | None = None
    """Of the stand-ins, where what they miss has been put right."""

    @property
    def model(self) -> Model:
        return self.coresets[0].model

    @cached_property
    def stand_ins(self) -> WeightedPoints:
        """The finest rows of every coreset, numbered as in the union."""
        pieces = [coreset.finest.points for coreset in self.coresets]
        weights = np.concatenate([piece.weights for piece in pieces])
        return WeightedPoints(
            np.arange(weights.size),
            concatenated([Block(piece.rows.fields) for piece in pieces]),
            weights if self.weights is None else self.weights,
        )

    def seen_from(self, there: Gaussian | None) -> Union:
        """The union with what the reserves miss put right around the posterior of all of it."""
        model = self.model
        if there is None or not is_plain(model):
            return self
        weights = [
            put_right(model, points, missed, there).weights if missed else points.weights
            for points, missed in self._parts
        ]
        return replace(self, weights=np.concatenate(weights))

    def old_total(self, space: HermiteSpace) -> Array:
        """Σ c_n f_n of all old rows, as far as it is known."""
        parts = [element_of(space, points) for points, _ in self._parts]
        parts += [element_at(one, space.gaussian, space.order) for _, one in self._parts if one]
        return np.sum(parts, axis=0)

    @property
    def _parts(self) -> list[tuple[WeightedPoints, Missed | None]]:
        """The finest rows of every coreset, and what these miss."""
        return [
            (coreset.finest.points, None if coreset.reserve is None else coreset.missed)
            for coreset in self.coresets
        ]

    def problem(self, **options: Any) -> Problem:
        """All rows, those of the coresets counted as often as their weights say.

        The model stays as it is bound; the new rows were asked whether it has a density for them.
        Cost: a pass.
        """
        tables = [self._table(self.stand_ins)]
        if self.new is not None:
            tables.append(self.new.table)
        return Problem(self.model, open_rows(join(tables), **options).check())

    def _table(self, points: WeightedPoints) -> Any:
        first = self.coresets[0].provenance
        return ArrayData(
            fields=points.rows.fields,
            counts=points.weights,
            column_names=tuple(first.get("column_names") or ()),
            target_name=str(first.get("target_name") or "y"),
            design=first.get("design"),
        )

    def renumbered(self, points: WeightedPoints) -> WeightedPoints:
        """Points of the union with the numbers and counts that they have in their sources.

        Learned rows, which have no number there, are numbered −1, −2, … again.
        """
        if points.indices.min(initial=0) < 0:
            return points
        old = self.stand_ins.size
        is_old = points.indices < old
        places = np.where(is_old, points.indices, 0)
        if any(has_learned_rows(coreset) for coreset in self.coresets):
            numbers = -1 - np.arange(points.size)
        else:
            offset = sum(coreset.num_rows for coreset in self.coresets)
            fresh = points.indices - old + offset
            numbers = np.where(is_old, self._numbers[places], fresh)
        counts = None
        if self._is_counted:
            counts = np.where(is_old, self._counts[places], points.rows.multiplicity())
        order = np.argsort(numbers)
        rows = Block(points.rows.fields, counts).take(order)
        return WeightedPoints(numbers[order], rows, points.weights[order])

    @cached_property
    def _numbers(self) -> Indices:
        """What the stand-ins are numbered in the sources, one below the other."""
        lengths = [coreset.num_rows for coreset in self.coresets]
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
        pairs = zip(starts, self.coresets, strict=True)
        return np.concatenate([start + coreset.finest.indices for start, coreset in pairs])

    @cached_property
    def _counts(self) -> Any:
        return np.concatenate([c.finest.rows.multiplicity() for c in self.coresets])

    @property
    def _is_counted(self) -> bool:
        counted = any(coreset.rows.counts is not None for coreset in self.coresets)
        return counted or (self.new is not None and self.new.template.counts is not None)


def checked(model: Model, rows: Rows) -> Rows:
    """The rows, if the model has a density for each; see `corebayes.data.table.RowCheck`."""
    row_check: Any = getattr(model, "row_check", None)
    return rows.check(None if row_check is None else row_check())
