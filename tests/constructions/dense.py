"""A small problem at given draws, and the same problem as one dense matrix for brute force."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import corebayes as cb
from corebayes.problem import Problem
from tests.contract.cases import MODELS

CASES = {case.name: case for case in MODELS}


class Dense(NamedTuple):
    problem: Problem
    weighting: cb.GivenDraws
    G: np.ndarray
    """Centred potentials over √S, (N, S)."""
    counts: np.ndarray

    @property
    def total(self) -> np.ndarray:
        return self.counts @ self.G

    def error(self, weights: np.ndarray) -> float:
        return float(np.linalg.norm(self.total - weights @ self.G))


def dense(name: str, num_rows: int = 25, num_draws: int = 30, counts: Any = None) -> Dense:
    problem = CASES[name].problem(num_rows=num_rows, counts=counts)
    centre = np.array([0.5, -0.8, 0.3])
    draws = centre + np.random.default_rng(5).normal(scale=0.6, size=(num_draws, 3))
    block = problem.data.take(np.arange(0, num_rows))
    f = problem.model.potentials(draws, block)
    G = (f - f.mean(axis=1, keepdims=True)) / np.sqrt(num_draws)
    return Dense(problem, cb.GivenDraws(draws), G, block.multiplicity())


def paths(method: Any, case: Dense, size: int | None, num_steps: int) -> list[np.ndarray]:
    """Dense weights after each step."""
    rng = np.random.default_rng(0)
    state = method.init(rng, case.problem, size)
    history: list[np.ndarray] = []
    for _ in range(num_steps):
        state, info = method.step(rng, case.problem, state)
        weights = np.zeros(case.problem.data.num_rows)
        weights[state.points.indices] = state.points.weights
        history.append(weights)
        if info.done is not None:
            break
    return history


def repeated(name: str, num_rows: int = 25) -> tuple[Any, np.ndarray, Any]:
    """A data set, how often each row counts, and the data set with the rows written out."""
    counts = np.random.default_rng(2).integers(0, 4, size=num_rows)
    data = CASES[name].data(num_rows=num_rows)
    rows = np.repeat(np.arange(num_rows), counts)
    written = data[rows] if isinstance(data, np.ndarray) else tuple(part[rows] for part in data)
    return data, counts.astype(float), written


def merged(coreset: Any, counts: np.ndarray) -> np.ndarray:
    """The weights of a coreset of written-out rows, added up over copies of the same row."""
    original = np.repeat(np.arange(counts.size), counts.astype(int))
    weights = np.zeros(counts.size)
    np.add.at(weights, original[coreset.indices], coreset.weights)
    return weights
