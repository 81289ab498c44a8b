"""What a first-order optimiser is: one step from one gradient, whatever is optimised.

An optimiser remembers something between steps (running moments, distances) in a state of its
own, so a caller can hold it, step by step: weight updates over fresh tangent spaces, chains that
move along with the weights, rows that are learned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from corebayes.tangent.geometry import Restriction
from corebayes.types import Array, Rng

Schedule = float | Callable[[int], float]


def rate_at(schedule: Schedule, step: int) -> float:
    """γ_t for t = 1, 2, …: a number means number / t."""
    return schedule(step) if callable(schedule) else schedule / step


class Optimiser(Protocol):
    """Descends by one gradient at a time; `num_steps` is how many it is meant for."""

    @property
    def num_steps(self) -> int: ...

    def begin(self, values: Array) -> Any:
        """The state before the first step from these values."""
        ...

    def advance(self, gradient: Array, values: Array, state: Any) -> tuple[Array, Any]:
        """The values after one step, not projected, and the next state."""
        ...


def descend(optimiser: Optimiser, rng: Rng, restriction: Restriction, weights: Array) -> Array:
    """`num_steps` projected steps w ← (·)₊. Cost: as many tangent spaces and totals."""
    state = optimiser.begin(weights)
    for _ in range(optimiser.num_steps):
        gradient = restriction.gradient(rng, weights)
        weights, state = optimiser.advance(gradient, weights, state)
        weights = np.maximum(weights, 0.0)
    return weights
