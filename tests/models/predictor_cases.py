"""Families of one or more predictors in one list: a new one is one more row here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

import corebayes as cb


@dataclass(frozen=True)
class Case:
    """A family, and its log density by SciPy at predictors (constants on the line) and a row."""

    name: str
    family: Any
    at: tuple[float, ...]
    """Where its predictors are; asymmetric."""
    log_density: Callable[..., Any]
    """Of y, the row and the predictors."""
    row: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Further columns of a row, as ranges to draw whole numbers from."""

    def predictors(self, rng: np.random.Generator, num_rows: int) -> list[np.ndarray]:
        return [value + 0.4 * rng.normal(size=num_rows) for value in self.at]

    def rows(self, rng: np.random.Generator, at: list[np.ndarray]) -> dict[str, np.ndarray]:
        size = at[0].size
        row = {
            name: rng.integers(*limits, size=size, endpoint=True) * 1.0
            for name, limits in self.row.items()
        }
        row["y"] = self.family.draw(rng, at, row)
        return row


def expit(u: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-u))


def negative_binomial(y: Any, eta: Any, u: Any) -> Any:
    return stats.nbinom.logpmf(y, np.exp(-u), 1.0 / (1.0 + np.exp(u + eta)))


CASES = [
    Case(
        "linear",
        cb.LinearRegression(),
        (0.7, -0.4),
        lambda y, row, eta, u: stats.norm.logpdf(y, eta, np.exp(u)),
    ),
    Case(
        "student-t",
        cb.StudentTRegression(),
        (0.7, -0.4, 1.3),
        lambda y, row, eta, u, v: stats.t.logpdf(y, np.exp(v), eta, np.exp(u)),
    ),
    Case(
        "logistic",
        cb.LogisticRegression(),
        (-0.6,),
        lambda y, row, eta: stats.bernoulli.logpmf(y, expit(eta)),
    ),
    Case(
        "poisson-log",
        cb.PoissonRegression(link="log"),
        (0.6,),
        lambda y, row, eta: stats.poisson.logpmf(y, np.exp(eta)),
    ),
    Case(
        "poisson-softplus",
        cb.PoissonRegression(link="softplus"),
        (0.6,),
        lambda y, row, eta: stats.poisson.logpmf(y, np.log1p(np.exp(eta))),
    ),
    Case(
        "negative-binomial",
        cb.NegativeBinomialRegression(),
        (0.9, -0.5),
        lambda y, row, eta, u: negative_binomial(y, eta, u),
    ),
]
NAMES = [case.name for case in CASES]
