"""Hot DoG: gradient descent without a learning rate (Chen, Huggins and Campbell 2024).

The step size of a coordinate is the distance it has travelled over the root of its summed squared
gradients, both smoothed as Adam smooths moments. With decays a = 0.9 and b = 0.999, at step t

    m ← a m + (1 − a) g,    v ← b v + (1 − b) g²,    d ← a d + (1 − a) max(|w − w_0|, d),
    w ← w − d̂ m̂ / (√(t v̂) + 1e-8)

where hats divide by 1 − aᵗ or 1 − bᵗ (for d, which begins one step later, by 1 − aᵗ⁻¹). The first
step has no distance yet: w ← w − r m̂ / √v̂.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from corebayes.types import Array
from corebayes.weights.optimiser import Optimiser


class HotDogState(NamedTuple):
    """Where the descent began, running moments and distances, and how many steps went in."""

    start: Array
    first: Array
    second: Array
    distance: Array
    step: int


@dataclass(frozen=True, kw_only=True)
class HotDoG(Optimiser):
    """T steps of Hot DoG. Cost: T gradients.

    "Hot" is for a hot start: the chains have settled before the first step. `CoresetMCMC`, which
    has the chains, sees to that.
    """

    num_steps: int = 100
    first_step: float = 0.001
    """r, how far the first step goes in every coordinate; too small costs a few steps only."""
    decay: tuple[float, float] = (0.9, 0.999)

    def begin(self, values: Array) -> HotDogState:
        nothing = np.zeros_like(values)
        return HotDogState(values, nothing, nothing, nothing, 0)

    def advance(
        self, gradient: Array, values: Array, state: HotDogState
    ) -> tuple[Array, HotDogState]:
        a, b = self.decay
        step = state.step + 1
        first = a * state.first + (1.0 - a) * gradient
        second = b * state.second + (1.0 - b) * np.square(gradient)
        mean, square = first / (1.0 - a**step), second / (1.0 - b**step)
        if step == 1:
            distance = state.distance
            length, scale = self.first_step, np.sqrt(square)
        else:
            farthest = np.maximum(np.abs(values - state.start), state.distance)
            distance = a * state.distance + (1.0 - a) * farthest
            length, scale = distance / (1.0 - a ** (step - 1)), np.sqrt(step * square)
        values = values - length * mean / (scale + 1e-8)
        return values, HotDogState(state.start, first, second, distance, step)
