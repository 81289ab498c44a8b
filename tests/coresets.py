"""Coresets with known posteriors, for tests."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from corebayes.coreset import Coreset
from corebayes.diagnostics import gaussian_kl
from corebayes.models import CustomModel, GaussianMean, LinearRegression, LogisticRegression, Normal
from corebayes.problem import Problem
from corebayes.rows import open_rows
from corebayes.samplers.draws import Draws
from corebayes.types import Array, Data, Gaussian, Model
from tests.problems import coins

# All rows with their counts are the posterior and need no draws; with these weights it is measured.
ALMOST_ONE = 1.0 + 1e-12


def weighted(model: Model, data: Data, indices: Any, weights: Any, **fields: Any) -> Coreset:
    """A coreset of these rows of a bound model."""
    indices = np.asarray(indices, dtype=np.int64)
    weights = np.broadcast_to(np.asarray(weights, dtype=np.float64), indices.shape).copy()
    return Coreset(
        indices, weights, data.take(indices), model, data.num_rows, data.total_count, **fields
    )


def posteriors(coreset: Coreset, data: Data) -> tuple[Gaussian, Gaussian]:
    """π_w and π of a conjugate model."""
    model: Any = coreset.model
    ours = model.posterior(model.statistics(coreset.rows, coreset.weights))
    return ours, Problem(model, data).full_posterior


def exact_kl(coreset: Coreset, data: Data) -> dict[str, float]:
    ours, full = posteriors(coreset, data)
    reverse, forward = gaussian_kl(ours, full), gaussian_kl(full, ours)
    return {"reverse": reverse, "forward": forward, "symmetric": reverse + forward}


def gaussian_mean(num_rows: int = 60, dim: int = 3, seed: int = 0) -> tuple[Model, Data]:
    """A mean with correlated noise and a prior away from it."""
    rng = np.random.default_rng(seed)
    root = np.tril(rng.normal(size=(dim, dim))) + 2.0 * np.eye(dim)
    X = rng.normal(size=(num_rows, dim)) @ root.T + np.arange(1.0, dim + 1.0)
    data = open_rows(X)
    return GaussianMean(cov=root @ root.T, prior=Normal(-1.0, 3.0)).bind(data), data


def linear(num_rows: int = 80, dim: int = 3, seed: int = 0) -> tuple[Model, Data]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(num_rows, dim)) * np.arange(1.0, dim + 1.0)
    y = X @ np.linspace(-1.0, 2.0, dim) + 0.7 * rng.normal(size=num_rows)
    data = open_rows((X, y))
    return LinearRegression(noise_sd=0.7, prior=Normal(0.5, 2.0)).bind(data), data


def logistic(num_rows: int = 200, dim: int = 3, seed: int = 0) -> tuple[Model, Data]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(num_rows, dim))
    y = coins(rng, X @ np.linspace(-1.0, 2.0, dim))
    data = open_rows((X, y.astype(float)))
    return LogisticRegression(prior=Normal()).bind(data), data


def mixture(shares: Any, means: Any, sds: Any, num_rows: int = 4) -> tuple[Any, Any]:
    """Rows that share out the log density of a mixture evenly, under a wide prior."""
    shares, means, sds = (np.asarray(values, dtype=float) for values in (shares, means, sds))

    def log_likelihood(draws: Array, block: Any) -> Array:
        parts = np.log(shares / sds) - 0.5 * np.square((draws - means) / sds)
        return np.logaddexp.reduce(parts, axis=1) / num_rows + 0.0 * block.X

    data = open_rows(np.zeros((num_rows, 1)))
    model = CustomModel(log_likelihood, lambda draws: -0.5 * np.square(draws[:, 0] / 60.0), 1)
    return model.bind(data), data


def near(
    model: Model, data: Data, *, spread: float = 0.1, share: float = 1.0, seed: int = 0
) -> Coreset:
    """All rows but the first tenth, at scattered weights that add up to about `share` of all."""
    rng = np.random.default_rng(seed)
    kept = np.arange(data.num_rows // 10, data.num_rows)
    weights = share * data.num_rows / kept.size * np.exp(spread * rng.normal(size=kept.size))
    return weighted(model, data, kept, weights)


class HiddenMean(GaussianMean):
    """A Gaussian mean whose closed form nobody sees, so that draws must do."""

    statistics = None
    posterior = None


class HiddenLinear(LinearRegression):
    """The same of a linear regression."""

    statistics = None
    posterior = None


def hidden(coreset: Coreset) -> Coreset:
    """The coreset with its model's conjugacy hidden."""
    kinds = {GaussianMean: HiddenMean, LinearRegression: HiddenLinear}
    model = copy.copy(coreset.model)
    object.__setattr__(model, "__class__", kinds[type(model)])
    return replace(coreset, model=model)


def standard_normals(num_draws: int, dim: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((num_draws, dim))


@dataclass(frozen=True)
class Fixed:
    """Independent draws that are given."""

    draws: np.ndarray

    def draw(self, *_: Any, **__: Any) -> Draws:
        return Draws(values=self.draws[None], location=self.draws.mean(axis=0), independent=True)
