"""Coreset MCMC: weights and chains move together (Chen and Campbell 2024).

Minimises KL(π_w ‖ π) over the weights of M rows taken at random by stochastic gradient descent.
Instead of draws of π_w for every gradient there are K ≥ 2 chains that follow the weights: each
iteration takes one step of every chain with a kernel that leaves π_w invariant, and with g centred
across the chains

    ĝ = −(1/(K − 1)) Σ_k g(θ_k) (b̂(θ_k) − wᵀg(θ_k)),    b̂ = (N/U) Σ g_n over U fresh rows,

which an optimiser takes one step along, keeping w ≥ 0: `Adam`, or `HotDoG` (Chen, Huggins and
Campbell 2024), which needs no learning rate but a hot start: before the weights move, the chains
run until their log density is stationary.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from corebayes.constructions.construction import Construction, Info, Style
from corebayes.constructions.subset import random_subset
from corebayes.deadline import check_time
from corebayes.problem import Problem
from corebayes.samplers.kernel import HitAndRun, Kernel
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.posterior import Posterior
from corebayes.tangent.geometry import scanned_total, subsample
from corebayes.tangent.monte_carlo import MonteCarloSpace
from corebayes.types import Array, Gaussian, Rng, WeightedPoints
from corebayes.weights.hot_dog import HotDoG
from corebayes.weights.optimiser import Optimiser

SCALES = Laplace(tolerance=1e-4)


class State(NamedTuple):
    points: WeightedPoints
    subset: WeightedPoints
    """All rows that may have a weight, zeros among them."""
    chains: Array
    """One draw of every chain, (K, d)."""
    fit: Gaussian
    """A Laplace fit near π_w."""
    optimiser: Any
    num_iterations: int


@dataclass(frozen=True, kw_only=True)
class CoresetMCMC(Construction):
    """A random subset, its weights by gradients from chains that follow them.

    Cost of an iteration: one kernel step (about six densities of M rows for each chain) and
    K·(M + U) potentials. A step of the construction is a batch of iterations.
    """

    style = Style("#999933", "<")
    ranges = {"num_chains": 2, "max_hot_start": 0}  # noqa: RUF012

    update: Optimiser = field(default_factory=lambda: HotDoG(num_steps=25_000))
    """`HotDoG` or `Adam`, with the number of iterations; Adam's rate is about how far a weight
    moves in one, so it should be a small share of N/M."""
    kernel: Kernel = field(default_factory=HitAndRun)
    """Moves the chains: any function (rng, density, chains) ↦ chains that leaves π_w invariant."""
    num_chains: int = 10
    """K; more chains make better gradients, at little cost while they fit in one array."""
    gradient_rows: int | None = None
    """U, rows in the fresh subsample of each iteration. Default: as many as the subset has."""
    batch: int = 100
    """Iterations in a step; the kernel's preconditioner is renewed as often."""
    max_hot_start: int = 20
    """Batches in which the chains may settle before the weights move."""

    def init(self, rng: Rng, problem: Problem, size: int | None) -> State:
        subset = random_subset(rng, problem, self.require(size))
        fit = SCALES.fit(Posterior(problem.model, subset.rows, subset.weights))
        chains = fit.draw(rng, self.num_chains)
        state = State(subset, subset, chains, fit, self.update.begin(subset.weights), 0)
        return state._replace(chains=self._settled(rng, problem, state))

    def step(self, rng: Rng, problem: Problem, state: State) -> tuple[State, Info]:
        subset, chains, optimiser = state.subset, state.chains, state.optimiser
        posterior = Posterior(problem.model, subset.rows, subset.weights)
        fit = SCALES.fit(posterior, state.fit.mean)
        first = state.num_iterations
        last = min(first + self.batch, self.update.num_steps)
        for _ in range(first, last):
            check_time()
            posterior = Posterior(problem.model, subset.rows, subset.weights)
            chains = self.kernel(rng, posterior, fit, chains)
            gradient = self._gradient(rng, problem, subset, chains)
            weights, optimiser = self.update.advance(gradient, subset.weights, optimiser)
            subset = subset.at(np.maximum(weights, 0.0))
        points = subset.positive() if subset.weights.any() else state.points
        done = f"{last:,} iterations done" if last >= self.update.num_steps else None
        return State(points, subset, chains, fit, optimiser, last), Info(kl=None, done=done)

    def _gradient(self, rng: Rng, problem: Problem, subset: WeightedPoints, chains: Array) -> Array:
        space = MonteCarloSpace(problem.model, chains)
        rows = subsample(rng, problem, self.gradient_rows or subset.size, fresh=True)
        vectors = space.embed(subset.rows)
        total = scanned_total(problem, space, rows).element
        missing = total - space.combine(vectors, subset.weights)
        # The space divides by K; K − 1 makes the covariance unbiased.
        return -space.project(vectors, missing) * (len(chains) / (len(chains) - 1))

    def _settled(self, rng: Rng, problem: Problem, state: State) -> Array:
        """Chains run at fixed weights until the log density shows no trend any more."""
        subset = state.subset
        posterior = Posterior(problem.model, subset.rows, subset.weights)
        chains = state.chains
        for _ in range(self.max_hot_start):
            trace = np.empty((self.batch, len(chains)))
            for iteration in range(self.batch):
                check_time()
                chains = self.kernel(rng, posterior, state.fit, chains)
                trace[iteration] = posterior.finite_log_density(chains)
            if _stationary(trace):
                break
        return chains


def _stationary(trace: Array) -> bool:
    """Whether the two halves of a trace (iterations, chains) have means that agree.

    Within a quarter of the spread: what is left of a transient is then below the draws' own.
    """
    early, late = np.array_split(trace, 2)
    return bool(abs(early.mean() - late.mean()) <= 0.25 * trace.std())
