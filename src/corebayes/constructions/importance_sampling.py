"""Importance sampling: rows drawn in proportion to how much their potentials vary under π̂.

    p_n = c_n σ_n / σ,   σ_n = ‖g_n‖ = sd_π̂ f_n,  σ = Σ_n c_n σ_n,
    K ~ Multinomial(M, p),   w_n = c_n K_n / (M p_n) = K_n σ / (M σ_n)

(Campbell and Broderick 2019, "Automated scalable Bayesian inference via Hilbert coresets"). The
weighted potentials are unbiased for Σ_n c_n f_n with the least expected error of all such p. Yet KL
falls only like N/M, as for every coreset of independently drawn rows (Campbell 2024, Corollary
4.1), unless their weights are solved for: `refit=True`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from corebayes.constructions.construction import Construction, Info, Style, no_direction
from corebayes.constructions.hilbert import UNDER_WEIGHTING, HilbertTarget
from corebayes.problem import Problem
from corebayes.scan.every_row import Norms, joined
from corebayes.tangent.weighting import FullPosterior, Weighting
from corebayes.types import Rng, WeightedPoints


class State(NamedTuple):
    points: WeightedPoints
    target: HilbertTarget
    size: int


@dataclass(frozen=True, kw_only=True)
class ImportanceSampling(Construction):
    """M draws with replacement. Cost: one pass for b, one for N norms."""

    style = Style("#333333", "v", "--")

    weighting: Weighting = field(default_factory=FullPosterior)
    """The distribution π̂ under which potentials vary."""
    refit: bool = False
    """Whether the weights are the nonnegative least squares on the rows drawn."""

    def init(self, rng: Rng, problem: Problem, size: int | None) -> State:
        size = self.require(size)
        return State(problem.no_points(), HilbertTarget.of(rng, problem, self.weighting), size)

    def step(self, rng: Rng, problem: Problem, state: State) -> tuple[State, Info]:
        target, size = state.target, state.size
        running = np.cumsum(joined(target.ask(problem, Norms(target.space))))
        if running[-1] <= 0.0:
            raise no_direction(UNDER_WEIGHTING)
        positions = rng.uniform(0.0, running[-1], size=size)
        drawn, times = np.unique(np.searchsorted(running, positions, "right"), return_counts=True)
        points = problem.points(drawn)
        norms = np.sqrt(target.space.squared_norms(target.space.embed(points.rows)))
        # w_n = K_n σ / (M σ_n)
        points = points.at(times * running[-1] / (size * norms))
        if self.refit:
            points = target.refit(points)
        kl = target.kl(problem, target.residual(points))
        return State(points, target, size), Info(kl, f"all {size} draws taken")
