"""Pseudocoresets: the points are learned along with their weights (PSVI).

Manousakas, Xu, Mascolo and Campbell (2020). M weighted points u_m that need not be rows of the
data minimise KL(π_{u,w} ‖ π), π_{u,w} ∝ exp(Σ_m w_m f(u_m, θ)) π_0(θ), by Adam on

    ∇_{w_m} = −(1/S) Σ_s r_s (f(u_m, θ_s) − mean),
    ∇_{u_m} = −(w_m/S) Σ_s r_s (∇_u f(u_m, θ_s) − mean),     r = Σ_n c_n f_n − Σ_m w_m f(u_m, ·),

at S fresh draws of π_{u,w}. So few points can stand for rows of many dimensions, and no row of the
data is revealed. The model gives ∇_u f as `row_gradients`: the features of regressions and Gaussian
means move, and with noise that depends on y − η alone the target too; a label or a count is not a
real number, so the target a point began with stays.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from corebayes.constructions.construction import EXACT, PRECISION, Construction, Info, Style
from corebayes.constructions.subset import random_subset
from corebayes.problem import Problem
from corebayes.tangent import MonteCarlo
from corebayes.tangent.geometry import subsample
from corebayes.types import Array, Block, Rng, WeightedPoints
from corebayes.weights.gradient_descent import Adam
from corebayes.weights.optimiser import Optimiser


@runtime_checkable
class Learnable(Protocol):
    """A model whose potentials have derivatives in the numbers of a row."""

    def row_gradients(self, draws: Array, block: Block, coefficients: Array) -> dict[str, Array]:
        """Σ_s a_s ∇ f_n(θ_s) in every field of the rows that can be learned."""
        ...


class State(NamedTuple):
    points: WeightedPoints
    learned: WeightedPoints
    """All points, those of weight zero too."""
    scales: dict[str, Array]
    """What a unit of each learned field is, and under `weights` what a unit of weight is."""
    optimiser: Any
    location: Array | None
    num_steps: int


def gradually(step: int) -> float:
    """γ_t = 0.1 / √t."""
    return 0.1 / np.sqrt(step)


@dataclass(frozen=True, kw_only=True)
class PseudoCoreset(Construction):
    """M learned points, from random rows at weight N/M.

    `coreset.rows` are the points and `coreset.indices` are −M, …, −1: they are none of the data's
    rows. Steps are taken in units of N/M for weights and of its standard deviation for a column,
    so one learning rate serves both. Cost of a step: S draws of π_{u,w}, a pass of N·S potentials
    (of `gradient_rows` rows when given) and M·S·d flops.
    """

    style = Style("#882255", "*")

    geometry: MonteCarlo = field(default_factory=lambda: MonteCarlo(num_draws=100))
    """The draws: their number and the sampler."""
    update: Optimiser = field(default_factory=lambda: Adam(num_steps=1000, rate=gradually))
    gradient_rows: int | None = None
    """U: rows in the fresh subsample of each step; None for all."""

    def init(self, rng: Rng, problem: Problem, size: int | None) -> State:
        model = problem.model
        if not isinstance(model, Learnable):
            raise TypeError(
                f"PseudoCoreset needs the derivatives of potentials in the rows, and "
                f"{type(model).__name__} has no method row_gradients(draws, block, coefficients); "
                "choose a method that keeps rows, such as AnnealedSparseVI"
            )
        _, rows, weights = random_subset(rng, problem, self.require(size))
        # What a learned point counts is its weight.
        points = WeightedPoints(-1 - np.arange(weights.size), Block(rows.fields), weights)
        names = model.row_gradients(np.zeros((1, model.dim)), points.rows, np.zeros(1))
        scales = {name: _spread(points.rows[name]) for name in names}
        scales["weights"] = np.array(weights.mean())
        return State(points, points, scales, self.update.begin(_pack(points, scales)), None, 0)

    def step(self, rng: Rng, problem: Problem, state: State) -> tuple[State, Info]:
        learned, scales = state.learned, state.scales
        space = self.geometry.space(rng, problem, learned, state.location)
        rows = subsample(rng, problem, self.gradient_rows, fresh=True)
        vectors = space.embed(learned.rows)
        residual = self.geometry.total(problem, space, rows).element
        residual = residual - space.combine(vectors, learned.weights)
        kl = self.geometry.kl(problem, space, residual)
        if kl.value <= PRECISION:
            return state, Info(kl, EXACT)
        gradients = row_gradients(problem.model, space.draws, learned, residual)
        gradients["weights"] = -space.project(vectors, residual)
        gradient = np.concatenate([(gradients[name] * scales[name]).ravel() for name in scales])
        values = _pack(learned, scales)
        values, optimiser = self.update.advance(gradient, values, state.optimiser)
        if not np.all(np.isfinite(values)):
            return state, Info(kl, "a step led to numbers too large to represent")
        learned = _unpack(values, learned, scales)
        points = learned.positive() if learned.weights.any() else state.points
        num_steps = state.num_steps + 1
        done = f"{num_steps:,} steps done" if num_steps >= self.update.num_steps else None
        state = State(points, learned, scales, optimiser, space.location, num_steps)
        return state, Info(kl, done)


def row_gradients(
    model: Any, draws: Array, points: WeightedPoints, residual: Array
) -> dict[str, Array]:
    """∇_u KL for each learned field, from the residual's element (r centred, over √S)."""
    # −(w_m/S) Σ_s r_s (∇_u f − mean) = −(w_m/S) Σ_s (r_s − mean) ∇_u f
    sums = model.row_gradients(draws, points.rows, residual / np.sqrt(residual.size))
    return {
        name: -points.weights.reshape(-1, *[1] * (values.ndim - 1)) * values
        for name, values in sums.items()
    }


def _spread(values: Array) -> Array:
    """The standard deviation of each column; one for a column that is constant."""
    spread = values.std(axis=0)
    return np.where(spread > 0.0, spread, 1.0)


def _pack(points: WeightedPoints, scales: dict[str, Array]) -> Array:
    """Everything that is learned, in its units, as one vector."""
    parts = {**points.rows.fields, "weights": points.weights}
    return np.concatenate([(parts[name] / scale).ravel() for name, scale in scales.items()])


def _unpack(values: Array, points: WeightedPoints, scales: dict[str, Array]) -> WeightedPoints:
    """The points with what was learned, their weights cut at zero."""
    parts: dict[str, Array] = {**points.rows.fields, "weights": points.weights}
    first = 0
    for name, scale in scales.items():
        last = first + parts[name].size
        parts[name] = values[first:last].reshape(parts[name].shape) * scale
        first = last
    weights = np.maximum(parts.pop("weights"), 0.0)
    return WeightedPoints(points.indices, Block(parts), weights)
