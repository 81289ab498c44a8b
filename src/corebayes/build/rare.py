"""Rows that alone tell some coefficients: those of a level that has a handful of rows.

With XᵀX = Gᵀ G the row z_n = G⁻ᵀ x_n has the leverage h_n = ‖z_n‖² ≤ 1, and each of the k rows of a
level has one of at least 1/k, however the level is coded (a dummy, the reference of all dummies, a
standardised or a product column). For some rows K

    Z_KᵀZ_K e = e   ⇔   x_nᵀ v = 0 for every row n ∉ K,     v = G⁻¹ e,

so eigenvalues of one are the directions v of the coefficients that no other row sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import qr
from scipy.sparse.csgraph import connected_components

from corebayes.models.fewer_columns import Regression, design_of, droppable
from corebayes.problem import Problem
from corebayes.scan.query import OfWidth
from corebayes.types import Array, Block, Indices, Points

# Rows of a level that are few: more say enough for a posterior that is close to a Gaussian, even
# where they all agree. And the leverage, in units of that of all rows, from which it is high.
FEW, USUAL = 200, 2.0
# Rows that show whether there are such levels; up to so many they are all looked at.
LOOKED_AT = 20_000
# The leverage in a sample from which a level may have few rows: there are ten of it there.
SUSPICIOUS = 0.1
# Rows of high leverage that are looked at, at most.
MOST_HIGH = 2_000
# Eigenvalues of XᵀX, of columns of length one, that are zero; and how far from one, or from zero,
# rounding leaves what is.
DEPENDENT, EXACT = 1e-10, 1e-6


class WhiteningMap(NamedTuple):
    """x ↦ z = x·matrix with Σ z zᵀ = I."""

    matrix: Array
    """(p, r)."""
    norms: Array
    """Of the columns of X."""

    @classmethod
    def of(cls, gram: Array) -> WhiteningMap | None:
        """None where there is none. Cost: p³."""
        norms = np.sqrt(np.diagonal(gram))
        if not np.all(np.isfinite(gram)):
            return None
        lengths = np.where(norms > 0.0, norms, 1.0)
        values, vectors = np.linalg.eigh(gram / np.outer(lengths, lengths))
        seen = values > DEPENDENT * float(values.max(initial=0.0))
        return cls((vectors[:, seen] / np.sqrt(values[seen])) / lengths[:, None], lengths)

    @property
    def is_whole(self) -> bool:
        return self.matrix.shape[0] == self.matrix.shape[1]


@dataclass(frozen=True)
class Products(OfWidth):
    """XᵀX of the rows that count. Cost: N·p² flops."""

    model: Regression

    @property
    def width(self) -> int:
        return droppable(self.model).size

    def answer(self, block: Block, numbers: Indices) -> Any:
        design = _counted(self.model, block)
        return (design.T @ design,)

    def merge(self, first: Any, second: Any) -> Any:
        return (first[0] + second[0],)


class High(NamedTuple):
    """The numbers of some rows and their leverage, highest first."""

    numbers: Indices
    leverages: Array

    def highest(self) -> High:
        order = np.argsort(-self.leverages, kind="stable")[:MOST_HIGH]
        return High(self.numbers[order], self.leverages[order])


@dataclass(frozen=True)
class HighRows(OfWidth):
    """The rows of a leverage that only those of rare levels have. Cost: N·p² flops."""

    model: Regression
    whitening: WhiteningMap
    least: float

    @property
    def width(self) -> int:
        return self.whitening.norms.size

    def answer(self, block: Block, numbers: Indices) -> High:
        seen = _counted(self.model, block) @ self.whitening.matrix
        leverages = np.vecdot(seen, seen)
        high = np.flatnonzero(leverages > self.least)
        return High(numbers[high], leverages[high]).highest()

    def merge(self, first: High, second: High) -> High:
        return High(
            np.concatenate([first.numbers, second.numbers]),
            np.concatenate([first.leverages, second.leverages]),
        ).highest()


def _counted(model: Regression, block: Block) -> Array:
    """The design with zeros for rows that do not count."""
    design = design_of(model, block)
    return design if block.counts is None else design * (block.counts > 0.0)[:, None]


class RareLevels(NamedTuple):
    """Rows that alone see some directions of the coefficients, level by level."""

    levels: tuple[Points, ...]
    """The rarest first."""
    model: Regression
    whitening: WhiteningMap

    def columns(self, chosen: Sequence[Points]) -> Indices | None:
        """As many columns of X as there are directions that only these levels see, without which
        the other rows lose nothing; None where there are no such columns."""
        seen = np.vstack([_counted(self.model, one.rows) for one in chosen])
        directions = self.whitening.matrix @ _unseen_elsewhere(seen @ self.whitening.matrix)
        return _columns(directions * self.whitening.norms[:, None], droppable(self.model))


def rare_levels(problem: Problem, model: Regression) -> RareLevels | None:
    """Levels of few rows; None where there are none.

    Cost: a look at some rows; two passes where these show that there may be any.
    """
    data = problem.data
    whole = data.num_rows <= LOOKED_AT
    some = looked_at(problem)
    rows = data.take(some)
    # Rows of the usual leverage are of no rare level.
    least = max(1.0 / (FEW + 1), USUAL * droppable(model).size / data.num_rows)
    with np.errstate(over="ignore", invalid="ignore"):
        (gram,) = Products(model).answer(rows, some)
        whitening = WhiteningMap.of(gram)
        if whitening is None:
            return None
        high = HighRows(model, whitening, least).answer(rows, some)
        if not whole:
            if whitening.is_whole and high.leverages.max(initial=0.0) < SUSPICIOUS:
                return None
            whitening = WhiteningMap.of(problem.ask(Products(model))[0])
            if whitening is None:
                return None
            high = problem.ask(HighRows(model, whitening, least))
    if high.numbers.size == 0:
        return None
    numbers = np.sort(high.numbers)
    rows = data.take(numbers)
    levels = _levels(_counted(model, rows) @ whitening.matrix)
    if not levels:
        return None
    points = Points(numbers, rows)
    return RareLevels(tuple(points.take(level) for level in levels), model, whitening)


def looked_at(problem: Problem) -> Indices:
    """Random rows, the same always; all of them if they are few."""
    data = problem.data
    if data.num_rows <= LOOKED_AT:
        return np.arange(data.num_rows)
    return data.some(np.random.default_rng(data.num_rows), LOOKED_AT)


def _levels(seen: Array) -> list[Indices]:
    """Positions of the rows of each level, the rarest first."""
    touched = seen @ _unseen_elsewhere(seen)
    if touched.shape[1] == 0:
        return []
    # Rows belong together where one direction has both.
    linked = np.abs(touched @ touched.T) > EXACT
    own = np.flatnonzero(np.diagonal(linked))
    number, labels = connected_components(linked[np.ix_(own, own)], directed=False)
    return sorted((own[labels == label] for label in range(number)), key=len)


def _unseen_elsewhere(seen: Array) -> Array:
    """The directions that only these rows see, (r, m)."""
    values, vectors = np.linalg.eigh(seen.T @ seen)
    return vectors[:, values > 1.0 - EXACT]


def _columns(directions: Array, places: Indices) -> Indices | None:
    """Columns of X, one for each direction, that the directions can be told from; None where these
    are not among those that can be left out, or nothing else would be left."""
    number = directions.shape[1]
    allowed = np.flatnonzero(places >= 0)
    if not 0 < number < places.size or allowed.size < number:
        return None
    triangle, pivots = qr(directions[allowed].T, mode="r", pivoting=True)
    sizes = np.abs(np.diagonal(triangle))
    if sizes[-1] <= EXACT * sizes[0]:
        return None
    return np.sort(places[allowed[pivots[:number]]])
