"""Markov kernels that leave π_w invariant, for many chains at once.

A kernel is any function (rng, posterior, fit, chains) ↦ chains that moves every row of `chains`,
(K, d), by one step whose stationary distribution is π_w. `fit` is a Laplace fit of π_w or of a π_w
nearby, for its scales. Nothing may depend on where the chains have been.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.random import Generator

from corebayes.arguments import check_fields
from corebayes.deadline import check_time
from corebayes.samplers.draws import Draws
from corebayes.samplers.laplace import fit_or_units
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Gaussian

Height = Callable[[Array], Array]


class Kernel(Protocol):
    def __call__(
        self, rng: Generator, posterior: Posterior, fit: Gaussian, chains: Array
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
    num_chains: int = 4
    num_tune: int = 100
    """Chains, and steps that they take before any is kept, when it draws on its own."""

    def __post_init__(self) -> None:
        check_fields(self)

    def draw(
        self, rng: Generator, posterior: Posterior, num_draws: int, start: Array | None = None
    ) -> Draws:
        """Chains from starts twice as wide as the Laplace fit. For few parameters: some d steps
        make one independent draw."""
        fit = fit_or_units(posterior, start)
        chains = Gaussian(fit.mean, 2.0 * fit.factor).draw(rng, self.num_chains)
        steps: list[Array] = []
        with np.errstate(all="ignore"):
            for _ in range(self.num_tune + -(-num_draws // self.num_chains)):
                check_time()
                chains = self(rng, posterior, fit, chains)
                steps.append(chains)
        values = np.stack(steps[self.num_tune :], axis=1)
        how = f"hit and run, {self.num_chains} chains"
        return Draws(values=values, location=fit.mean, how=how)

    def __call__(self, rng: Generator, posterior: Posterior, fit: Gaussian, chains: Array) -> Array:
        num_chains, dim = len(chains), chains.shape[1]
        directions = rng.standard_normal((num_chains, dim))
        # Of unit length, a direction has the same spread of lengths in any number of dimensions.
        directions /= np.sqrt(np.vecdot(directions, directions))[:, None]
        directions = directions @ fit.factor.T

        def height(positions: Array) -> Array:
            """log π_w at positions (…, K) on the chains' lines."""
            draws = chains + positions[..., None] * directions
            return posterior.finite_log_density(draws.reshape(-1, dim)).reshape(positions.shape)

        level = height(np.zeros(num_chains)) - rng.standard_exponential(num_chains)
        ends = self._step_out(rng, height, level)
        return chains + _shrink(rng, height, level, ends)[:, None] * directions

    def _step_out(self, rng: Generator, height: Height, level: Array) -> Array:
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


def _shrink(rng: Generator, height: Height, level: Array, ends: Array) -> Array:
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
