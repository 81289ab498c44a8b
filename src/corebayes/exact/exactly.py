"""Draws of the posterior of all rows and what they took; in closed form where there is one."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from corebayes.coreset import Coreset
from corebayes.exact.residual import Residual
from corebayes.rows import Rows
from corebayes.samplers.exact import is_conjugate
from corebayes.samplers.parts import squared_distances
from corebayes.samplers.posterior import Posterior
from corebayes.scan.query import Statistics
from corebayes.types import Array, Rng

# Up to this autocorrelation time, and this k̂, moves are good enough not to look for better ones.
ENOUGH, MAX_PARETO_K = 3.0, 0.7


@dataclass(frozen=True, eq=False, kw_only=True)
class Exactly:
    """Draws of π and how they were come by."""

    values: Array
    """(chains, draws, d)."""
    residuals: Array
    """r(θ) − r(anchor), (chains, draws)."""
    accepted: Array
    """Whether the chain moved, (chains, draws)."""
    how: str
    residual: Residual
    acceptance: float = 1.0
    pareto_k: float = 0.0
    """k̂ of π over what was proposed."""
    proposed: Array = field(default_factory=lambda: np.empty((0, 0)))
    """Draws of the surrogate whose ratios to π are known, (S, d)."""
    time: float = 1.0
    """The autocorrelation time of chains whose moves are independent, in steps."""
    surrogate: str = "coreset"

    @property
    def good(self) -> bool:
        return self.time <= ENOUGH and self.pareto_k <= MAX_PARETO_K


def closed_form(rng: Rng, coreset: Coreset, rows: Rows, draws: int, chains: int) -> Exactly:
    model = coreset.model
    assert is_conjugate(model)
    fit = model.posterior(rows.ask(Statistics(model)))
    residual = Residual(coreset, rows, fit.mean, num_passes=1)
    # How high π is at its mean takes a pass; everywhere else the Gaussian says it.
    residual.at(fit.mean[None])
    values, posterior = fit.draw(rng, chains * draws), Posterior.of(coreset)
    full = -0.5 * squared_distances(fit, values)
    ours = posterior.log_density(values) - posterior.value(fit.mean)
    return Exactly(
        values=values.reshape(chains, draws, -1),
        residuals=(full - ours).reshape(chains, draws),
        accepted=np.ones((chains, draws)),
        how="independent draws in closed form",
        residual=residual,
    )
