"""What a weight update is; of the first order it takes one step from one gradient, of whatever.

An optimiser remembers something between steps (running moments, distances) in a state of its
own, so a caller can hold it, step by step: weight updates over fresh tangent spaces, chains that
move along with the weights, rows that are learned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from corebayes.arguments import check_fields
from corebayes.deadline import check_time
from corebayes.tangent.geometry import Restriction
from corebayes.types import Array, Rng

Schedule = float | Callable[[int], float]


def rate_at(schedule: Schedule, step: int) -> float:
    """γ_t for t = 1, 2, …: a number means number / t."""
    return schedule(step) if callable(schedule) else schedule / step


class WeightUpdate(Protocol):
    """Moves the weights of a fixed active set towards lower KL(π_w ‖ π), keeping w ≥ 0.

    After a selection the row just selected is the last one, whether it is new (its weight is zero)
    or was active before, so that an update of a single weight knows which one to move.
    """

    def run(self, rng: Rng, restriction: Restriction, weights: Array) -> Array: ...


class Optimiser(ABC):
    """Descends by one gradient at a time."""

    num_steps: int
    """How many steps it is meant for."""

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def begin(self, values: Array) -> Any:
        """The state before the first step from these values."""

    @abstractmethod
    def advance(self, gradient: Array, values: Array, state: Any) -> tuple[Array, Any]:
        """The values after one step, not projected, and the next state."""

    def run(self, rng: Rng, restriction: Restriction, weights: Array) -> Array:
        """`num_steps` projected steps w ← (·)₊. Cost: as many tangent spaces and totals."""
        state = self.begin(weights)
        for _ in range(self.num_steps):
            check_time()
            gradient = restriction.gradient(rng, weights)
            weights, state = self.advance(gradient, weights, state)
            weights = np.maximum(weights, 0.0)
        return weights
