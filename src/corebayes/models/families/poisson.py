"""Poisson regression with log or softplus link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from corebayes.models.compiled.jit import Kernel, exp, log, log1p_slope
from corebayes.models.compiled.special import grown, growth
from corebayes.models.families.family import Column, Row
from corebayes.models.families.glm import GLM
from corebayes.models.special import (
    LAST_EXPONENT,
    log1p_exp_minus_abs,
    log_mean,
    log_softplus,
    log_softplus_derivatives,
    scratch,
    sigmoid_pair,
    softplus,
)
from corebayes.types import Array

# e^−η is less than half a unit in the last place of η beyond this.
SOFTPLUS_IS_ETA = 34.0
# NumPy draws no counts of a larger rate.
LARGEST_RATE = 1e18


@dataclass(frozen=True, kw_only=True, eq=False)
class PoissonRegression(GLM):
    """Counts y ~ Poisson(λ(η)): ℓ = y log λ − λ.

    λ = e^η with the "log" link, or λ = log(1 + e^η) with the "softplus" link of Campbell and
    Beronov (2019, appendix C). Beyond η = 300 the log link's rate goes on as its second-order
    Taylor polynomial there, e³⁰⁰(1 + t + t²/2) with t = η − 300, so that potentials stay finite
    and concave; no data have a rate of 10¹³⁰.

    `exposure` names the column of X with the time or the population over which a row counts (or
    gives its position): its logarithm is added to η, for the log link.
    """

    command_line = {  # noqa: RUF012
        "poisson": {"link": "log"},
        "poisson-log": {"link": "log"},
        "poisson-softplus": {"link": "softplus"},
    }

    link: Literal["log", "softplus"] = "log"
    exposure: Column | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.link not in ("softplus", "log"):
            raise ValueError(f"link must be 'log' or 'softplus', got {self.link!r}")
        if self.exposure is not None and self.link != "log":
            raise ValueError("exposure multiplies the rate e^η: it needs link='log'")

    @property
    def kernel(self) -> Kernel | None:
        return log_kernel if self.link == "log" else softplus_kernel

    @property
    def slope_kernel(self) -> Kernel | None:
        return log_slope if self.link == "log" else softplus_slope

    @property
    def written(self) -> str:
        return "Poisson(exp(η))" if self.link == "log" else "Poisson(log(1 + exp(η)))"

    @property
    def stan(self) -> str | None:
        if self.link == "log":
            return "poisson_log_lpmf(y[i] | eta[i])"
        return "poisson_lpmf(y[i] | log1p_exp(eta[i]))"

    def in_numpyro(self, numpyro: Any, jax: Any, eta: Any) -> Any:
        rate = jax.numpy.exp if self.link == "log" else jax.nn.softplus
        return numpyro.distributions.Poisson(rate(eta))

    def in_pymc(self, pymc: Any, eta: Any) -> Any:
        rate = pymc.math.exp if self.link == "log" else pymc.math.log1pexp
        return pymc.Poisson.dist(mu=rate(eta))

    def predictor_of_mean(self, mean: float, count: float) -> float:
        logarithm = log_mean(mean, count)
        if self.link == "log":
            return logarithm
        # λ = log(1 + e^η), so η = λ + log(1 − e^−λ)
        rate = float(np.exp(logarithm))
        return rate + float(np.log(-np.expm1(-rate)))

    def in_arrays(self, xp: Any, eta: Any, row: Row) -> Any:
        if self.link == "log":
            return row["y"] * eta - xp.exp(eta)
        rate = xp.softplus(eta)
        return row["y"] * xp.log(rate) - rate

    def log_density(self, eta: Array, y: Array, out: Array) -> Array:
        if self.link == "log":
            rate = _exponential(eta, scratch("rate", eta.shape))
            np.multiply(eta, y, out=out)
        else:
            rate = log1p_exp_minus_abs(eta, "rate")
            rate += np.maximum(eta, 0.0, out=scratch("log_rate", eta.shape))
            np.multiply(log_softplus(eta, rate, scratch("log_rate", eta.shape)), y, out=out)
        out -= rate
        return out

    def derivatives(self, eta: Array, y: Array, order: int = 3) -> tuple[Array, ...]:
        if self.link == "log":
            return _log_link_derivatives(eta, y, order)
        sigma, rest = sigmoid_pair(eta)
        logarithm = log_softplus_derivatives(eta, sigma, rest, order)
        first = y * logarithm[0] - sigma
        if order == 1:
            return (first,)
        slope = sigma * rest
        second = y * logarithm[1] - slope
        if order == 2:
            return first, second
        return first, second, y * logarithm[2] - slope * (rest - sigma)

    def log_base_of(self, y: Array) -> Array:
        from scipy.special import gammaln

        return -gammaln(y + 1.0)

    def mean(self, at: Sequence[Array], row: Row) -> Array:
        if self.link == "log":
            return _exponential(at[0], np.empty(at[0].shape))
        return softplus(at[0])

    def draw(self, rng: np.random.Generator, at: Sequence[Array], row: Row) -> Array:
        return draw_counts(rng, self.mean(at, row))

    def check_target(self, y: Array, lowest: float) -> tuple[NDArray[np.bool_], str]:
        return not_counts(y), "counts must be 0, 1, 2, …"


def not_counts(y: Array) -> NDArray[np.bool_]:
    """Where y is not a finite whole number of at least zero."""
    finite = np.isfinite(y)
    return ~(finite & (y >= 0.0) & (np.floor(y) == y))


def draw_counts(rng: np.random.Generator, rates: Array) -> Array:
    """Poisson counts of these rates, cut at the largest that NumPy draws."""
    return rng.poisson(np.minimum(rates, LARGEST_RATE)).astype(np.float64)


def _exponential(eta: Array, out: Array) -> Array:
    """e^η, a quadratic beyond LAST_EXPONENT."""
    if eta.max(initial=0.0) <= LAST_EXPONENT:
        return np.exp(eta, out=out)
    excess = np.maximum(eta - LAST_EXPONENT, 0.0)
    np.exp(np.minimum(eta, LAST_EXPONENT), out=out)
    out *= 1.0 + excess + 0.5 * excess**2
    return out


def _log_link_derivatives(eta: Array, y: Array, order: int) -> tuple[Array, ...]:
    kept = np.minimum(eta, LAST_EXPONENT)
    rate = np.exp(kept)
    first = y - rate * (1.0 + (eta - kept))
    if order == 1:
        return (first,)
    second = np.broadcast_to(-rate, first.shape)
    if order == 2:
        return first, second
    return first, second, np.broadcast_to(-rate * (eta <= LAST_EXPONENT), first.shape)


def softplus_kernel(eta: Array, y: Array, p0: float, p1: float, t: Array, g: Array) -> None:
    """f = y log λ − λ, λ = log(1 + e^η) = max(η, 0) + log(1 + e^{−|η|}).

    For η < 0, log λ = η + log(λ/e^η), which still holds where e^η underflows. Where λ = η to the
    last bit, a chunk of large counts needs no exponential and one logarithm; a chunk of zeros
    needs no log λ.
    """
    lowest, largest = SOFTPLUS_IS_ETA + 1.0, 0.0
    for i in range(eta.size):
        lowest = eta[i] if eta[i] < lowest else lowest
        largest = y[i] if y[i] > largest else largest
    if lowest > SOFTPLUS_IS_ETA:
        for i in range(eta.size):
            eta[i] = y[i] * log(eta[i]) - eta[i]
        return
    for i in range(eta.size):
        t[i] = exp(-abs(eta[i]))
    if largest == 0.0:
        for i in range(eta.size):
            eta[i] = -((0.0 if eta[i] < 0.0 else eta[i]) + t[i] * log1p_slope(t[i]))
        return
    for i in range(eta.size):
        slope = log1p_slope(t[i])
        rate = (0.0 if eta[i] < 0.0 else eta[i]) + t[i] * slope
        g[i] = slope if eta[i] < 0.0 else rate
        t[i] = rate
    for i in range(eta.size):
        log_rate = (eta[i] if eta[i] < 0.0 else 0.0) + log(g[i])
        eta[i] = y[i] * log_rate - t[i]


def log_kernel(eta: Array, y: Array, p0: float, p1: float, t: Array, _: Array) -> None:
    """f = yη − e^η; beyond LAST_EXPONENT the second-order Taylor polynomial there for e^η."""
    for i in range(eta.size):
        t[i] = exp(LAST_EXPONENT if eta[i] > LAST_EXPONENT else eta[i])
    for i in range(eta.size):
        excess = eta[i] - LAST_EXPONENT if eta[i] > LAST_EXPONENT else 0.0
        eta[i] = y[i] * eta[i] - t[i] * (1.0 + excess * (1.0 + 0.5 * excess))


def log_slope(eta: Array, y: Array, p0: float, p1: float, t: Array, _: Array) -> None:
    """ℓ' = y − e^η, or the slope of the polynomial."""
    for i in range(eta.size):
        t[i] = exp(LAST_EXPONENT if eta[i] > LAST_EXPONENT else eta[i])
    for i in range(eta.size):
        excess = eta[i] - LAST_EXPONENT if eta[i] > LAST_EXPONENT else 0.0
        eta[i] = y[i] - t[i] * (1.0 + excess)


def softplus_slope(eta: Array, y: Array, p0: float, p1: float, t: Array, _: Array) -> None:
    """ℓ' = y σ/λ − σ with σ = 1/(1 + e^−η); for η < 0, σ/λ = (e^η/λ) / (1 + e^η)."""
    for i in range(eta.size):
        t[i] = exp(-abs(eta[i]))
    for i in range(eta.size):
        slope, inverse = log1p_slope(t[i]), 1.0 / (1.0 + t[i])
        sigma = inverse * t[i] if eta[i] < 0.0 else inverse
        share = inverse / slope if eta[i] < 0.0 else inverse / (eta[i] + t[i] * slope)
        eta[i] = y[i] * share - sigma


def log_jet(etas: Array, u: Array, row: Array, value: Array, first: Array) -> None:
    """ℓ = yη − e^η, a quadratic beyond LAST_EXPONENT."""
    for i in range(value.size):
        y, eta = row[0, i], etas[0, i]
        value[i] = y * eta - grown(eta)
        first[0, i] = y - growth(eta)
