"""The modes of π_w and of π: the one error that draws of π_w themselves cannot show.

Importance ratios are known only where draws fell. A mode of π elsewhere, or of π_w that no chain
found, leaves them looking perfect. So particles are annealed from the prior to π_w, and to the
posterior of a subsample of all rows, each standing for N/U of them; from the particles of every
temperature Newton's method climbs to the modes of both. A mode of the subsample that is also reached
from where π_w lies is one that π_w has. The others race: on a larger subsample a mode whose mass is
below that of the best, by more than the subsample can be wrong, is left out, and what is still there
is climbed to on all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from corebayes.coreset import Coreset
from corebayes.rows import Rows
from corebayes.samplers.laplace import asked_posterior, prior_fit
from corebayes.samplers.mode_search import (
    Mode,
    distinct_modes,
    find_mode,
    log_volume,
    modes_of_particles,
    same_mode,
    shares_of,
)
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.tempering import Annealed, anneal
from corebayes.scan.query import Derivatives
from corebayes.types import Array, Model, Rng

# Particles, and the parameters beyond which they are too few to find anything: then starts are
# draws of the prior.
NUM_PARTICLES, MOST_DIM = 1000, 20
# Rows of the subsample that is annealed (all rows, if they are no more than the second), and of the
# one on which its modes race.
SUBSAMPLE_ROWS, ALL_ROWS, RACE_ROWS = 500, 1000, 10_000
# Starts taken from the temperatures above the last, and from the prior.
WARM_STARTS, PRIOR_STARTS = 40, 24
# A mode with less than this share of the mass does not matter to what is certified.
NEGLIGIBLE = 1e-4
# Subsamples may be wrong by this many standard errors; and the fits on all rows at most.
NUM_ERRORS, MOST_FULL_FITS = 4.0, 12


class Found(NamedTuple):
    """The modes of π_w, its particles, and the modes of π that π_w does not have."""

    ours: list[Mode]
    annealed: Annealed | None
    lost: list[Mode]


def search(rng: Rng, coreset: Coreset, rows: Rows) -> Found:
    """Cost: a thousand particles on M and on 500 rows, and Newton fits of both; passes of N·d²
    flops only where a mode of the subsample is none of π_w's."""
    posterior = Posterior.of(coreset)
    annealed, starts = spread(rng, posterior)
    ours = modes_of_particles(posterior, starts)
    sample, everything = subsample(rng, coreset.model, rows)
    theirs = list(modes_of_particles(sample, spread(rng, sample)[1]))
    # Each of them may lead to a mode of the other that its own particles missed.
    ours = modes_of_particles(posterior, _means(theirs), known=ours)
    ours = [mode for mode, share in zip(ours, shares_of(ours), strict=True) if share > NEGLIGIBLE]
    visited = distinct_modes(_climbed(sample, ours))
    theirs = modes_of_particles(sample, starts, known=theirs, most=WARM_STARTS)
    unknown = [mode for mode in theirs if not any(same_mode(mode, one) for one in visited)]
    if everything:
        lost = _heavy(unknown, visited)
    else:
        lost = _raced(rng, coreset, rows, ours, unknown)
    return Found(ours, annealed, lost)


def spread(rng: Rng, posterior: Posterior) -> tuple[Annealed | None, Array]:
    """Annealed particles, if they can be had, and where to start from, the likeliest first."""
    wide = prior_fit(posterior.model, posterior.rows).draw(rng, PRIOR_STARTS)
    annealed = anneal(rng, posterior, NUM_PARTICLES) if posterior.dim <= MOST_DIM else None
    if annealed is None:
        return None, wide
    warm = np.concatenate(annealed.path[:-1])
    warm = warm[rng.choice(len(warm), size=min(WARM_STARTS, len(warm)), replace=False)]
    return annealed, np.concatenate([annealed.particles, warm, wide])


def subsample(rng: Rng, model: Model, rows: Rows, number: int = 0) -> tuple[Posterior, bool]:
    """The posterior of a subsample that stands for all rows, and whether it is all of them."""
    number = number or SUBSAMPLE_ROWS
    if rows.num_rows <= max(number, ALL_ROWS):
        block = rows.take(np.arange(rows.num_rows))
        return Posterior(model, block, block.multiplicity()), True
    block = rows.take(rows.some(rng, number))
    counts = block.multiplicity()
    scale = rows.total_count / max(float(counts.sum()), 1.0)
    return Posterior(model, block, counts * scale), False


def _raced(
    rng: Rng, coreset: Coreset, rows: Rows, ours: list[Mode], unknown: list[Mode]
) -> list[Mode]:
    """Modes of π, climbed to on all rows, that may have mass beside those that π_w has."""
    if not unknown or not ours:
        return []
    larger, everything = subsample(rng, coreset.model, rows, RACE_ROWS)
    visited = distinct_modes(_climbed(larger, ours))
    racing = distinct_modes(_climbed(larger, unknown))
    racing = [mode for mode in racing if not any(same_mode(mode, one) for one in visited)]
    if everything:
        return _heavy(racing, visited)
    if not visited:
        return []
    best = max([*visited, *racing], key=lambda mode: mode.log_mass)
    errors = {id(mode): _error(larger, rows.num_rows, mode, best) for mode in racing}
    near = [
        mode
        for mode in racing
        if mode.log_mass + NUM_ERRORS * errors[id(mode)] > best.log_mass + np.log(NEGLIGIBLE)
    ]
    if not near:
        return []
    full = [mode for one in ours[:2] if (mode := full_mode(coreset.model, rows, one.fit.mean))]
    lost: list[Mode] = []
    for mode in near[:MOST_FULL_FITS]:
        found = full_mode(coreset.model, rows, mode.fit.mean)
        if found is not None and not any(same_mode(found, one) for one in full):
            lost = distinct_modes([*lost, found])
            if _heavy(lost, full, 0.05):
                # One that has so much of the mass is enough to know.
                break
    return _heavy(lost, full)


def _error(posterior: Posterior, num_rows: int, one: Mode, other: Mode) -> float:
    """The standard error of a difference in log mass that a subsample shows."""
    places = np.stack([one.fit.mean, other.fit.mean])
    potentials = posterior.model.potentials(places, posterior.rows)
    # Σ w (f − f') of U rows at random, of which each stands for w
    terms = posterior.weights * (potentials[:, 0] - potentials[:, 1])
    number = terms.size
    return float(np.std(terms) * np.sqrt(number * (1.0 - number / num_rows)))


def _climbed(posterior: Posterior, modes: list[Mode]) -> list[Mode]:
    return [mode for one in modes if (mode := find_mode(posterior, one.fit.mean)) is not None]


def _heavy(modes: list[Mode], others: list[Mode], share: float = NEGLIGIBLE) -> list[Mode]:
    """Those of the modes that have more than a share of the mass of all."""
    if not modes:
        return []
    shares = shares_of([*modes, *others])
    return [mode for mode, own in zip(modes, shares, strict=False) if own > share]


def _means(modes: list[Mode]) -> Array:
    return np.array([mode.fit.mean for mode in modes])


def full_mode(model: Model, rows: Rows, start: Array) -> Mode | None:
    """The mode of π that Newton's method reaches. Cost: N·d² flops a pass, some five of them."""
    return _quietly(lambda: _full_mode(model, rows, start))


def _full_mode(model: Model, rows: Rows, start: Array) -> Mode | None:
    fit = asked_posterior(model, rows.ask, start=start, tolerance=1e-3)
    height = rows.ask(Derivatives(model, fit.mean)).value
    height += float(model.log_prior(fit.mean[None, :])[0])
    mass = height + log_volume(fit)
    finite = np.isfinite(mass) and np.all(np.isfinite(fit.mean))
    return Mode(fit, mass) if finite else None


def _quietly(climb: Callable[[], Mode | None]) -> Mode | None:
    """None where there is nowhere to climb to."""
    try:
        with np.errstate(all="ignore"):
            return climb()
    except (FloatingPointError, np.linalg.LinAlgError):
        return None
