"""log π_w of weighted rows and its derivatives: what every sampler draws from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from corebayes.coreset import Coreset
from corebayes.types import Array, Block, Model


@dataclass(frozen=True, eq=False)
class Posterior:
    """π_w(θ) ∝ π_0(θ) exp(Σ_i w_i f_i(θ)) of a bound model and weighted rows.

    Cost: M potentials for each value, M·d flops for a gradient, M·d² for a Hessian.
    """

    model: Model
    rows: Block
    weights: Array

    @classmethod
    def of(cls, coreset: Coreset) -> Self:
        return cls(coreset.model, coreset.rows, coreset.weights)

    @property
    def dim(self) -> int:
        return self.model.dim

    @property
    def prior(self) -> Posterior:
        """The posterior of no rows."""
        return Posterior(self.model, self.rows.take(slice(0, 0)), np.empty(0))

    @property
    def num_potentials(self) -> int:
        """What a value costs, in potentials of single rows: those of groups are integrals."""
        each: int = getattr(self.model, "potentials_each", 1)
        return max(1, self.weights.size) * each

    @property
    def log_base(self) -> float:
        """What `log_density` leaves out because no θ changes it: Σ_i w_i (log p(x_i | θ) − f_i)."""
        return float(self.weights @ self.model.log_base(self.rows))

    def log_density(self, draws: Array) -> Array:
        """log π_0 + Σ_i w_i f_i at draws (S, d), shape (S,)."""
        # Rows first: an adapted model computes its prior with them.
        potentials = self.model.sum_potentials(draws, self.rows, self.weights)
        return potentials + self.model.log_prior(draws)

    def finite_log_density(self, draws: Array) -> Array:
        """The same, −∞ where it is not a finite number: what a sampler may move by."""
        values = self.log_density(draws)
        return np.where(np.isfinite(values), values, -np.inf)

    def value(self, theta: Array) -> float:
        return float(self.log_density(theta[None, :])[0])

    def gradient(self, theta: Array) -> Array:
        """∇ log π_w at one θ, (d,)."""
        likelihood = self.model.gradient(theta, self.rows, self.weights)
        return likelihood + self.model.log_prior_gradient(theta)

    def gradient_and_hessian(self, theta: Array) -> tuple[Array, Array]:
        """∇ and ∇² of log π_w at one θ, (d,) and (d, d)."""
        model = self.model
        gradient, hessian = model.gradient_and_hessian(theta, self.rows, self.weights)
        return gradient + model.log_prior_gradient(theta), hessian + model.log_prior_hessian(theta)

    def value_and_gradient(self, theta: Array) -> tuple[float, Array]:
        """Both at one θ, from any thread and without warnings.

        A trajectory may fly off before its step size is tuned; what overflows is rejected.
        """
        with np.errstate(all="ignore"):
            return self.value(theta), self.gradient(theta)
