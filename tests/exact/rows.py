"""Rows, good and spoilt coresets, and posteriors of all rows by other means."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

import corebayes as cb
from corebayes.rows import open_rows
from corebayes.types import Block


def poisson_rows(num_rows: int = 400, dim: int = 2, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(num_rows, dim)) * np.linspace(0.5, 1.0, dim)
    return X, rng.poisson(np.exp(X @ np.linspace(0.8, -0.5, dim))).astype(float)


def poisson_coreset(data: Any, size: int = 6) -> Any:
    return cb.build(cb.PoissonRegression(link="log", prior=cb.Normal()), data, size=size, seed=0)


def spoilt(coreset: Any, factor: float = 1.8, noise: float = 0.3) -> Any:
    """Weights too large and uneven."""
    wrong = np.exp(noise * np.random.default_rng(5).normal(size=coreset.size))
    return replace(coreset, weights=factor * coreset.weights * wrong)


def everything(model: Any, data: Any) -> Any:
    """The coreset that has every row, once."""
    rows = open_rows(data).check()
    numbers = np.arange(rows.num_rows)
    weights = np.ones(rows.num_rows)
    return cb.Coreset(
        numbers, weights, rows.take(numbers), model.bind(rows), rows.num_rows, rows.total_count
    )


class Grid:
    """The posterior of all rows of a model with two parameters, summed over a grid."""

    def __init__(self, model: Any, data: Any, counts: Any = 1.0):
        block = Block({"X": data[0], "y": data[1]})
        counts = np.broadcast_to(counts, len(block)).astype(float)
        self.axis = np.linspace(-2.5, 2.5, 501)
        theta = np.stack(np.meshgrid(self.axis, self.axis, indexing="ij"), axis=-1).reshape(-1, 2)
        parts = np.array_split(theta, 100)
        likelihood = [model.sum_potentials(part, block, counts) for part in parts]
        heights = np.concatenate(likelihood) + model.log_prior(theta)
        heights += counts @ model.log_base(block)
        self.log_evidence = float(logsumexp(heights) + 2.0 * np.log(self.axis[1] - self.axis[0]))
        shares = np.exp(heights - logsumexp(heights))
        self.mean = shares @ theta
        self.covariance = (theta - self.mean).T @ ((theta - self.mean) * shares[:, None])


def chain_draws(found: Any) -> np.ndarray:
    """(chains, draws, d) of ArviZ data."""
    values = [v.values for v in found.posterior.data_vars.values()]
    return np.concatenate([v.reshape(*v.shape[:2], -1) for v in values], axis=2)


def flat_draws(found: Any) -> np.ndarray:
    """(S, d) of ArviZ data."""
    values = chain_draws(found)
    return values.reshape(-1, values.shape[2])
