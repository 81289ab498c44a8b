"""The modes of π_w and of π: the one error that draws of π_w themselves cannot show.

Importance ratios are known only where draws fell. A mode of π elsewhere, or of π_w that no chain
found, leaves them looking perfect. So particles are annealed from the prior to π_w, and to the
posterior of a subsample of all rows, each standing for N/U of them; from the particles of every
temperature Newton's method climbs to the modes of both (`samplers/places.py`). A mode of the
subsample that is also reached from where π_w lies is one that π_w has. The others race: on a larger
subsample a mode whose mass is below that of the best, by more than the subsample can be wrong, is
left out, and what is still there is climbed to on all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from corebayes.coreset import Coreset
from corebayes.rows import Rows
from corebayes.samplers.laplace import asked_posterior
from corebayes.samplers.mode_search import (
    Mode,
    distinct_modes,
    log_volume,
    modes_of_particles,
    same_mode,
    shares_of,
)
from corebayes.samplers.parts import squared_distances
from corebayes.samplers.places import (
    NUM_ERRORS,
    RACE_ROWS,
    climbed,
    most_fits,
    race_error,
    spread,
    subsample,
)
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.tempering import Annealed
from corebayes.scan.query import Derivatives
from corebayes.types import Array, Model, Rng

# A mode with less than this share of the mass does not matter to what is certified.
NEGLIGIBLE = 1e-4
# Nats below the best, fits, and deviations around a mode, of the search for small ones.
DEEP, MOST_SMALL, FLANK = 30.0, 20, 7.0
# Fits on all rows, at most.
MOST_FULL_FITS = 12


class Found(NamedTuple):
    """The modes of π_w, its particles, and the modes of π that π_w does not have."""

    ours: list[Mode]
    annealed: Annealed | None
    lost: list[Mode]


def search(rng: Rng, coreset: Coreset, rows: Rows) -> Found:
    """Cost: a thousand particles on M and on 500 rows, and Newton fits of both; passes of N·d²
    flops only where a mode of the subsample is none of π_w's."""
    posterior, most = Posterior.of(coreset), most_fits(coreset.model)
    annealed, starts = spread(rng, posterior)
    ours = modes_of_particles(posterior, starts, most=most)
    sample, everything = subsample(rng, coreset.model, rows)
    theirs = modes_of_particles(sample, spread(rng, sample)[1], most=most)
    # Each of them may lead to a mode of the other that its own particles missed.
    ours = modes_of_particles(posterior, _means(theirs, coreset.model), known=ours, most=most)
    if not ours:
        return Found([], annealed, [])
    if annealed is not None:
        ours = _small_modes(posterior, annealed, ours)
    ours = [mode for mode, share in zip(ours, shares_of(ours), strict=True) if share > NEGLIGIBLE]
    visited = distinct_modes(climbed(sample, ours))
    theirs = modes_of_particles(sample, starts, known=theirs, most=most)
    unknown = [mode for mode in theirs if not any(same_mode(mode, one) for one in visited)]
    lost = _heavy(unknown, visited) if everything else _raced(rng, coreset, rows, ours, unknown)
    return Found(ours, annealed, lost)


def _small_modes(posterior: Posterior, annealed: Annealed, modes: list[Mode]) -> list[Mode]:
    """With modes of π_w that hold too little for a particle to be left there.

    Where π is as good as zero, even these count: KL has their share times their depth. While it is
    warm they hold more. So from the highest places of all temperatures that are on no flank of a
    mode that is known. Cost: M potentials for each particle, and a few fits.
    """
    warm = np.concatenate(annealed.path)
    with np.errstate(all="ignore"):
        heights = posterior.finite_log_density(warm)
        best = max(posterior.value(mode.fit.mean) for mode in modes)
    warm = warm[np.argsort(-heights)][: np.count_nonzero(heights > best - DEEP)]
    for _ in range(MOST_SMALL):
        for mode in modes:
            if len(warm):
                warm = warm[squared_distances(mode.fit, warm) > FLANK**2]
        if not len(warm):
            break
        modes = modes_of_particles(posterior, warm[:1], known=modes, most=1)
        warm = warm[1:]
    return modes


def _raced(
    rng: Rng, coreset: Coreset, rows: Rows, ours: list[Mode], unknown: list[Mode]
) -> list[Mode]:
    """Modes of π, climbed to on all rows, that may have mass beside those that π_w has."""
    if not unknown or not ours:
        return []
    larger, everything = subsample(rng, coreset.model, rows, RACE_ROWS)
    visited = distinct_modes(climbed(larger, ours))
    racing = distinct_modes(climbed(larger, unknown))
    racing = [mode for mode in racing if not any(same_mode(mode, one) for one in visited)]
    if everything:
        return _heavy(racing, visited)
    if not visited:
        return []
    best = max([*visited, *racing], key=lambda mode: mode.log_mass)
    errors = {id(mode): race_error(larger, rows.num_rows, mode, best) for mode in racing}
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


def _heavy(modes: list[Mode], others: list[Mode], share: float = NEGLIGIBLE) -> list[Mode]:
    """Those of the modes that have more than a share of the mass of all."""
    if not modes:
        return []
    shares = shares_of([*modes, *others])
    return [mode for mode, own in zip(modes, shares, strict=False) if own > share]


def _means(modes: list[Mode], model: Model) -> Array:
    return np.array([mode.fit.mean for mode in modes]).reshape(-1, model.dim)


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
