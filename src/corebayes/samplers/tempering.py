"""Particles from wide apart to π_w by temperature: draws that start everywhere, and log Z_w.

From draws of a t as wide as the prior, g, through

    π_β ∝ g^{1−β} (π_0 e^{Σ w f})^β,      β = 0 … 1,

each β as far from the last as leaves half of the particles effective (Del Moral, Doucet and Jasra,
"Sequential Monte Carlo samplers", 2006; adaptive steps as in Zhou, Johansen and Aston, 2016). At
each the particles are resampled and moved by Metropolis steps along differences of two of them (ter
Braak 2006), which have the scale of a mode when both are from one, shortened at random for modes
that are narrower than what lies between them. The product of the mean increments is an unbiased
estimate of Z_w, and modes die out only as their mass does: what is there at low β leads to all of
them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.optimize import brentq
from scipy.special import logsumexp

from corebayes.deadline import check_time
from corebayes.samplers.draws import systematic
from corebayes.samplers.laplace import prior_fit
from corebayes.samplers.parts import Part
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array

# Degrees of freedom of the first t, and how much wider than the prior it is.
DEGREES, WIDENING = 5.0, 1.5
# What share of the particles is effective after a step of β, and the moves at each.
LEAST_EFFECTIVE, NUM_MOVES, MAX_TEMPERATURES = 0.5, 8, 200
# Orders of magnitude over which steps are shortened.
SHORTEST = 3.0


class Annealed(NamedTuple):
    """Particles at each temperature, the last of them draws of π_w, and log Z_w."""

    temperatures: Array
    path: list[Array]
    log_evidence: float
    """log ∫ π_0 e^{Σ w f}, up to what the prior leaves out."""

    @property
    def particles(self) -> Array:
        return self.path[-1]


def anneal(rng: Generator, posterior: Posterior, num_particles: int) -> Annealed | None:
    """Particles of π_w; None where too few places have a finite density.

    Cost: about ten moves of all particles, M potentials each, for each of some five to fifty
    temperatures.
    """
    prior = prior_fit(posterior.model, posterior.rows)
    wide = Part(prior._replace(factor=WIDENING * prior.factor), DEGREES)
    draws = wide.draw(rng, num_particles)
    with np.errstate(all="ignore"):
        first, target = wide.log_density(draws), posterior.finite_log_density(draws)
        if np.count_nonzero(np.isfinite(target)) < num_particles // 10:
            return None
        beta, log_evidence = 0.0, 0.0
        temperatures, path = [beta], [draws]
        while beta < 1.0 and len(path) < MAX_TEMPERATURES:
            check_time()
            change = np.where(np.isfinite(target), target - first, -np.inf)
            step = _step(change, 1.0 - beta)
            logs = step * change
            log_evidence += float(logsumexp(logs)) - np.log(num_particles)
            chosen = systematic(rng, np.exp(logs - logs.max()), num_particles)
            draws, first, target = draws[chosen], first[chosen], target[chosen]
            beta = 1.0 if step >= 1.0 - beta else beta + step
            for _ in range(NUM_MOVES):
                draws, first, target = _move(rng, posterior, wide, beta, (draws, first, target))
            temperatures.append(beta)
            path.append(draws)
    return Annealed(np.array(temperatures), path, log_evidence)


def _step(change: Array, most: float) -> float:
    """The largest step of β that leaves the wanted share of effective particles."""

    def excess(step: float) -> float:
        logs = step * change
        share = np.exp(2.0 * logsumexp(logs) - logsumexp(2.0 * logs)) / change.size
        return float(share) - LEAST_EFFECTIVE

    if excess(most) >= 0.0:
        return most
    # Where half of the density is not finite any step leaves less: then the smallest that counts.
    least = min(1e-12, most)
    if excess(least) <= 0.0:
        spread = float(np.ptp(change[np.isfinite(change)]))
        return min(most, 0.1 / max(spread, 1e-300))
    return float(brentq(excess, least, most, rtol=1e-3))


def _move(
    rng: Generator,
    posterior: Posterior,
    wide: Part,
    beta: float,
    state: tuple[Array, Array, Array],
) -> tuple[Array, Array, Array]:
    """One Metropolis step of every particle along the difference of two others."""
    draws, first, target = state
    number, dim = len(draws), posterior.dim
    one, other = rng.integers(number, size=(2, number))
    shortened: Array = np.power(10.0, -SHORTEST * np.square(rng.uniform(size=(number, 1))))
    steps: Array = shortened * (draws[one] - draws[other])
    axes = rng.integers(dim, size=(number, 1))
    # All coordinates or one of them, so that many parameters do not stand still.
    alone = rng.uniform(size=(number, 1)) < 0.3
    steps = np.where(alone & (np.arange(dim) != axes), 0.0, steps)
    steps *= np.where(alone, 2.4, 2.4 / np.sqrt(2.0 * dim))
    moved = draws + steps + 1e-9 * steps.std(axis=0) * rng.standard_normal(draws.shape)
    new_first, new_target = wide.log_density(moved), posterior.finite_log_density(moved)
    gain = (1.0 - beta) * (new_first - first) + beta * (new_target - target)
    accepted = np.log(rng.uniform(size=number)) < gain
    return (
        np.where(accepted[:, None], moved, draws),
        np.where(accepted, new_first, first),
        np.where(accepted, new_target, target),
    )
