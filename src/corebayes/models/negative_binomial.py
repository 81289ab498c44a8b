"""Negative-binomial regression: counts that vary more than Poisson counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corebayes.models.glm import GLM
from corebayes.models.poisson import not_counts
from corebayes.models.positive import check_positive
from corebayes.models.scratch import scratch
from corebayes.models.sigmoid import log1p_exp_minus_abs, sigmoid_pair
from corebayes.types import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class NegativeBinomialRegression(GLM):
    """Counts of mean μ = e^η and variance μ + dispersion · μ², the dispersion known.

    With r = 1/dispersion and x = η − log r,

        ℓ = y x − (y + r) log(1 + eˣ) = y min(x, 0) − r max(x, 0) − (y + r) log(1 + e^{−|x|}).
    """

    dispersion: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self.dispersion, "dispersion")

    @property
    def kernel(self) -> str | None:
        return "negative_binomial"

    @property
    def kernel_parameters(self) -> tuple[float, ...]:
        return (self.dispersion,)

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
        from scipy.special import betaln

        r = 1.0 / self.dispersion
        # log Γ(y + r) / (Γ(r) y!), in the form that does not cancel for large r
        return -np.asarray(betaln(r, y + 1.0), dtype=np.float64) - np.log(y + r)

    def check_target(self, y: Array, lowest: float) -> tuple[NDArray[np.bool_], str]:
        return not_counts(y), "counts must be 0, 1, 2, …"
