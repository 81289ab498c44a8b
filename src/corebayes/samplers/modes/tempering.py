"""Particles from wide apart to π_w by temperature: draws that start everywhere, and log Z_w.

From draws of a t as wide as the prior, g, through

    π_β ∝ g^{1−β} (π_0 e^{Σ w f})^β,      β = 0 … 1,

each β as far from the last as leaves half of the particles effective (Del Moral, Doucet and Jasra,
"Sequential Monte Carlo samplers", 2006; adaptive steps as in Zhou, Johansen and Aston, 2016). At
each the particles are resampled and moved by Metropolis steps until they have forgotten where they
were: within the clouds that they form (`clouds.py`), and along differences of two of them (ter
Braak 2006), which have the scale of a mode when both are from one, shortened at random for modes
that are narrower than what lies between them. The product of the mean increments is an unbiased
estimate of Z_w, and modes die out only as their mass does: what is there at low β leads to all of
them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import logsumexp

from corebayes.deadline import check_time
from corebayes.samplers.draws import systematic
from corebayes.samplers.laplace import prior_fit
from corebayes.samplers.modes.clouds import Axes, fit_clouds
from corebayes.samplers.parts import Part, squared_distances
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Indices

# Degrees of freedom of the first t, and how much wider than the prior it is.
DEGREES, WIDENING = 5.0, 1.5
# What share of the particles is effective after a step of β.
LEAST_EFFECTIVE, MAX_TEMPERATURES = 0.5, 200
# Moves at each temperature at least, for each parameter, and at most; the correlation with where
# the particles were at which they have moved enough.
LEAST_MOVES, MOVES_EACH, MOST_MOVES, MOST_MEMORY = 8, 2, 40, 0.1
# Orders of magnitude over which steps are shortened.
SHORTEST = 3.0
# Deviations of the prior from which particles do not come back.
FURTHEST = 1e6


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
    """Particles of π_w; None where too few places have a finite density, the way is too long, or
    they run away, since there is no such distribution.

    Cost: ten to forty moves of all particles, M potentials each, for each of some five to fifty
    temperatures.
    """
    prior = prior_fit(posterior.model, posterior.rows)
    wide = Part(prior._replace(factor=WIDENING * prior.factor), DEGREES)
    draws = wide.draw(rng, num_particles)
    with np.errstate(all="ignore"):
        heights = posterior.finite_log_density(draws)
        particles = _Particles(draws, wide.log_density(draws), heights)
        if np.count_nonzero(np.isfinite(heights)) < num_particles // 10:
            return None
        beta, log_evidence = 0.0, 0.0
        temperatures, path, axes = [beta], [draws], Axes.of(posterior.dim)
        while beta < 1.0 and len(path) < MAX_TEMPERATURES:
            check_time()
            _, first, target = particles
            change = np.where(np.isfinite(target), target - first, -np.inf)
            step = _step(change, 1.0 - beta)
            logs = step * change
            log_evidence += float(logsumexp(logs)) - np.log(num_particles)
            chosen = systematic(rng, np.exp(logs - logs.max()), num_particles)
            beta = 1.0 if step >= 1.0 - beta else beta + step
            particles = _mixed(rng, posterior, wide, beta, particles.chosen(chosen), axes)
            if not np.median(squared_distances(prior, particles.draws)) < FURTHEST**2:
                return None
            temperatures.append(beta)
            path.append(particles.draws)
    return Annealed(np.array(temperatures), path, log_evidence) if beta == 1.0 else None


def _step(change: Array, most: float) -> float:
    """The largest step of β that leaves the wanted share of effective particles."""

    def excess(step: float) -> float:
        logs = step * change
        share = np.exp(2.0 * logsumexp(logs) - logsumexp(2.0 * logs)) / change.size
        return float(share) - LEAST_EFFECTIVE

    if excess(most) >= 0.0:
        return most
    # Heights may lie e^50 apart. Where half of them are not finite any step leaves less: then the
    # smallest that counts.
    least = min(most, 0.1 / max(float(np.ptp(change[np.isfinite(change)])), 1e-300))
    if excess(least) <= 0.0:
        return least
    # Here, since it would be a tenth of the time that `import corebayes` takes.
    from scipy.optimize import brentq

    ends = (np.log(least), np.log(most))
    return float(np.exp(brentq(lambda step: excess(np.exp(step)), *ends, xtol=1e-3)))


class _Particles(NamedTuple):
    """Draws, and the logs of g and of π_0 e^{Σ w f} there."""

    draws: Array
    first: Array
    target: Array

    def chosen(self, places: Indices) -> _Particles:
        return _Particles(*(values[places] for values in self))

    def moved_to(
        self,
        rng: Generator,
        posterior: Posterior,
        wide: Part,
        beta: float,
        moved: Array,
        less: Array | float,
    ) -> tuple[_Particles, float]:
        """Each particle moved or not; `less` is what the proposal adds to the log ratios."""
        first, target = wide.log_density(moved), posterior.finite_log_density(moved)
        gain = (1.0 - beta) * (first - self.first) + beta * (target - self.target) + less
        accepted: NDArray[np.bool_] = np.log(rng.uniform(size=len(moved))) < gain
        return _Particles(
            np.where(accepted[:, None], moved, self.draws),
            np.where(accepted, first, self.first),
            np.where(accepted, target, self.target),
        ), float(accepted.mean())


def _mixed(
    rng: Generator, posterior: Posterior, wide: Part, beta: float, particles: _Particles, axes: Axes
) -> _Particles:
    """The particles after moves enough to forget where they were, of both kinds in turn."""
    start = particles.draws
    clouds = fit_clouds(start)
    for step in range(min(LEAST_MOVES + MOVES_EACH * posterior.dim, MOST_MOVES)):
        check_time()
        if clouds is None or step % 3 == 2:
            moved = _differences(rng, particles.draws)
            particles, _ = particles.moved_to(rng, posterior, wide, beta, moved, 0.0)
        else:
            chosen = axes.choose(rng)
            moved = clouds.propose(rng, particles.draws, chosen)
            less = clouds.log_density(particles.draws) - clouds.log_density(moved)
            particles, rate = particles.moved_to(rng, posterior, wide, beta, moved, less)
            axes.learn(chosen, rate)
        if step + 1 >= LEAST_MOVES and _memory(start, particles.draws) < MOST_MEMORY:
            break
    return particles


def _memory(before: Array, after: Array) -> float:
    """The correlation of the particles with where they were, of the middle one of the axes."""
    one, other = before - before.mean(axis=0), after - after.mean(axis=0)
    size = np.sqrt(np.sum(np.square(one), axis=0) * np.sum(np.square(other), axis=0))
    return float(np.median(np.sum(one * other, axis=0) / np.maximum(size, 1e-300)))


def _differences(rng: Generator, draws: Array) -> Array:
    """Each particle moved along the difference of two others."""
    number, dim = draws.shape
    one, other = rng.integers(number, size=(2, number))
    shortened: Array = np.power(10.0, -SHORTEST * np.square(rng.uniform(size=(number, 1))))
    steps: Array = shortened * (draws[one] - draws[other])
    axes, places = rng.integers(dim, size=(number, 1)), np.arange(dim, dtype=np.int64)
    # All coordinates or one of them, so that many parameters do not stand still.
    alone = rng.random((number, 1)) < 0.3
    steps = np.where(alone & np.not_equal(places, axes), 0.0, steps)
    steps *= np.where(alone, 2.4, 2.4 / np.sqrt(2.0 * dim))
    return draws + steps + 1e-9 * steps.std(axis=0) * rng.standard_normal(draws.shape)
