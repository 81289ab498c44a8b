"""First-order weight updates: stochastic gradient descent and Adam, projected to w ≥ 0.

SGD is lines 10 to 15 of Algorithm 1 (Campbell and Beronov 2019): T steps

    w ← (w − γ_t D)₊,    D = −Cov_w[f, r] over the active rows, from fresh draws,

with γ_t = rate / t. Adam (Kingma and Ba 2015) rescales D by running moments, with the same γ_t;
it is what the authors' later code uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from corebayes.types import Array
from corebayes.weights.optimiser import Optimiser, Schedule, rate_at


@dataclass(frozen=True, kw_only=True)
class SGD(Optimiser):
    """T steps of w ← (w − γ_t D)₊. Cost: T tangent spaces and totals."""

    num_steps: int = 100
    rate: Schedule = 1.0
    """γ_t: a function of t = 1, 2, …, or the number γ in γ_t = γ/t."""

    def begin(self, values: Array) -> int:
        return 0

    def advance(self, gradient: Array, values: Array, state: int) -> tuple[Array, int]:
        step = state + 1
        return values - rate_at(self.rate, step) * gradient, step


class AdamState(NamedTuple):
    """Running means of the gradient and of its square, and how many steps went in."""

    first: Array
    second: Array
    step: int


@dataclass(frozen=True, kw_only=True)
class Adam(Optimiser):
    """T steps of Adam with step size γ_t. Cost: T tangent spaces and totals.

    A weight moves by at most about Σ_t γ_t in one update, so with N rows and M points choose
    `rate` so that N/M can be reached.
    """

    num_steps: int = 100
    rate: Schedule = 1.0
    """γ_t: a function of t = 1, 2, …, or the number γ in γ_t = γ/t."""
    decay: tuple[float, float] = (0.9, 0.999)

    def begin(self, values: Array) -> AdamState:
        return AdamState(np.zeros_like(values), np.zeros_like(values), 0)

    def advance(self, gradient: Array, values: Array, state: AdamState) -> tuple[Array, AdamState]:
        first_decay, second_decay = self.decay
        step = state.step + 1
        first = state.first + (1.0 - first_decay) * (gradient - state.first)
        second = state.second + (1.0 - second_decay) * (gradient * gradient - state.second)
        mean = first / (1.0 - first_decay**step)
        scale = np.sqrt(second / (1.0 - second_decay**step)) + 1e-8
        values = values - rate_at(self.rate, step) * mean / scale
        return values, AdamState(first, second, step)
