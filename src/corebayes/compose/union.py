"""Stand-ins for data, and perhaps new rows below them, as one problem."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from corebayes.coreset import Coreset
from corebayes.coreset.check import has_learned_rows
from corebayes.coreset.sources import Source
from corebayes.data.arrays import ArrayData, concatenated
from corebayes.data.joined import join
from corebayes.problem import Problem
from corebayes.rows import Rows, open_rows
from corebayes.types import Block, Indices, Model, WeightedPoints


@dataclass(frozen=True)
class Union:
    """Coresets, whose finest rows stand for their data, and new rows, if there are any."""

    coresets: tuple[Coreset, ...]
    new: Rows | None
    sources: tuple[Source, ...]
    """Of the coresets in their order, and of the new rows."""

    @property
    def model(self) -> Model:
        return self.coresets[0].model

    @cached_property
    def stand_ins(self) -> WeightedPoints:
        """The finest rows of every coreset, numbered as in the union."""
        pieces = [coreset.finest.points for coreset in self.coresets]
        return WeightedPoints(
            np.arange(sum(piece.size for piece in pieces)),
            concatenated([Block(piece.rows.fields) for piece in pieces]),
            np.concatenate([piece.weights for piece in pieces]),
        )

    def problem(self, **options: Any) -> Problem:
        """All rows, those of the coresets counted as often as their weights say.

        The model stays as it is bound; the new rows were asked whether it has a density for them.
        Cost: a pass.
        """
        old, first = self.stand_ins, self.coresets[0].provenance
        table = ArrayData(
            fields=old.rows.fields,
            counts=old.weights,
            column_names=tuple(first.get("column_names") or ()),
            target_name=str(first.get("target_name") or "y"),
            design=first.get("design"),
        )
        tables = [table] if self.new is None else [table, self.new.table]
        return Problem(self.model, open_rows(join(tables), **options).check())

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
    """The rows, if the model has a density for each; see `corebayes.rows.RowCheck`."""
    row_check: Any = getattr(model, "row_check", None)
    return rows.check(None if row_check is None else row_check())
