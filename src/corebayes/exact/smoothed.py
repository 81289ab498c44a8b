"""Pareto-smoothed importance sampling from π_w to π (Vehtari et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from corebayes.coreset import Coreset
from corebayes.exact.cover import coreset_draws
from corebayes.exact.lost import LostModeError, searched
from corebayes.exact.residual import Residual
from corebayes.rows import Rows
from corebayes.sample import variables
from corebayes.samplers.convergence import efficiency
from corebayes.samplers.draws import systematic
from corebayes.samplers.pareto import pareto_k, smooth, tail_length
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Indices, Rng

MAX_PARETO_K = 0.7


@dataclass(frozen=True, eq=False, kw_only=True)
class Smoothed:
    """Draws of π_w and what each of them is worth under π."""

    values: Array
    """(chains, draws, d)."""
    ratios: Array
    """r(θ) − r(anchor), (chains, draws)."""
    log_weights: Array
    """Smoothed, of sum one, (chains, draws)."""
    pareto_k: float
    share: float
    """Effective over actual number of draws, by their autocorrelation."""
    independent: bool
    how: str
    residual: Residual

    @property
    def flat(self) -> Array:
        return self.values.reshape(-1, self.values.shape[-1])

    @property
    def limit(self) -> float:
        """The k̂ above which means of so many draws do not converge."""
        return min(MAX_PARETO_K, 1.0 - 1.0 / np.log10(self.ratios.size))

    @property
    def effective(self) -> float:
        """How many draws of π these are worth."""
        return self.share / float(np.sum(np.exp(2.0 * self.log_weights)))

    def chosen(self, rng: Rng) -> Indices:
        """As many draws as there are, in proportion to their weights, in random order."""
        weights = np.exp(self.log_weights).ravel()
        return rng.permutation(systematic(rng, weights, weights.size))

    def shapes(self, model: Any) -> Any:
        """k̂ of every variable: the heavier of the tails of e^r and of |h − E h| e^r."""
        posterior = variables(model, self.values)
        weights = np.exp(self.log_weights)

        def shape(values: Array) -> float:
            distance = np.abs(values - np.sum(weights * values))
            floor = np.finfo(float).tiny
            tail = self.ratios + np.log(np.maximum(distance, floor))
            tail = np.maximum(tail, tail.max() - 700.0)
            return max(self.pareto_k, pareto_k(tail, self.share))

        def shapes(entries: Any) -> Any:
            values = np.asarray(entries.values, dtype=np.float64)
            places = np.ndindex(*values.shape[2:])
            found = np.array([shape(values[:, :, *place]) for place in places])
            one = entries.isel(chain=0, draw=0, drop=True)
            return one.copy(data=found.reshape(values.shape[2:]))

        return posterior.map(shapes)


def smoothed_draws(rng: Rng, coreset: Coreset, rows: Rows, draws: int, chains: int) -> Smoothed:
    """Draws of π_w, weighted. Cost: one pass of N · chains · draws potentials."""
    number = chains * draws
    if number < 100:
        raise ValueError(f"smoothed weights need at least 100 draws in all, got {number}")
    found = searched(rng, coreset, rows)
    if found is not None and found.lost:
        trouble = 'no weights make up for draws that never come there: use method="surrogate"'
        raise LostModeError.at(found.lost[0], trouble)
    modes = None if found is None else found.ours
    drawn = coreset_draws(rng, Posterior.of(coreset), number, chains, modes)
    values = drawn.equally_weighted(rng, number).reshape(chains, draws, -1)
    residual = Residual(coreset, rows, drawn.location)
    ratios = residual.at(values.reshape(number, -1)).reshape(chains, draws)
    share = efficiency(np.exp(ratios - ratios.max()), independent=drawn.independent)
    weights, shape = smooth(ratios.reshape(1, -1).copy(), tail_length(number, share))
    return Smoothed(
        values=values,
        ratios=ratios,
        log_weights=weights.reshape(chains, draws),
        pareto_k=float(shape[0]),
        share=share,
        independent=drawn.independent,
        how=drawn.how,
        residual=residual,
    )
