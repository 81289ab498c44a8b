"""First-order weight updates: stochastic gradient descent and Adam, projected to w ≥ 0.

SGD is lines 10 to 15 of Algorithm 1 (Campbell and Beronov 2019): T steps

    w ← (w − γ_t D)₊,    D = −Cov_w[f, r] over the active rows, from fresh draws,

with γ_t = rate / t. Adam (Kingma and Ba 2015) rescales D by running moments, with the same γ_t;
it is what the authors' later code uses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from corebayes.tangent.geometry import Restriction
from corebayes.types import Array

Schedule = float | Callable[[int], float]


def _rate(schedule: Schedule, step: int) -> float:
    """γ_t for t = 1, 2, …: a number means number / t."""
    return schedule(step) if callable(schedule) else schedule / step


@dataclass(frozen=True, kw_only=True)
class SGD:
    """T steps of w ← (w − γ_t D)₊. Cost: T tangent spaces and totals."""

    num_steps: int = 100
    rate: Schedule = 1.0
    """γ_t: a function of t = 1, 2, …, or the number γ in γ_t = γ/t."""

    def run(self, rng: np.random.Generator, restriction: Restriction, weights: Array) -> Array:
        for step in range(1, self.num_steps + 1):
            descent = _rate(self.rate, step) * restriction.gradient(rng, weights)
            weights = np.maximum(weights - descent, 0.0)
        return weights


@dataclass(frozen=True, kw_only=True)
class Adam:
    """T steps of Adam with step size γ_t. Cost: T tangent spaces and totals.

    A weight moves by at most about Σ_t γ_t in one update, so with N rows and M points choose
    `rate` so that N/M can be reached.
    """

    num_steps: int = 100
    rate: Schedule = 1.0
    """γ_t: a function of t = 1, 2, …, or the number γ in γ_t = γ/t."""
    decay: tuple[float, float] = (0.9, 0.999)

    def run(self, rng: np.random.Generator, restriction: Restriction, weights: Array) -> Array:
        first_decay, second_decay = self.decay
        first, second = np.zeros_like(weights), np.zeros_like(weights)
        for step in range(1, self.num_steps + 1):
            gradient = restriction.gradient(rng, weights)
            first += (1.0 - first_decay) * (gradient - first)
            second += (1.0 - second_decay) * (gradient * gradient - second)
            mean = first / (1.0 - first_decay**step)
            scale = np.sqrt(second / (1.0 - second_decay**step)) + 1e-8
            weights = np.maximum(weights - _rate(self.rate, step) * mean / scale, 0.0)
        return weights
