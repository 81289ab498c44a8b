"""Markov kernels that leave π_w invariant, for many chains at once.

A kernel is any function (rng, density, chains) ↦ chains that moves every row of `chains`, (K, d),
by one step whose stationary distribution is π_w. It may use the density's value, gradient and
Laplace fit, but nothing that depends on where the chains have been.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from corebayes.arguments import check_fields
from corebayes.deadline import check_time
from corebayes.types import Array, Block, Gaussian, Model

Height = Callable[[Array], Array]


@dataclass(frozen=True)
class CoresetDensity:
    """log π_w up to a constant, on weighted rows."""

    model: Model
    rows: Block
    weights: Array
    fit: Gaussian
    """A Laplace fit of π_w or of a π_w nearby: its scales, to precondition with."""

    def __call__(self, draws: Array) -> Array:
        """log π_w(θ_k), shape (K,); −∞ where it is not a number. Cost: K·M potentials."""
        potentials = self.model.sum_potentials(draws, self.rows, self.weights)
        values = self.model.log_prior(draws) + potentials
        return np.where(np.isnan(values), -np.inf, values)

    def gradient(self, theta: Array) -> Array:
        """∇ log π_w at one θ, shape (d,)."""
        likelihood = self.model.gradient(theta, self.rows, self.weights)
        return self.model.log_prior_gradient(theta) + likelihood


class Kernel(Protocol):
    def __call__(
        self, rng: np.random.Generator, density: CoresetDensity, chains: Array
    ) -> Array: ...


@dataclass(frozen=True, kw_only=True)
class HitAndRun:
    """Slice sampling along a random line, by stepping out and shrinking (Neal 2003).

    A line has the direction L z with z standard normal and L from the Laplace fit, so that a width
    of a few units spans the slice whatever the scales; nothing needs tuning and no step is
    rejected. Cost of a step: about six densities of every chain.
    """

    width: float = 4.0
    """The first interval on the line, in posterior standard deviations."""
    max_steps_out: int = 32
    """Widths that an interval may grow by."""

    def __post_init__(self) -> None:
        check_fields(self)

    def __call__(self, rng: np.random.Generator, density: CoresetDensity, chains: Array) -> Array:
        num_chains, dim = len(chains), chains.shape[1]
        directions = rng.standard_normal((num_chains, dim))
        # Of unit length, a direction has the same spread of lengths in any number of dimensions.
        directions /= np.sqrt(np.vecdot(directions, directions))[:, None]
        directions = directions @ density.fit.factor.T

        def height(positions: Array) -> Array:
            """log π_w at positions (…, K) on the chains' lines."""
            draws = chains + positions[..., None] * directions
            return density(draws.reshape(-1, dim)).reshape(positions.shape)

        level = height(np.zeros(num_chains)) - rng.standard_exponential(num_chains)
        ends = self._step_out(rng, height, level)
        return chains + _shrink(rng, height, level, ends)[:, None] * directions

    def _step_out(self, rng: np.random.Generator, height: Height, level: Array) -> Array:
        """Ends (2, K) of intervals around zero, each grown until it is outside of the slice.

        Which side may grow how far is decided beforehand, or the kernel would not be reversible.
        """
        low = -self.width * rng.uniform(size=level.size)
        ends = np.stack([low, low + self.width])
        left = np.floor(self.max_steps_out * rng.uniform(size=level.size))
        steps = np.stack([left, self.max_steps_out - 1 - left])
        outward = np.array([[-self.width], [self.width]])
        while True:
            check_time()
            inside = (height(ends) > level) & (steps > 0)
            if not inside.any():
                return ends
            ends = np.where(inside, ends + outward, ends)
            steps -= inside


def _shrink(rng: np.random.Generator, height: Height, level: Array, ends: Array) -> Array:
    """A uniform position on each slice: those outside of it become the new end on their side."""
    low: Array = ends[0]
    high: Array = ends[1]
    found, positions = np.zeros(level.size, dtype=np.bool_), np.zeros(level.size)
    # Every trial cuts off a random share of the interval, so this many are never needed; a chain
    # that is not done by then stays where it is.
    for _ in range(200):
        trial = low + (high - low) * rng.uniform(size=level.size)
        inside = height(trial) >= level
        positions = np.where(inside & ~found, trial, positions)
        found |= inside
        if found.all():
            break
        low = np.where(~found & (trial < 0.0), trial, low)
        high = np.where(~found & (trial >= 0.0), trial, high)
    return positions
