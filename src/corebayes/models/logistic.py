"""Logistic regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corebayes.models.glm import GLM
from corebayes.models.scratch import scratch
from corebayes.models.sigmoid import sigmoid_pair
from corebayes.types import Array, Block


@dataclass(frozen=True, kw_only=True, eq=False)
class LogisticRegression(GLM):
    """P(y = 1 | x) = 1 / (1 + exp(−xᵀθ)).

    Labels are 0 and 1, or −1 and 1, or bool. With y = ±1 and the margin m = yη,

        ℓ = −log(1 + e^{−m}) = min(m, 0) − log(1 + e^{−|m|}).
    """

    @property
    def kernel(self) -> str | None:
        return "logistic"

    def target(self, block: Block) -> Array:
        """Labels as ±1."""
        return np.copysign(1.0, block.y - 0.5)

    def log_density(self, eta: Array, y: Array, out: Array) -> Array:
        np.multiply(eta, -y, out=out)
        if out.size and out.max() < 700.0:
            # No exponential overflows: −log(1 + e^{−m}) in the fewest loops.
            np.exp(out, out=out)
            out += 1.0
            np.log(out, out=out)
            return np.negative(out, out=out)
        margin = np.negative(out, out=out)
        tail = np.abs(margin, out=scratch("tail", margin.shape))
        np.negative(tail, out=tail)
        np.exp(tail, out=tail)
        # log(1 + t) is quicker than log1p(t), and its absolute error is no larger than that of ℓ.
        tail += 1.0
        np.log(tail, out=tail)
        np.minimum(margin, 0.0, out=out)
        out -= tail
        return out

    def derivatives(self, eta: Array, y: Array, order: int = 3) -> tuple[Array, ...]:
        right, wrong = sigmoid_pair(y * eta)
        first = y * wrong
        if order == 1:
            return (first,)
        second = -right * wrong
        if order == 2:
            return first, second
        return first, second, y * second * (wrong - right)

    def log_base_of(self, y: Array) -> Array:
        return np.zeros_like(y)

    def check_target(self, y: Array, lowest: float) -> tuple[NDArray[np.bool_], str]:
        bad = ~((y == 1.0) | (y == 0.0) | (y == -1.0))
        negatives = y[y < 1.0]
        if np.any(bad) or negatives.size == 0:
            return bad, "labels must be 0 and 1, or -1 and 1, or bool"
        negative = lowest if lowest < 1.0 else negatives[0]
        return (y < 1.0) & (y != negative), (
            f"earlier rows have {negative:g} for the same class; "
            "labels must be 0 and 1, or -1 and 1, not both"
        )
