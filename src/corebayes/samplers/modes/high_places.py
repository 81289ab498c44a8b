"""Modes that are narrow and high: found by height, where particles go by mass.

While it is warm a narrow mode has next to no mass, and no particle may be left in it when it has
all of it. A potential of a few rows costs nothing, so tens of thousands of draws of the prior are
looked at, and Newton's method climbs from the highest that are on no flank of a mode that is known.
Few rows of large weights can outweigh the prior a dozen of its deviations out, so half of the draws
are of a Cauchy as wide as it. In few dimensions they leave no gap; in many they add little to what
particles find.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from scipy.special import stdtrit

from corebayes.deadline import check_time
from corebayes.samplers.laplace import prior_fit
from corebayes.samplers.modes.search import Mode, modes_of_particles
from corebayes.samplers.parts import Part, squared_distances
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Gaussian

# Potentials that may be spent, and draws at least and at most; how many of them are kept.
MOST_POTENTIALS, LEAST_DRAWS, MOST_DRAWS, KEPT = 4_000_000, 1_000, 200_000, 500
# Potentials at a time, so that they fit in a cache.
AT_ONCE = 2**19
# Of two t, as wide as the prior and a half.
DEGREES, WIDENING = (5.0, 1.0), 1.5
# Nats below the best, fits, and deviations around a mode that are its flank.
DEEP, MOST_FITS, FLANK = 30.0, 20, 7.0


def high_places(rng: Generator, posterior: Posterior) -> Array:
    """The highest of many draws as wide apart as the prior. Cost: 4e6 potentials at most."""
    size = posterior.num_potentials
    number = int(np.clip(MOST_POTENTIALS // size, LEAST_DRAWS, MOST_DRAWS))
    draws = _wide_draws(rng, prior_fit(posterior.model, posterior.rows), number)
    parts = np.array_split(draws, 1 + len(draws) * size // AT_ONCE)
    with np.errstate(all="ignore"):
        heights = np.concatenate([posterior.finite_log_density(part) for part in parts])
    return draws[np.argsort(-heights)[:KEPT]]


def _wide_draws(rng: Generator, prior: Gaussian, number: int) -> Array:
    """Draws of both t around the prior; of one parameter evenly over their quantiles, so that
    chance leaves no gaps."""
    wide = prior._replace(factor=WIDENING * prior.factor)
    half = -(-number // 2)
    if prior.mean.size > 1:
        return np.concatenate([Part(wide, degrees).draw(rng, half) for degrees in DEGREES])
    quantiles = (np.arange(half) + rng.random(half)) / half
    draws = np.concatenate([stdtrit(degrees, quantiles) for degrees in DEGREES])
    return wide.mean + draws[:, None] @ wide.factor.T


def with_high_modes(posterior: Posterior, places: Array, modes: Sequence[Mode]) -> list[Mode]:
    """The modes with those that the highest of the places lead to, the heaviest first.

    Also a mode that holds too little for a particle to be left there may count: where π is as good
    as zero, KL has its share times its depth. Cost: M potentials for each place, and a few fits.
    """
    known = list(modes)
    with np.errstate(all="ignore"):
        heights = posterior.finite_log_density(places)
        best = max((posterior.value(mode.fit.mean) for mode in known), default=heights.max())
    least = max(best, heights.max()) - DEEP
    left = places[np.argsort(-heights)][: np.count_nonzero(heights > least)]
    for _ in range(MOST_FITS):
        check_time()
        for mode in known:
            if len(left):
                left = left[squared_distances(mode.fit, left) > FLANK**2]
        if not len(left):
            break
        known = modes_of_particles(posterior, left[:1], known=known, most=1)
        left = left[1:]
    return known
