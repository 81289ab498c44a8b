"""The families in one list: a new one is one more row here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, getcontext
from functools import cache
from typing import Any

import numpy as np
from scipy import stats

from corebayes.models import (
    GLM,
    LinearRegression,
    LogisticRegression,
    NegativeBinomialRegression,
    Normal,
    PoissonRegression,
    StudentTRegression,
)
from corebayes.rows import open_rows

PRIOR = Normal([0.4, -0.3, 0.1], [[1.5, 0.2, 0.0], [0.2, 0.7, -0.1], [0.0, -0.1, 2.0]])


@dataclass(frozen=True)
class Family:
    """A model; targets for given η; its log density by scipy, and in high precision."""

    name: str
    model: GLM
    respond: Callable[[np.random.Generator, Any], Any]
    log_density: Callable[[Any, Any], Any]
    exact: Callable[[Decimal, Decimal], Decimal]
    """ℓ(η, y) for the family's canonical y, up to a term free of η."""
    jax: Callable[[Any, Any, Any], Any]
    """The same with jax.numpy, for autodiff."""
    extreme_targets: tuple[float, ...]

    def data(self, num_rows: int = 40, seed: int = 0, **options: Any) -> Any:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(num_rows, 3)) * [1.0, 0.6, 1.4] + [0.2, -0.3, 0.0]
        return open_rows((X, self.respond(rng, X @ [0.7, -1.1, 0.3] + 0.2)), **options)


def sigmoid(eta: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-eta))


DISPERSION, DF, SCALE, NOISE = 0.4, 3.5, 0.7, 1.3


def exact_logistic(eta: Decimal, y: Decimal) -> Decimal:
    return -(1 + (-y * eta).exp()).ln()


@cache
def _log(value: Decimal, digits: int) -> Decimal:
    """Kept, since all targets share it."""
    return value.ln()


@cache
def _exp(value: Decimal, digits: int) -> Decimal:
    return value.exp()


def exact_softplus(eta: Decimal, y: Decimal) -> Decimal:
    digits = getcontext().prec
    rate = _log(1 + _exp(eta, digits), digits)
    return y * _log(rate, digits) - rate


def exact_exponential(eta: Decimal, y: Decimal) -> Decimal:
    return y * eta - eta.exp()


def exact_negative_binomial(eta: Decimal, y: Decimal) -> Decimal:
    r, digits = 1 / Decimal(DISPERSION), getcontext().prec
    return y * eta - (y + r) * _log(r + _exp(eta, digits), digits) + r * _log(r, digits)


def exact_student_t(eta: Decimal, y: Decimal) -> Decimal:
    df, scale = Decimal(DF), Decimal(SCALE)
    return -(df + 1) / 2 * (1 + ((y - eta) / scale) ** 2 / df).ln()


def exact_linear(eta: Decimal, y: Decimal) -> Decimal:
    return -(((y - eta) / Decimal(NOISE)) ** 2) / 2


COUNTS = (0.0, 2.0, 7.0, 1e6)

FAMILIES = [
    Family(
        "logistic",
        LogisticRegression(prior=PRIOR),
        lambda rng, eta: (rng.uniform(size=eta.shape) < sigmoid(eta)) * 1.0,
        lambda eta, y: stats.bernoulli.logpmf(y, sigmoid(eta)),
        exact_logistic,
        lambda jnp, eta, y: -jnp.logaddexp(0.0, -y * eta),
        (-1.0, 1.0),
    ),
    Family(
        "poisson-softplus",
        PoissonRegression(prior=PRIOR, link="softplus"),
        lambda rng, eta: rng.poisson(np.log1p(np.exp(eta))) * 1.0,
        lambda eta, y: stats.poisson.logpmf(y, np.log1p(np.exp(eta))),
        exact_softplus,
        lambda jnp, eta, y: y * jnp.log(jnp.log1p(jnp.exp(eta))) - jnp.log1p(jnp.exp(eta)),
        COUNTS,
    ),
    Family(
        "poisson-log",
        PoissonRegression(link="log", prior=PRIOR),
        lambda rng, eta: rng.poisson(np.exp(eta)) * 1.0,
        lambda eta, y: stats.poisson.logpmf(y, np.exp(eta)),
        exact_exponential,
        lambda jnp, eta, y: y * eta - jnp.exp(eta),
        COUNTS,
    ),
    Family(
        "negative-binomial",
        NegativeBinomialRegression(dispersion=DISPERSION, prior=PRIOR),
        lambda rng, eta: rng.poisson(rng.gamma(2.5, np.exp(eta) / 2.5)) * 1.0,
        lambda eta, y: stats.nbinom.logpmf(y, 1 / DISPERSION, 1 / (1 + DISPERSION * np.exp(eta))),
        exact_negative_binomial,
        lambda jnp, eta, y: y * eta - (y + 1 / DISPERSION) * jnp.log(1 / DISPERSION + jnp.exp(eta)),
        COUNTS,
    ),
    Family(
        "student-t",
        StudentTRegression(df=DF, scale=SCALE, prior=PRIOR),
        lambda rng, eta: eta + SCALE * rng.standard_t(DF, size=eta.shape),
        lambda eta, y: stats.t.logpdf(y, DF, eta, SCALE),
        exact_student_t,
        lambda jnp, eta, y: -(DF + 1) / 2 * jnp.log1p(((y - eta) / SCALE) ** 2 / DF),
        (-2.5, 0.3, 1e6),
    ),
    Family(
        "linear",
        LinearRegression(NOISE, prior=PRIOR),
        lambda rng, eta: eta + NOISE * rng.normal(size=eta.shape),
        lambda eta, y: stats.norm.logpdf(y, eta, NOISE),
        exact_linear,
        lambda jnp, eta, y: -0.5 * ((y - eta) / NOISE) ** 2,
        (-2.5, 0.3, 1e6),
    ),
]

NAMES = [family.name for family in FAMILIES]
