"""Logistic regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corebayes.models.compiled.jit import Kernel, exp, log1p_unit
from corebayes.models.families.binomial import BinomialRegression
from corebayes.models.families.family import Row
from corebayes.models.families.labels import LabelRegression
from corebayes.models.special import log_odds, scratch, sigmoid_pair
from corebayes.types import Array, Block

LOG2_E, LN_2 = float(np.log2(np.e)), float(np.log(2.0))


@dataclass(frozen=True, kw_only=True, eq=False)
class LogisticRegression(LabelRegression):
    """P(y = 1 | x) = 1 / (1 + exp(−xᵀθ)).

    Labels are 0 and 1, or −1 and 1, or bool. With y = ±1 and the margin m = yη,

        ℓ = −log(1 + e^{−m}) = min(m, 0) − log(1 + e^{−|m|}).
    """

    command_line = {"logistic": {}}  # noqa: RUF012
    also = ("bernoulli",)
    stan_line = "bernoulli_logit_lpmf(y[i] | eta[i])"
    of_trials = BinomialRegression

    @property
    def kernel(self) -> Kernel | None:
        return logistic_kernel

    @property
    def slope_kernel(self) -> Kernel | None:
        return logistic_slope

    @property
    def written(self) -> str:
        return "Bernoulli(1 / (1 + exp(-η)))"

    def in_numpyro(self, numpyro: Any, jax: Any, eta: Any) -> Any:
        return numpyro.distributions.Bernoulli(logits=eta)

    def in_pymc(self, pymc: Any, eta: Any) -> Any:
        return pymc.Bernoulli.dist(logit_p=eta)

    def predictor_of_mean(self, mean: float, count: float) -> float:
        return log_odds(0.5 * (mean + 1.0), count)

    def mean(self, at: Sequence[Array], row: Row) -> Array:
        return sigmoid_pair(at[0])[0]

    def draw(self, rng: np.random.Generator, at: Sequence[Array], row: Row) -> Array:
        return (rng.uniform(size=at[0].shape) < self.mean(at, row)).astype(np.float64)

    def potentials(self, draws: Array, block: Block, out: Array | None = None) -> Array:
        if self.compiled_kernel(len(block) * len(draws)) is not None:
            return super().potentials(draws, block, out)
        # −m log₂e straight from the product of matrices: one loop over the potentials less.
        signed = self.design(block) * (-LOG2_E * self.target(block)[:, None])
        return _minus_log_1p_exp2(np.matmul(signed, draws.T, out=out))

    def log_density(self, eta: Array, y: Array, out: Array) -> Array:
        return _minus_log_1p_exp2(np.multiply(eta, -LOG2_E * y, out=out))

    def derivatives(self, eta: Array, y: Array, order: int = 3) -> tuple[Array, ...]:
        right, wrong = sigmoid_pair(y * eta)
        first = y * wrong
        if order == 1:
            return (first,)
        second = -right * wrong
        if order == 2:
            return first, second
        return first, second, y * second * (wrong - right)


def _minus_log_1p_exp2(x: Array) -> Array:
    """−log(1 + 2ˣ), in place: NumPy's quickest exponential, and log(1 + t) instead of log1p(t),
    which is slower and no more exact than a potential can be."""
    if x.size and x.max() < 1000.0:
        np.exp2(x, out=x)
        x += 1.0
        np.log(x, out=x)
        return np.negative(x, out=x)
    # Where 2ˣ would overflow: −max(x, 0) log 2 − log(1 + 2^{−|x|})
    tail = np.abs(x, out=scratch("tail", x.shape))
    np.negative(tail, out=tail)
    np.exp2(tail, out=tail)
    tail += 1.0
    np.log(tail, out=tail)
    np.maximum(x, 0.0, out=x)
    x *= -LN_2
    return np.subtract(x, tail, out=x)


def logistic_kernel(eta: Array, y: Array, p0: float, p1: float, t: Array, _: Array) -> None:
    """y = ±1, m = yη: f = −log(1 + e^{−m}) = min(m, 0) − log(1 + e^{−|m|})."""
    for i in range(eta.size):
        t[i] = exp(-abs(y[i] * eta[i]))
    for i in range(eta.size):
        m = y[i] * eta[i]
        eta[i] = (0.0 if m > 0.0 else m) - log1p_unit(t[i])


def logistic_slope(eta: Array, y: Array, p0: float, p1: float, t: Array, _: Array) -> None:
    """ℓ' = y / (1 + e^m)."""
    for i in range(eta.size):
        t[i] = exp(-abs(y[i] * eta[i]))
    for i in range(eta.size):
        eta[i] = y[i] * (t[i] if y[i] * eta[i] > 0.0 else 1.0) / (1.0 + t[i])
