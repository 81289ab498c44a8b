"""The questions that passes are asked: totals, best rows, derivatives, sufficient statistics."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from corebayes.scan.passes import rows_of_width
from corebayes.types import Array, Block, Indices, Model, Points, TangentSpace

Answer = TypeVar("Answer")


class Added:
    """Answers of named fields that add up, field by field."""

    def merge(self, first: Any, second: Any) -> Any:
        return type(first)(*(a + b for a, b in zip(first, second, strict=True)))


class OfWidth(ABC):
    """So many numbers are computed of each row."""

    @property
    @abstractmethod
    def width(self) -> int: ...

    @property
    def block_rows(self) -> int:
        return rows_of_width(self.width)


class OfSpace(OfWidth):
    """A question to rows as vectors of a tangent space."""

    space: TangentSpace

    @property
    def width(self) -> int:
        return self.space.width


class OfVectors(OfSpace, Generic[Answer]):
    """One that is answered of the vectors themselves."""

    def answer(self, block: Block, numbers: Indices) -> Answer:
        return self.answer_embedded(self.space.embed(block, reuse=True), block, numbers)

    @abstractmethod
    def answer_embedded(self, vectors: Any, block: Block, numbers: Indices) -> Answer:
        """The answer of rows whose vectors are at hand."""


class Sums(NamedTuple):
    """Σ c_n g_n over the rows asked, Σ c_n E_w f_n, and Σ c_n."""

    total: Array
    mean: float
    weight: float


@dataclass(frozen=True)
class Totals(OfSpace, Added):
    """Σ_n c_n g_n and Σ_n c_n E_w f_n. Cost: N·S potentials, or N·d² flops in a Hermite space."""

    space: TangentSpace

    def answer(self, block: Block, numbers: Indices) -> Sums:
        total, mean = self.space.total(block)
        # One bad number anywhere makes this sum bad.
        if not (math.isfinite(mean) and math.isfinite(float(total.sum()))):
            raise BadPotentialError(_bad_row(self.space, block, numbers))
        weight = float(len(block) if block.counts is None else block.counts.sum())
        return Sums(total, mean, weight)


class BadPotentialError(ValueError):
    """A potential is NaN or infinite at a draw of π_w."""

    def __init__(self, row: int):
        super().__init__(
            f"row {row}: its log-likelihood is NaN or infinite at a draw of the coreset posterior; "
            "check the row's values, or the model's log-likelihood for overflow"
        )
        self.row = row

    def __reduce__(self) -> tuple[Any, ...]:
        return (BadPotentialError, (self.row,))


def _bad_row(space: TangentSpace, block: Block, numbers: Indices) -> int:
    for position, number in enumerate(numbers):
        if not np.isfinite(space.total(block.take(slice(position, position + 1))).mean):
            return int(number)
    return int(numbers[0])


class Best(NamedTuple):
    """The best-aligned rows, best first, and how many rows had a constant potential."""

    points: Points
    scores: Array
    num_flat: int


@dataclass(frozen=True)
class BestRows(OfVectors[Best]):
    """The rows with the largest ⟨g_n, r⟩ / ‖g_n‖, leaving out `exclude` (sorted).

    Divided by ‖r‖ the score is corr_w[f_n, r]. Rows with a constant potential have no
    direction: they are counted, never returned.
    """

    space: TangentSpace
    residual: Array
    num_best: int
    exclude: Indices

    def answer_embedded(self, vectors: Any, block: Block, numbers: Indices) -> Best:
        squared_norms = self.space.squared_norms(vectors)
        flat = squared_norms <= 0.0
        scores = self.space.project(vectors, self.residual)
        scores /= np.sqrt(np.where(flat, 1.0, squared_norms))
        scores[flat] = -np.inf
        first, last = np.searchsorted(self.exclude, [numbers[0], numbers[-1] + 1])
        if first < last:
            scores[np.isin(numbers, self.exclude[first:last], assume_unique=True)] = -np.inf
        if block.counts is not None:
            scores[block.counts == 0.0] = -np.inf
            flat &= block.counts > 0.0
        best = _largest(scores, self.num_best)
        points = Points(numbers[best], block.take(best))
        return Best(points, scores[best], int(np.count_nonzero(flat)))

    def merge(self, first: Best, second: Best) -> Best:
        num_flat = first.num_flat + second.num_flat
        full = first.scores.size >= self.num_best
        if second.scores.size == 0 or (full and second.scores[0] <= first.scores[-1]):
            return first._replace(num_flat=num_flat)
        scores = np.concatenate([first.scores, second.scores])
        best = _largest(scores, self.num_best)
        points = first.points.append(second.points).take(best)
        return Best(points, scores[best], num_flat)


def _largest(scores: Array, number: int) -> Indices:
    """Positions of the largest finite scores, best first, ties by position."""
    if number < scores.size // 8:
        threshold = np.partition(scores, scores.size - number)[scores.size - number]
        kept = np.flatnonzero(scores >= threshold)
    else:
        kept = np.arange(scores.size)
    best = kept[np.argsort(-scores[kept], kind="stable")][:number]
    return best[np.isfinite(scores[best])]


class Slopes(NamedTuple):
    """Σ c_n f_n, its gradient and its Hessian at one θ."""

    value: float
    gradient: Array
    hessian: Array


@dataclass(frozen=True)
class Derivatives(OfWidth, Added):
    """The full-data log-likelihood at θ with gradient and Hessian. Cost: N · d² flops."""

    model: Model
    theta: Array

    @property
    def width(self) -> int:
        return self.theta.size

    def answer(self, block: Block, numbers: Indices) -> Slopes:
        weights = block.multiplicity()
        value = float(self.model.sum_potentials(self.theta[None, :], block, weights)[0])
        return Slopes(value, *self.model.gradient_and_hessian(self.theta, block, weights))


@dataclass(frozen=True)
class Statistics(OfWidth, Added):
    """Additive sufficient statistics of a conjugate model. Cost: N · d² flops."""

    model: Any

    @property
    def width(self) -> int:
        return self.model.dim

    def answer(self, block: Block, numbers: Indices) -> Any:
        return self.model.statistics(block, block.multiplicity())
