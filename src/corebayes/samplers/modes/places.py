"""Where the posterior of all rows may have modes, found on a subsample of them.

A subsample of U rows that stand for N/U each has the modes of all rows, though not where they are,
which is off by √(N/U) deviations, nor with their masses; and it has those that a handful of rows
make, where it has these rows (`subsamples.py`). So particles are annealed to its posterior,
Newton's method climbs from those of every temperature, and the modes are weighed on a larger
subsample, where a difference in log mass has a standard error that shows which may still matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corebayes.rows import Rows
from corebayes.samplers.laplace import prior_fit
from corebayes.samplers.modes.concave import ridge_starts
from corebayes.samplers.modes.high_places import high_places, with_high_modes
from corebayes.samplers.modes.search import (
    Mode,
    distinct_modes,
    find_mode,
    find_modes,
    modes_of_particles,
)
from corebayes.samplers.modes.subsamples import RACE_ROWS, SUBSAMPLE_ROWS, Sampled
from corebayes.samplers.modes.tempering import Annealed, anneal
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Indices, Model, Rng

# Particles, and the parameters beyond which they are too few to find anything: then starts are
# draws of the prior. A build, which has no time for so many moves, looks at fewer.
NUM_PARTICLES, MOST_DIM, MOST_BUILT_DIM = 1000, 40, 20
# Starts taken from the temperatures above the last, and from the prior; fits at most.
WARM_STARTS, PRIOR_STARTS = 40, 24
MOST_FITS, MOST_FITS_OF_MANY = 60, 20
# Parameters that are many.
MANY = 5
# Particles where a value is an integral over effects, of five parameters at most.
FEWER_PARTICLES = 500
# How many times the rows are looked at where particles run away.
LARGER = 4
NO_ROWS: Indices = np.empty(0, dtype=np.int64)
# Nats below the best beyond which a mode is none to look at, and errors of the difference.
DEEP, NUM_ERRORS = 40.0, 4.0


class Places(NamedTuple):
    """Where modes of the posterior of all rows are; none for many parameters."""

    modes: Array
    """The heaviest first, (K, d)."""
    sampled: Sampled | None = None
    """The subsamples of rows that they were found on."""
    carriers: Indices = NO_ROWS
    """Rows that say most of one mode or another, and that no others may stand for."""


def find_places(rng: Rng, model: Model, rows: Rows) -> Places:
    """Cost: a pass of some 120 to 400 potentials a row where not all rows are looked at, particles
    on some 700 rows and Newton fits; at most 10,000 rows are read."""
    none = np.empty((0, model.dim))
    if model.dim > MOST_BUILT_DIM:
        return Places(none)
    sampled = Sampled.from_nothing(rng, model, rows)
    sample, everything, annealed, starts = spread_sample(rng, sampled)
    modes = modes_of_particles(sample, starts, most=most_fits(model))
    places = all_places(rng, sample, annealed)
    modes = with_high_modes(sample, places, modes)
    holes = sampled.holes(sample, places).places
    modes = modes_of_particles(sample, holes, known=modes, most=most_fits(model))
    if not everything and len(modes) > 1:
        sample, everything = sampled.posterior(RACE_ROWS)
        modes = distinct_modes(climbed(sample, modes))
    if not modes:
        return Places(none, sampled)
    errors = [0.0 if everything else race_error(sample, m, modes[0]) for m in modes]
    least = modes[0].log_mass - DEEP
    kept = zip(modes, errors, strict=True)
    near = np.array([m.fit.mean for m, error in kept if m.log_mass + NUM_ERRORS * error > least])
    return Places(near, sampled, sampled.carriers(near))


def all_places(rng: Rng, posterior: Posterior, annealed: Annealed | None) -> Array:
    """Where particles were on their way, and high places."""
    warm = [] if annealed is None else annealed.path
    return np.concatenate([*warm, high_places(rng, posterior)])


def modes_near(sampled: Sampled, places: Array) -> list[Mode]:
    """The modes that these places lead to, on as many rows as modes are weighed on."""
    return distinct_modes(find_modes(sampled.posterior(RACE_ROWS)[0], places))


def most_fits(model: Model) -> int:
    return MOST_FITS if model.dim <= MANY and not _is_dear(model) else MOST_FITS_OF_MANY


def _is_dear(model: Model) -> bool:
    """Whether a potential costs many of single rows."""
    each: int = getattr(model, "potentials_each", 1)
    return each > 1


def spread(
    rng: Rng, posterior: Posterior, given: Indices | None = None
) -> tuple[Annealed | None, Array]:
    """Annealed particles, if they can be had, and where to start from, the likeliest first. Where
    π is known to be concave `given` some parameters, its ridge is all there is to start from."""
    if given is not None:
        return None, ridge_starts(rng, posterior, given)
    wide = prior_fit(posterior.model, posterior.rows).draw(rng, PRIOR_STARTS)
    number = FEWER_PARTICLES if _is_dear(posterior.model) else NUM_PARTICLES
    annealed = anneal(rng, posterior, number) if posterior.dim <= MOST_DIM else None
    if annealed is None:
        return None, wide
    warm = np.concatenate(annealed.path[:-1])
    warm = warm[rng.choice(len(warm), size=min(WARM_STARTS, len(warm)), replace=False)]
    return annealed, np.concatenate([annealed.particles, warm, wide])


def spread_sample(
    rng: Rng, sampled: Sampled, given: Indices | None = None
) -> tuple[Posterior, bool, Annealed | None, Array]:
    """A subsample, whether it has all rows, and the same of its posterior."""
    for number in (SUBSAMPLE_ROWS, LARGER * SUBSAMPLE_ROWS):
        sample, everything = sampled.posterior(number)
        annealed, starts = spread(rng, sample, given)
        # Rows that nearly cancel may leave few of them without a distribution, and all with one.
        if annealed is not None or everything or given is not None:
            break
    return sample, everything, annealed, starts


def climbed(posterior: Posterior, modes: list[Mode]) -> list[Mode]:
    """The modes of this posterior that those of another lead to."""
    return [mode for one in modes if (mode := find_mode(posterior, one.fit.mean)) is not None]


def race_error(posterior: Posterior, one: Mode, other: Mode) -> float:
    """The standard error of a difference in log mass that a subsample shows."""
    places = np.stack([one.fit.mean, other.fit.mean])
    potentials = posterior.model.potentials(places, posterior.rows)
    # Σ w (f − f') of rows at random, each of which stands for w / c others
    terms = posterior.weights * (potentials[:, 0] - potentials[:, 1])
    counts, weights = posterior.rows.multiplicity(), posterior.weights
    missing = np.where(weights > counts, 1.0 - counts / np.maximum(weights, counts + 1e-300), 0.0)
    mean = float(missing @ terms) / max(float(missing.sum()), 1e-300)
    return float(np.sqrt(missing @ np.square(terms - mean)))
