"""Derivatives of a model whose rows touch few parameters, by differences of plain functions.

Those of all rows come from k² + k + 1 points along the k directions of θ. A step is as short as
rows are steep there: a coefficient of miles or dollars goes a thousandth as far as another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from corebayes.models.custom.finite_differences import (
    FIRST_STEP,
    difference_gradient,
    difference_hessian,
)
from corebayes.models.custom.touching_traced import RowMeans, ScaleJet
from corebayes.types import Array, Block, Indices

# A step along a direction in which rows are not steep, and where that is looked at.
STEP, NEAR = 2e-3, 1e-6


class PlainModel(Protocol):
    """A model by its plain functions."""

    def potentials(self, draws: Array, block: Block, out: Array | None = None) -> Array: ...

    def log_prior(self, draws: Array) -> Array: ...

    def log_prior_gradient(self, theta: Array) -> Array: ...


@dataclass(frozen=True, eq=False)
class Differences:
    """Central differences, second order for rows, fourth for the prior."""

    model: PlainModel
    directions: Array
    """(k, d): where each predictor leads."""

    precision = 1e-5

    def row_means(self, places: Array, block: Block) -> RowMeans:
        jets = [self._jet(place, block) for place in places]
        value, first, second = (np.mean(part, axis=0) for part in zip(*jets, strict=True))
        return RowMeans(value, first, second, None)

    def row_slopes(self, place: Array, block: Block) -> Array:
        """(n, k). Cost: 4·k potentials of every row."""
        steps = self._steps(place, block)
        return self._rises(place, block, steps) / steps

    def _jet(self, place: Array, block: Block) -> tuple[Array, Array, Array]:
        steps = self._steps(place, block)
        moves, number = steps[:, None] * self.directions, steps.size
        first, second = np.triu_indices(number, 1)
        along = np.concatenate([moves, moves[first] + moves[second]])
        points = np.concatenate([np.zeros((1, place.size)), along, -along])
        values = self._potentials(place, points, block)
        here, (up, down) = values[:, 0], np.split(values[:, 1:], 2, axis=1)
        # uᵀHu = f₊ + f₋ − 2 f₀, and 2 uᵀHv = (u + v)ᵀH(u + v) − uᵀHu − vᵀHv
        bends = up + down - 2.0 * here[:, None]
        hessian = np.empty((len(block), number, number))
        own = np.arange(number)
        hessian[:, own, own] = bends[:, :number]
        mixed = 0.5 * (bends[:, number:] - bends[:, first] - bends[:, second])
        hessian[:, first, second] = hessian[:, second, first] = mixed
        slopes = 0.5 * (up - down)[:, :number]
        return here, slopes / steps, hessian / np.outer(steps, steps)

    def _steps(self, place: Array, block: Block) -> Array:
        near = np.full(len(self.directions), NEAR)
        steep = np.sqrt(np.mean(np.square(self._rises(place, block, near) / NEAR), axis=0))
        return STEP / np.maximum(1.0, np.where(np.isfinite(steep), steep, 1.0))

    def _rises(self, place: Array, block: Block, steps: Array) -> Array:
        """Half of what changes from a step down to a step up, (n, k)."""
        moves = steps[:, None] * self.directions
        up, down = np.split(self._potentials(place, np.concatenate([moves, -moves]), block), 2, 1)
        return 0.5 * (up - down)

    def _potentials(self, place: Array, moves: Array, block: Block) -> Array:
        return self.model.potentials(place + moves, block)

    def prior_mean(self, places: Array) -> float:
        return float(self.model.log_prior(places).mean())

    def prior_products(self, places: Array, probes: Array) -> tuple[Array, Array]:
        gradient = self.model.log_prior_gradient
        slopes = np.mean([gradient(place) for place in places], axis=0)
        # Hv = (g(θ + hv) − g(θ − hv)) / 2h
        lengths = FIRST_STEP / np.maximum(np.abs(probes).max(axis=1), 1e-300)
        bends = np.zeros(probes.shape)
        for place in places:
            for probe, length, bend in zip(probes, lengths, bends, strict=True):
                rise = gradient(place + length * probe) - gradient(place - length * probe)
                bend += rise / (2.0 * length * len(places))
        return slopes, bends

    def prior_of_scales(self, places: Array, positions: Indices, scales: Array) -> ScaleJet:
        def value(points: Array) -> Array:
            moved = np.repeat(places[None], len(points), axis=0)
            moved[:, :, positions] = points[:, None]
            heights = self.model.log_prior(moved.reshape(-1, places.shape[1]))
            return heights.reshape(len(points), -1).mean(axis=1)

        height = float(value(scales[None])[0])
        slope, bend = difference_gradient(value, scales), difference_hessian(value, scales)
        return ScaleJet(height, slope, bend)
