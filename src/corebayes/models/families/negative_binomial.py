"""Negative-binomial regression: counts that vary more than Poisson counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebayes.models.compiled.jit import Kernel, Kernels, exp, log1p_unit
from corebayes.models.compiled.special import digamma_rise, log_rising
from corebayes.models.families.family import Column, Constant, Jet, Row
from corebayes.models.families.glm import GLM
from corebayes.models.families.poisson import draw_counts, not_counts
from corebayes.models.numbers import LEARNED
from corebayes.models.priors.scale import HalfNormal
from corebayes.models.special import log1p_exp_minus_abs, scratch, sigmoid_pair
from corebayes.types import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class NegativeBinomialRegression(GLM):
    """Counts of mean μ = e^η and variance μ + dispersion · μ²; it is learned unless it is given.

    With r = 1/dispersion and x = η − log r,

        ℓ = y x − (y + r) log(1 + eˣ) = y min(x, 0) − r max(x, 0) − (y + r) log(1 + e^{−|x|}).

    `exposure` names the column of X whose logarithm is added to η (or gives its position).
    """

    command_line = {"negative-binomial": {}}  # noqa: RUF012
    mean_link = "log"
    also = (
        "negativebinomial",
        "negbinomial",
        "negative_binomial",
        "nbinom",
    )
    flags = {"dispersion": "dispersion"}  # noqa: RUF012
    stan_line = "neg_binomial_2_log_lpmf(y[i] | eta[i], inv(dispersion))"

    dispersion: float = LEARNED
    exposure: Column | None = field(default=None, repr=False)

    @property
    def learnable(self) -> tuple[Constant, ...]:
        return (Constant("dispersion", HalfNormal(1.0)),)

    @property
    def kernel(self) -> Kernel | None:
        return negative_binomial_kernel

    @property
    def slope_kernel(self) -> Kernel | None:
        return negative_binomial_slope

    def in_numpyro(self, numpyro: Any, jax: Any, eta: Any) -> Any:
        distributions = numpyro.distributions
        return distributions.NegativeBinomial2(jax.numpy.exp(eta), 1.0 / self.dispersion)

    def in_pymc(self, pymc: Any, eta: Any) -> Any:
        return pymc.NegativeBinomial.dist(mu=pymc.math.exp(eta), alpha=1.0 / self.dispersion)

    def in_arrays(self, xp: Any, eta: Any, row: Row) -> Any:
        y, r, x = row["y"], 1.0 / self.dispersion, eta + xp.log(self.dispersion)
        return y * x - (y + r) * xp.softplus(x) + xp.gammaln(y + r) - xp.gammaln(r)

    def log_density(self, eta: Array, y: Array, out: Array) -> Array:
        r = 1.0 / self.dispersion
        # x = η − log r
        x = np.add(eta, np.log(self.dispersion), out=out)
        tail = log1p_exp_minus_abs(x, "tail")
        tail *= y + r
        positive = np.maximum(x, 0.0, out=scratch("positive", x.shape))
        positive *= r
        np.minimum(x, 0.0, out=out)
        out *= y
        out -= positive
        out -= tail
        return out

    def derivatives(self, eta: Array, y: Array, order: int = 3) -> tuple[Array, ...]:
        r = 1.0 / self.dispersion
        sigma, rest = sigmoid_pair(eta + np.log(self.dispersion))
        first = y * rest - r * sigma
        if order == 1:
            return (first,)
        second = -(y + r) * (sigma * rest)
        if order == 2:
            return first, second
        return first, second, second * (rest - sigma)

    def log_base_of(self, y: Array) -> Array:
        return _log_ways(y, np.array(1.0 / self.dispersion))

    @property
    def jet_kernels(self) -> Kernels:
        return (negative_binomial_jet,)

    def compiled_row(self, row: Row) -> Array:
        from scipy.special import gammaln

        return np.stack([row["y"], np.asarray(gammaln(row["y"] + 1.0), dtype=np.float64)])

    def log_likelihood(self, at: Sequence[Array], row: Row) -> Array:
        (eta, u), y = at, row["y"]
        r, x = np.exp(-u), eta + u
        if y.shape == (y.size, 1) and r.shape[0] == 1:
            # Counts repeat: what costs most is computed once for each that there is.
            counts, places = np.unique(y, return_inverse=True)
            base = _log_ways(counts[:, None], r)[places.ravel()]
        else:
            base = _log_ways(y, r)
        return y * x - (y + r) * np.logaddexp(0.0, x) + base

    def slopes(self, at: Sequence[Array], row: Row) -> tuple[Array, Array]:
        (eta, u), y = at, row["y"]
        r = np.exp(-u)
        sigma, rest = sigmoid_pair(eta + u)
        return y * rest - r * sigma, -(y + r) * (sigma * rest)

    def jet(self, at: Sequence[Array], row: Row, order: int = 2) -> Jet:
        from scipy.special import digamma, polygamma

        (eta, u), y = at, row["y"]
        r, x = np.exp(-u), eta + u
        sigma, rest = sigmoid_pair(x)
        slope = y * rest - r * sigma
        # ∂r/∂u = −r and ∂x/∂u = 1
        more = r * (np.logaddexp(0.0, x) - digamma(y + r) + digamma(r))
        value, first = self.log_likelihood(at, row), (slope, slope + more)
        if order == 1:
            return Jet(value, first)
        bend = -(y + r) * (sigma * rest)
        bent = np.square(r) * (polygamma(1, y + r) - polygamma(1, r))
        second = (bend,), (bend + r * sigma, bend + 2.0 * r * sigma - more + bent)
        return Jet(value, first, second)

    def row_base(self, row: Row) -> Array:
        return np.zeros_like(row["y"])

    def mean(self, at: Sequence[Array], row: Row) -> Array:
        return np.exp(at[0])

    def draw(self, rng: np.random.Generator, at: Sequence[Array], row: Row) -> Array:
        eta, u = at
        # A Poisson count whose rate is a gamma number of mean μ and shape r
        rates = rng.standard_gamma(np.broadcast_to(np.exp(-u), eta.shape)) * np.exp(eta + u)
        return draw_counts(rng, rates)

    def check_target(self, y: Array, lowest: float) -> tuple[NDArray[np.bool_], str]:
        return not_counts(y), "counts must be 0, 1, 2, …"


def _log_ways(y: Array, r: Array) -> Array:
    """log Γ(y + r) / (Γ(r) y!), in the form that does not cancel for large r."""
    from scipy.special import betaln

    return -np.asarray(betaln(r, y + 1.0), dtype=np.float64) - np.log(y + r)


def negative_binomial_kernel(
    eta: Array, y: Array, dispersion: float, p1: float, t: Array, _: Array
) -> None:
    """f = y min(x, 0) − r max(x, 0) − (y + r) log(1 + e^{−|x|}).

    Here r = 1/dispersion and x = η − log r.
    """
    r = 1.0 / dispersion
    log_dispersion = math.log(dispersion)
    for i in range(eta.size):
        t[i] = exp(-abs(eta[i] + log_dispersion))
    for i in range(eta.size):
        x = eta[i] + log_dispersion
        eta[i] = (-r if x > 0.0 else y[i]) * x - (y[i] + r) * log1p_unit(t[i])


def negative_binomial_slope(
    eta: Array, y: Array, dispersion: float, p1: float, t: Array, _: Array
) -> None:
    """ℓ' = y (1 − σ) − r σ with σ = 1/(1 + e^−x)."""
    r = 1.0 / dispersion
    log_dispersion = math.log(dispersion)
    for i in range(eta.size):
        t[i] = exp(-abs(eta[i] + log_dispersion))
    for i in range(eta.size):
        x = eta[i] + log_dispersion
        eta[i] = (y[i] * (t[i] if x > 0.0 else 1.0) - r * (1.0 if x > 0.0 else t[i])) / (1.0 + t[i])


def negative_binomial_jet(etas: Array, u: Array, row: Array, value: Array, first: Array) -> None:
    """ℓ = y x − (y + r) log(1 + eˣ) + log Γ(y + r)/(Γ(r) y!), r = e^−u and x = η + u."""
    r = math.exp(-u[0])
    for i in range(value.size):
        y, x = row[0, i], etas[0, i] + u[0]
        t = exp(-abs(x))
        soft = max(x, 0.0) + log1p_unit(t)
        slope = (y * (t if x > 0.0 else 1.0) - r * (1.0 if x > 0.0 else t)) / (1.0 + t)
        value[i] = y * x - (y + r) * soft + log_rising(r, y) - row[1, i]
        first[0, i] = slope
        first[1, i] = slope + r * (soft - digamma_rise(r, y))
