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


def censored(y: Any, row: Any, distribution: Any) -> Any:
    return np.where(row["event"] > 0.0, distribution.logpdf(y), distribution.logsf(y))


def softmax(y: Any, *etas: Any) -> Any:
    odds = np.exp(np.array([np.zeros_like(etas[0]), *etas]))
    return (odds / odds.sum(axis=0))[y.astype(int), np.arange(y.size)]


def between(y: Any, distribution: Any, eta: Any, first: Any, *logs: Any) -> Any:
    cuts = np.cumsum([first, *np.exp(logs)], axis=0)
    ends = np.array([np.full_like(eta, -np.inf), *(cuts - eta), np.full_like(eta, np.inf)])
    below, rows = distribution.cdf(ends), np.arange(y.size)
    return np.log(below[y.astype(int) + 1, rows] - below[y.astype(int), rows])


def inflated(y: Any, v: Any, log_counts: Any) -> Any:
    return np.log(expit(v) * (y == 0.0) + expit(-v) * np.exp(log_counts(y)))


def hurdle(y: Any, v: Any, log_counts: Any) -> Any:
    more = np.log(expit(-v)) + log_counts(y) - np.log1p(-np.exp(log_counts(0.0 * y)))
    return np.where(y > 0.0, more, np.log(expit(v)))


CASES = [
    Case(
        "linear",
        cb.LinearRegression(noise_sd=1.0, prior=cb.Normal()),
        (0.7, -0.4),
        lambda y, row, eta, u: stats.norm.logpdf(y, eta, np.exp(u)),
    ),
    Case(
        "student-t",
        cb.StudentTRegression(df=4.0, scale=1.0, prior=cb.Normal()),
        (0.7, -0.4, 1.3),
        lambda y, row, eta, u, v: stats.t.logpdf(y, np.exp(v), eta, np.exp(u)),
    ),
    Case(
        "logistic",
        cb.LogisticRegression(prior=cb.Normal()),
        (-0.6,),
        lambda y, row, eta: stats.bernoulli.logpmf(y, expit(eta)),
    ),
    Case(
        "poisson-log",
        cb.PoissonRegression(link="log", prior=cb.Normal()),
        (0.6,),
        lambda y, row, eta: stats.poisson.logpmf(y, np.exp(eta)),
    ),
    Case(
        "poisson-softplus",
        cb.PoissonRegression(link="softplus", prior=cb.Normal()),
        (0.6,),
        lambda y, row, eta: stats.poisson.logpmf(y, np.log1p(np.exp(eta))),
    ),
    Case(
        "negative-binomial",
        cb.NegativeBinomialRegression(dispersion=1.0, prior=cb.Normal()),
        (0.9, -0.5),
        lambda y, row, eta, u: negative_binomial(y, eta, u),
    ),
    Case(
        "probit",
        cb.ProbitRegression(prior=cb.Normal()),
        (-0.6,),
        lambda y, row, eta: stats.bernoulli.logpmf(y, stats.norm.cdf(eta)),
    ),
    Case(
        "cloglog",
        cb.CloglogRegression(prior=cb.Normal()),
        (-0.6,),
        lambda y, row, eta: stats.bernoulli.logpmf(y, -np.expm1(-np.exp(eta))),
    ),
    Case(
        "binomial",
        cb.BinomialRegression(trials="n", prior=cb.Normal()),
        (0.4,),
        lambda y, row, eta: stats.binom.logpmf(y, row["trials"], expit(eta)),
        {"trials": (0, 9)},
    ),
    Case(
        "gamma",
        cb.GammaRegression(prior=cb.Normal()),
        (0.4, 0.7),
        lambda y, row, eta, u: stats.gamma.logpdf(y, np.exp(u), scale=np.exp(eta - u)),
    ),
    Case(
        "beta",
        cb.BetaRegression(prior=cb.Normal()),
        (0.4, 1.7),
        lambda y, row, eta, u: stats.beta.logpdf(
            y, expit(eta) * np.exp(u), expit(-eta) * np.exp(u)
        ),
    ),
    Case(
        "exponential",
        cb.ExponentialRegression(event="seen", prior=cb.Normal()),
        (0.7,),
        lambda y, row, eta: censored(y, row, stats.expon(scale=np.exp(eta))),
        {"event": (0, 1)},
    ),
    Case(
        "weibull",
        cb.WeibullRegression(event="seen", prior=cb.Normal()),
        (0.7, 0.3),
        lambda y, row, eta, u: censored(y, row, stats.weibull_min(np.exp(u), scale=np.exp(eta))),
        {"event": (0, 1)},
    ),
    Case(
        "lognormal",
        cb.LogNormalRegression(event="seen", prior=cb.Normal()),
        (0.7, -0.3),
        lambda y, row, eta, u: censored(y, row, stats.lognorm(np.exp(u), scale=np.exp(eta))),
        {"event": (0, 1)},
    ),
    Case(
        "categorical",
        cb.CategoricalRegression(categories=(0, 1, 2, 3), prior=cb.Normal()),
        (0.7, -0.3, 0.2),
        lambda y, row, *etas: np.log(softmax(y, *etas)),
    ),
    Case(
        "ordinal",
        cb.OrdinalRegression(categories=(0, 1, 2, 3, 4), prior=cb.Normal()),
        (0.3, -0.9, -0.2, 0.1, -0.5),
        lambda y, row, eta, *cuts: between(y, stats.logistic, eta, *cuts),
    ),
    Case(
        "ordinal-probit",
        cb.OrdinalRegression(categories=(0, 1, 2), link="probit", prior=cb.Normal()),
        (0.3, -0.9, 0.4),
        lambda y, row, eta, *cuts: between(y, stats.norm, eta, *cuts),
    ),
    Case(
        "zero-inflated-poisson",
        cb.ZeroInflatedPoissonRegression(prior=cb.Normal()),
        (0.6, -0.8),
        lambda y, row, eta, v: inflated(y, v, lambda y: stats.poisson.logpmf(y, np.exp(eta))),
    ),
    Case(
        "zero-inflated-negative-binomial",
        cb.ZeroInflatedNegativeBinomialRegression(prior=cb.Normal()),
        (0.9, -0.5, -0.8),
        lambda y, row, eta, u, v: inflated(y, v, lambda y: negative_binomial(y, eta, u)),
    ),
    Case(
        "hurdle-poisson",
        cb.HurdlePoissonRegression(prior=cb.Normal()),
        (0.2, -0.8),
        lambda y, row, eta, v: hurdle(y, v, lambda y: stats.poisson.logpmf(y, np.exp(eta))),
    ),
    Case(
        "hurdle-negative-binomial",
        cb.HurdleNegativeBinomialRegression(prior=cb.Normal()),
        (0.3, -0.5, -0.8),
        lambda y, row, eta, u, v: hurdle(y, v, lambda y: negative_binomial(y, eta, u)),
    ),
]
NAMES = [case.name for case in CASES]
