"""E[y | η, u] and draws of y for every built-in family, u the log of a learned constant."""

from __future__ import annotations

from typing import Any

import numpy as np

from corebayes.models import GLM
from corebayes.types import Array, Rng


def expected(family: GLM, eta: Array, u: Array | None = None) -> Array:
    name, any_family = type(family).__name__, _any(family)
    if name == "LogisticRegression":
        return _sigmoid(eta)
    if name == "PoissonRegression":
        return _exp(eta) if any_family.link == "log" else np.logaddexp(0.0, eta)
    if name == "NegativeBinomialRegression":
        return _exp(eta)
    if family.location_family:
        return eta
    raise TypeError(f"{name} does not say how its targets are drawn")


def drawn(rng: Rng, family: GLM, eta: Array, u: Array | None = None) -> Array:
    name, any_family = type(family).__name__, _any(family)
    mean = expected(family, eta, u)
    constant = getattr(any_family, str(family.learnable), 1.0) if u is None else np.exp(u)
    if name == "LogisticRegression":
        return (rng.random(eta.shape) < mean).astype(np.float64)
    if name == "PoissonRegression":
        return rng.poisson(np.minimum(mean, 1e18)).astype(np.float64)
    if name == "NegativeBinomialRegression":
        shape = np.broadcast_to(1.0 / constant, eta.shape)
        return rng.poisson(np.minimum(rng.gamma(shape, mean / shape), 1e18)).astype(np.float64)
    if name == "StudentTRegression":
        return mean + constant * rng.standard_t(any_family.df, eta.shape)
    return mean + constant * rng.standard_normal(eta.shape)


def _any(family: Any) -> Any:
    return family


def _exp(eta: Array) -> Array:
    return np.exp(np.minimum(eta, 300.0))


def _sigmoid(eta: Array) -> Array:
    from scipy.special import expit

    return expit(eta)
