"""The modes of π_w and of π: the one error that draws of π_w themselves cannot show.

Importance ratios are known only where draws fell. A mode of π elsewhere, or of π_w that no chain
found, leaves them looking perfect. So particles are annealed from the prior to π_w, and to the
posterior of a subsample of all rows, which stand for the others and have among them those that say
most of places far away (`samplers/modes/telling.py`); from the particles of every temperature, and
from the highest of many draws of the prior (`samplers/modes/high_places.py`) and the places that
single rows make high (`samplers/modes/holes.py`), Newton's method climbs to the modes of both. A
mode of the subsample that is also reached from where π_w lies is one that π_w has. The others race:
on a larger subsample a mode whose mass is below that of the best, by more than the subsample can be
wrong, is left out, and what is still there is climbed to on all rows. Where all modes are known to
lie on a ridge, starts along it stand for particles (`samplers/modes/concave.py`). And π_w may be no
distribution, where a row counts often enough to make it rise without end
(`samplers/modes/spikes.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from corebayes.coreset import Coreset
from corebayes.models.custom.touching import is_touching
from corebayes.rows import Rows
from corebayes.samplers.laplace import Laplace, asked_posterior, prior_fit
from corebayes.samplers.modes.concave import concave_given
from corebayes.samplers.modes.high_places import with_high_modes
from corebayes.samplers.modes.places import (
    MOST_DIM,
    NUM_ERRORS,
    all_places,
    climbed,
    most_fits,
    race_error,
    spread,
    spread_sample,
)
from corebayes.samplers.modes.search import (
    Mode,
    distinct_modes,
    log_volume,
    modes_of_particles,
    same_mode,
    shares_of,
)
from corebayes.samplers.modes.spikes import Spike, find_spike
from corebayes.samplers.modes.subsamples import RACE_ROWS, Sampled, on_the_way
from corebayes.samplers.modes.tempering import Annealed
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.remembered import Remembered
from corebayes.scan.query import Derivatives
from corebayes.types import Array, Indices, Model, Rng

# A mode with less than this share of the mass does not matter to what is certified.
NEGLIGIBLE = 1e-4
# Fits on all rows, at most.
MOST_FULL_FITS = 12
# Fits from places that all rows make high and no mode explains.
MOST_LEADS = 6


class Found(NamedTuple):
    """The modes of π_w, its particles, and the modes of π that π_w does not have."""

    ours: list[Mode]
    annealed: Annealed | None
    lost: list[Mode]
    silent: str | None = None
    """The column of a rare value that says nothing at any place that was looked at."""
    spike: Spike | None = None
    """Where the mass of π_w rises without an end."""
    ran_away: bool = False
    """Whether no particles of a subsample could be had."""
    on_a_ridge: bool = False
    """Whether modes can only be along a ridge that was walked, so that no particles are needed."""

    def unseen(self, model: Model) -> str | None:
        """Why there may be modes that were not found."""
        if self.silent is not None:
            return (
                f"a row has a value in {self.silent} that is far from all others, and at no place "
                "that was looked at does it matter (if the model does not use the column, build "
                "without it)"
            )
        if self.on_a_ridge or (self.annealed is not None and not self.ran_away):
            return None
        if model.dim > MOST_DIM:
            return f"particles cannot be annealed in {model.dim} dimensions ({MOST_DIM} at most)"
        whose = "π_w" if self.annealed is None else "a subsample of all rows"
        return (
            f"particles cannot be annealed from the prior to the posterior of {whose}: its density "
            "is not finite at most places that the prior allows, or rises without end"
        )


def search(rng: Rng, coreset: Coreset, rows: Rows) -> Found:
    """Cost: a pass of some 120 to 400 potentials a row, a thousand particles on M and on some 700
    rows, or where there is a ridge a pass of a dozen jets a row instead, and Newton fits of both;
    passes of N·d² flops only where a mode of these is none of π_w's."""
    posterior, most = Posterior.of(coreset), most_fits(coreset.model)
    given, warm = _ridge(rng, posterior, rows)
    annealed, starts = spread(rng, posterior, given)
    ours = modes_of_particles(posterior, starts, most=most)
    warm = warm if annealed is None else np.concatenate(annealed.path)
    anchor = ours[0].fit.mean if ours else starts[0]
    sampled = Sampled(rng, coreset.model, rows, anchor, warm)
    sample, everything, full, full_starts = spread_sample(rng, sampled, given)
    theirs = modes_of_particles(sample, full_starts, most=most)
    places = all_places(rng, sample, full)
    theirs = with_high_modes(sample, places, theirs)
    holes = sampled.holes(sample, places)
    theirs = modes_of_particles(sample, holes.places, known=theirs, most=most)
    # Each of them may lead to a mode of the other that its own particles missed.
    others = np.concatenate([_means(theirs, coreset.model), holes.places])
    ours = modes_of_particles(posterior, others, known=ours, most=most)
    ours = with_high_modes(posterior, all_places(rng, posterior, annealed), ours)
    if not ours:
        return Found([], annealed, [], holes.silent, on_a_ridge=given is not None)
    with np.errstate(all="ignore"):
        heights = sample.finite_log_density(_means(ours, coreset.model))
    spike = find_spike(posterior, ours, int(np.argmax(heights)))
    theirs = modes_of_particles(sample, starts, known=theirs, most=most)
    ours = _heavy(ours, [])
    unknown = _others(theirs, distinct_modes(climbed(sample, ours)))
    if unknown:
        # Where modes are many π_w may have them too, and its own particles led to others.
        ours = modes_of_particles(
            posterior, _means(unknown, coreset.model), known=ours, most=len(unknown)
        )
        ours = _heavy(ours, [])
    visited = distinct_modes(climbed(sample, ours))
    unknown = _others(unknown, visited)
    lost = _heavy(unknown, visited) if everything else _raced(sampled, ours, unknown)
    ridge = given is not None
    return Found(ours, annealed, lost, holes.silent, spike, full is None and not ridge, ridge)


def _ridge(rng: Rng, posterior: Posterior, rows: Rows) -> tuple[Indices | None, Array | None]:
    """The parameters given which π is concave in all others, if that is known, and places on the
    way from the prior to the mass."""
    fit = Laplace().try_fit(posterior) if is_touching(posterior.model) else None
    given = None if fit is None else concave_given(rng, posterior.model, rows, fit)
    if fit is None or given is None:
        return None, None
    return given, on_the_way(rng, prior_fit(posterior.model, posterior.rows), fit)


def _raced(sampled: Sampled, ours: list[Mode], unknown: list[Mode]) -> list[Mode]:
    """Modes of π, climbed to on all rows, that may have mass beside those that π_w has."""
    leads = sampled.high_places(ours)
    if not ours or not (unknown or len(leads)):
        return []
    model, rows = sampled.model, sampled.rows
    larger, everything = sampled.posterior(RACE_ROWS)
    visited = distinct_modes(climbed(larger, ours))
    racing = distinct_modes(climbed(larger, unknown))
    racing = modes_of_particles(larger, leads, known=racing, most=MOST_LEADS)
    racing = _others(racing, visited)
    if everything:
        return _heavy(racing, visited)
    if not visited:
        return []
    best = max([*visited, *racing], key=lambda mode: mode.log_mass)
    errors = {id(mode): race_error(larger, mode, best) for mode in racing}
    near = [
        mode
        for mode in racing
        if mode.log_mass + NUM_ERRORS * errors[id(mode)] > best.log_mass + np.log(NEGLIGIBLE)
    ]
    if not near:
        return []
    full = [mode for one in ours[:2] if (mode := full_mode(model, rows, one.fit.mean))]
    lost: list[Mode] = []
    for mode in near[:MOST_FULL_FITS]:
        found = full_mode(model, rows, mode.fit.mean)
        if found is not None and not any(same_mode(found, one) for one in full):
            lost = distinct_modes([*lost, found])
            if _heavy(lost, full, 0.05):
                # One that has so much of the mass is enough to know.
                break
    return _heavy(lost, full)


def _others(modes: list[Mode], known: list[Mode]) -> list[Mode]:
    return [mode for mode in modes if not any(same_mode(mode, one) for one in known)]


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
    ask = Remembered(rows.ask)
    fit = asked_posterior(model, ask, start=start, tolerance=1e-3)
    height = float(ask(Derivatives(model, fit.mean)).value)
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
