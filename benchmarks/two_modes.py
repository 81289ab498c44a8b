"""Two posteriors with two modes whose KL is known from a grid, to try the guards on.

Cauchy location: f_n = −log(1 + (x_n − θ²)²), rows near 1.5, a tenth of them wild; modes near ±√1.5.
Mixture: x_n ~ ½ N(θ_1, 1) + ½ N(θ_2, 1); exchanging θ_1 and θ_2 changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import corebayes as cb
from corebayes.coreset import Coreset
from corebayes.types import Block

Array = np.ndarray


class TwoModes(NamedTuple):
    """A model, how to make its rows, and a grid with the log areas of its cells."""

    model: cb.CustomModel
    make_rows: Callable[[np.random.Generator, int], Array]
    grid: Array
    log_areas: Array
    size: int

    def kl(self, coreset: Coreset, rows: Array) -> float:
        """KL(π_w ‖ π) by summing over the grid."""
        full = self._log_shares(Block({"x": rows}), np.ones(len(rows)))
        ours = self._log_shares(coreset.rows, coreset.weights)
        return float(np.exp(ours) @ (ours - full))

    def _log_shares(self, rows: Block, weights: Array) -> Array:
        model: Any = self.model
        parts = np.array_split(self.grid, max(1, len(self.grid) // 500))
        sums = np.concatenate([model.sum_potentials(part, rows, weights) for part in parts])
        log_mass = sums + model.log_prior(self.grid) + self.log_areas
        return log_mass - np.logaddexp.reduce(log_mass)


def cauchy_likelihood(draws: Array, block: Block) -> Array:
    return -np.log1p(np.square(block["x"][:, None] - np.square(draws[:, 0])))


def mixture_likelihood(draws: Array, block: Block) -> Array:
    x = block["x"][:, None]
    first, second = -0.5 * np.square(x - draws[:, 0]), -0.5 * np.square(x - draws[:, 1])
    return np.logaddexp(first, second)


def wide_normal(draws: Array) -> Array:
    return -0.5 * np.sum(np.square(draws), axis=1) / 25.0


def cauchy() -> TwoModes:
    def make_rows(rng: np.random.Generator, num_rows: int) -> Array:
        x = 1.5 + 0.7 * rng.normal(size=num_rows)
        wild = rng.random(num_rows) < 0.1
        x[wild] = 5.0 * rng.standard_cauchy(int(wild.sum()))
        return x

    model = cb.CustomModel(cauchy_likelihood, wide_normal, 1)
    # Far from the modes every cell is as wide, so the areas do not matter.
    grid = np.linspace(-8.0, 8.0, 32_001)[:, None]
    return TwoModes(model, make_rows, grid, np.zeros(len(grid)), size=20)


def mixture() -> TwoModes:
    def make_rows(rng: np.random.Generator, num_rows: int) -> Array:
        return rng.normal(size=num_rows) + np.where(rng.random(num_rows) < 0.5, -1.0, 2.0)

    model = cb.CustomModel(mixture_likelihood, wide_normal, 2)
    low, high = np.linspace(-1.4, -0.6, 60), np.linspace(1.6, 2.4, 60)
    near = np.vstack([_product(low, high), _product(high, low)])
    wide = np.linspace(-15.0, 15.0, 101)
    far = _product(wide, wide)
    inside = np.all((np.sort(far, axis=1) > [-1.4, 1.6]) & (np.sort(far, axis=1) < [-0.6, 2.4]), 1)
    far = far[~inside]
    step, wide_step = low[1] - low[0], wide[1] - wide[0]
    areas = np.concatenate([np.full(len(near), step**2), np.full(len(far), wide_step**2)])
    return TwoModes(model, make_rows, np.vstack([near, far]), np.log(areas), size=25)


def _product(first: Array, second: Array) -> Array:
    return np.column_stack([values.ravel() for values in np.meshgrid(first, second)])


CASES: dict[str, Callable[[], TwoModes]] = {"cauchy": cauchy, "mixture": mixture}


class Outcome(NamedTuple):
    kl: float
    certified: bool
    verdict: str


def outcome(name: str, seed: int, *, num_rows: int = 2000, tol: float = 0.05) -> Outcome:
    """One data set, one coreset, its certificate, and the truth."""
    case = CASES[name]()
    rows = case.make_rows(np.random.default_rng(seed), num_rows)
    coreset = cb.build(case.model, {"x": rows}, size=case.size, seed=seed, progress=False)
    certificate = cb.certify(coreset, {"x": rows}, seed=seed + 1, tol=tol)
    return Outcome(case.kl(coreset, rows), certificate.certified, certificate.verdict)
