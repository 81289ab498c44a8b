"""Subsample, then optimise by quasi-Newton steps (Naik, Rousseau and Campbell 2022).

Minimises KL(π_w ‖ π) over the weights of M rows taken at random, by steps

    Δ = (Cov_w[f] + τI)⁻¹ Cov_w[f, r],      w ← (w + a Δ)₊,

with covariances over these rows at fresh draws of π_w and the residual r of all rows. The first
step is shortened, a ← a/1.5, until the slope along it has fallen but not turned:
0 < ⟨∇KL(w + aΔ), Δ⟩ / ⟨∇KL(w), Δ⟩ < 0.9. The others have a = 1, until the gradient's norm improves
by less than a tenth. A step sees no further than the tangent space at w: where the posterior of a
random subset at N/M times its weight is far from π, the steps end about where they began.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from corebayes.constructions.construction import EXACT, PRECISION, Construction, Info, Style
from corebayes.constructions.subset import random_subset
from corebayes.problem import Problem
from corebayes.tangent import Geometry, MonteCarlo
from corebayes.types import Array, Estimate, Rng, WeightedPoints

# A step is good when it leaves less than this share of the slope, or of the gradient's norm.
SHARE_LEFT = 0.9


class SubsetMoments(NamedTuple):
    """Covariances of the subset at one w."""

    subset: WeightedPoints
    """All rows that may have a weight, zeros among them."""
    gradient: Array
    gram: Array
    location: Array
    kl: Estimate

    @property
    def norm(self) -> float:
        return float(np.linalg.norm(self.gradient))


class State(NamedTuple):
    points: WeightedPoints
    seen: SubsetMoments
    num_steps: int


@dataclass(frozen=True, kw_only=True)
class QuasiNewton(Construction):
    """A random subset, its weights by regularised Newton steps.

    Cost of a step: one look, that is S draws of π_w, a pass of N·S potentials, M²·S flops and M³/3
    for the step; the first step takes up to `max_trials` looks.
    """

    style = Style("#332288", "h")
    ranges = {"ridge": 0.0}  # noqa: RUF012

    geometry: Geometry = field(default_factory=lambda: MonteCarlo(num_draws=500))
    """How covariances are known; draws, as in the paper."""
    ridge: float = 0.01
    """τ, added to every variance."""
    num_steps: int = 20
    max_trials: int = 10
    """Lengths of the first step, at most."""

    def init(self, rng: Rng, problem: Problem, size: int | None) -> State:
        subset = random_subset(rng, problem, self.require(size))
        return State(subset, self._look(rng, problem, subset, None), 0)

    def step(self, rng: Rng, problem: Problem, state: State) -> tuple[State, Info]:
        before = state.seen
        direction = self._direction(before)
        after = self._moved(rng, problem, before, direction, 1.0)
        if state.num_steps == 0:
            after = self._shortened(rng, problem, before, direction, after)
        num_steps = state.num_steps + 1
        done = self._done(before, after, num_steps)
        # A step that did not help is not taken, and a coreset is never empty.
        if after.norm < before.norm and after.subset.weights.any():
            state = State(after.subset.positive(), after, num_steps)
        return state, Info(state.seen.kl, done)

    def _direction(self, seen: SubsetMoments) -> Array:
        # Δ = (G + τI)⁻¹ Cov_w[f, r]
        regularised = seen.gram + self.ridge * np.eye(seen.subset.size)
        return np.asarray(np.linalg.solve(regularised, -seen.gradient), dtype=np.float64)

    def _shortened(
        self,
        rng: Rng,
        problem: Problem,
        before: SubsetMoments,
        direction: Array,
        after: SubsetMoments,
    ) -> SubsetMoments:
        """The first of the lengths 1, 1/1.5, … at which the slope has fallen and not turned."""
        slope, length = float(before.gradient @ direction), 1.0
        for _ in range(self.max_trials - 1):
            if SHARE_LEFT * slope < float(after.gradient @ direction) < 0.0:
                break
            length /= 1.5
            after = self._moved(rng, problem, before, direction, length)
        return after

    def _moved(
        self, rng: Rng, problem: Problem, before: SubsetMoments, direction: Array, length: float
    ) -> SubsetMoments:
        weights = np.maximum(before.subset.weights + length * direction, 0.0)
        return self._look(rng, problem, before.subset.at(weights), before.location)

    def _look(
        self, rng: Rng, problem: Problem, subset: WeightedPoints, start: Array | None
    ) -> SubsetMoments:
        space = self.geometry.space(rng, problem, subset, start)
        vectors = space.embed(subset.rows)
        total = self.geometry.total(problem, space).element
        residual = total - space.combine(vectors, subset.weights)
        kl = self.geometry.kl(problem, space, residual)
        gradient = -space.project(vectors, residual)
        return SubsetMoments(subset, gradient, space.gram(vectors), space.location, kl)

    def _done(self, before: SubsetMoments, after: SubsetMoments, num_steps: int) -> str | None:
        if after.kl.value <= PRECISION:
            return EXACT
        if not after.norm < SHARE_LEFT * before.norm:
            return f"step {num_steps} improved the gradient's norm by less than a tenth"
        if num_steps >= self.num_steps:
            return f"{num_steps} quasi-Newton steps done"
        return None
