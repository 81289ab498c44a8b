"""What to draw from so that π_w and π are both covered, around one mode or several."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np

from corebayes.certify.evidence import Covered, Ratios
from corebayes.certify.search import Found, full_mode, search
from corebayes.coreset import Coreset, nearer, sentence
from corebayes.rows import Rows
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.modes.cover import DEGREES, CoverMixture, Tried, cover, parts_around
from corebayes.samplers.modes.search import (
    Mode,
    distinct_modes,
    log_mass,
    log_volume,
    modes_of_particles,
)
from corebayes.samplers.modes.spikes import NEGLIGIBLE, Spike
from corebayes.samplers.modes.tempering import Annealed
from corebayes.samplers.parts import Part
from corebayes.samplers.posterior import Posterior
from corebayes.scan.heights import log_posterior
from corebayes.types import Gaussian, Rng

# The modes of π_w around which π is fitted too, where the first look is not clear.
MOST_FULL_FITS = 4
# Draws of lost modes, of π around the modes of π_w, and of π_w made ten times as hot.
LOST, FULL, HOT = 0.4, 0.5, 0.1
# Above this many parameters a hot posterior is nowhere near a cold one.
MOST_HOT_DIM = 8
# log Z_w by annealing may be off by this, and so much more for each parameter; a particle is
# uncovered where π_w / q is this many times its mean, and so many of them are a mode.
GAP, GAP_EACH, UNCOVERED, MODE_SHARE = 1.0, 0.05, 20.0, 0.005
# A lost mode with less of the mass is not what is wrong.
LEAST_TOLD = 0.01


class AroundModes(Covered):
    """Draws around the modes of π_w and, unless a first look is clear, around those of π."""

    modes: tuple[Mode, ...] = ()

    def at_least(self, number: int) -> Ratios:
        if len(self.draws) and self.modes:
            model, rows = self.coreset.model, self.rows
            fits = [full_mode(model, rows, mode.fit.mean) for mode in self.modes[:MOST_FULL_FITS]]
            distinct = distinct_modes(mode for mode in fits if mode is not None)
            self.add_parts([part for mode in distinct for part in parts_around(mode.fit)], FULL)
            self.modes = ()
        return super().at_least(number)


class Sources(NamedTuple):
    """What to draw from, or why that cannot be known; and how many modes were found."""

    evidence: AroundModes | None
    num_modes: int | None = None
    trouble: str | None = None
    lost: tuple[Mode, ...] = ()
    unseen: str | None = None
    """Why there may be modes that no search has found."""
    fault: str = "search"
    """What the trouble is with."""

    def what_is_lost(self) -> str:
        """The heaviest mode of π that π_w lacks, in words, if there is one."""
        if self.evidence is None or not self.lost:
            return ""
        shares = [self.evidence.shares_near(mode.fit) for mode in self.lost]
        heaviest = max(range(len(shares)), key=lambda place: shares[place][0])
        full, ours = shares[heaviest]
        if full < LEAST_TOLD:
            return ""
        return (
            f": the full posterior has a mode near θ = ({_place(self.lost[heaviest])}) with about "
            f"{100.0 * full:.3g} % of the mass, where that of the coreset has {100.0 * ours:.2g} %"
        )


def one_mode(rng: Rng, coreset: Coreset, rows: Rows) -> Sources:
    """For a log-concave model; no evidence where no Gaussian or t is like π_w."""
    posterior = Posterior.of(coreset)
    fit = Laplace().try_fit(posterior)
    if fit is None:
        return Sources(None)
    modes = [Mode(fit, log_mass(posterior, fit))]
    covered = cover(rng, posterior, modes, None)
    if covered is None:
        return Sources(None)
    evidence = AroundModes(rng, coreset, rows, covered[0])
    evidence.modes = tuple(modes)
    return Sources(evidence)


def several_modes(rng: Rng, coreset: Coreset, rows: Rows) -> Sources:
    """For any other: the modes of both posteriors, each with its share of the draws."""
    posterior = Posterior.of(coreset)
    found = search(rng, coreset, rows)
    unseen = found.unseen(coreset.model)
    if not found.ours:
        return Sources(None, 0, unseen=unseen)
    number = len(found.ours) + len(found.lost)
    if found.spike is not None:
        words = _spike_words(coreset, rows, found.ours[0], found.spike)
        return Sources(None, number, words, fault="model")
    particles = None if found.annealed is None else found.annealed.particles
    covered = cover(rng, posterior, found.ours, particles)
    if covered is not None and found.annealed is not None:
        ours = _uncovered(posterior, found.annealed, covered)
        if ours:
            ours = distinct_modes([*found.ours, *ours])
            number = len(ours) + len(found.lost)
            covered = cover(rng, posterior, ours, particles)
    if covered is None:
        return Sources(None, number, _lost_words(coreset, found), unseen=unseen)
    proposal, tried = covered
    gap = GAP + GAP_EACH * coreset.model.dim
    if found.annealed is not None and found.annealed.log_evidence > tried.log_evidence + gap:
        return Sources(None, number, _gap_words(found.annealed, tried))
    evidence = AroundModes(rng, coreset, rows, proposal)
    evidence.modes = tuple(found.ours)
    evidence.add_parts([part for mode in found.lost for part in parts_around(mode.fit)], LOST)
    if coreset.model.dim <= MOST_HOT_DIM:
        evidence.add_parts(_hot_parts(found), HOT)
    return Sources(evidence, number, lost=tuple(found.lost), unseen=unseen)


def _uncovered(
    posterior: Posterior, annealed: Annealed, covered: tuple[CoverMixture, Tried]
) -> list[Mode]:
    """Modes that particles of π_w lie in and the proposal leaves out."""
    proposal, tried = covered
    particles = annealed.particles
    with np.errstate(all="ignore"):
        logs = posterior.finite_log_density(particles) - proposal.log_density(particles)
    away = particles[logs > tried.log_evidence + np.log(UNCOVERED)]
    if len(away) <= MODE_SHARE * len(particles):
        return []
    return modes_of_particles(posterior, away, most=10)


def _hot_parts(found: Found) -> list[Part]:
    """π_w at about a tenth of its temperature: t's around its modes, and around all of them."""
    root = np.sqrt(10.0)
    fits = [mode.fit._replace(factor=root * mode.fit.factor) for mode in found.ours[:2]]
    if found.annealed is not None:
        hot = found.annealed.path[int(np.searchsorted(found.annealed.temperatures, 0.1))]
        with suppress(np.linalg.LinAlgError):
            factor = np.linalg.cholesky(np.atleast_2d(np.cov(hot, rowvar=False)))
            fits.append(Gaussian(hot.mean(axis=0), np.asarray(factor, dtype=np.float64)))
    return [Part(fit, DEGREES) for fit in fits]


def _spike_words(coreset: Coreset, rows: Rows, mode: Mode, spike: Spike) -> str:
    """Cost: one pass of a dozen potentials a row."""
    model, way = coreset.model, spike.way
    places = np.vstack([way.stations, mode.fit.mean])
    full = log_posterior(rows.ask, model, places)
    of_all = way._replace(log_masses=full[:-1] + way.volumes)
    enough = full[-1] + log_volume(mode.fit) + 0.5 * model.dim * np.log(2.0 * np.pi)
    words = spike.words(model, coreset.indices, coreset.weights)
    if of_all.peak > enough + np.log(NEGLIGIBLE):
        return (
            f"{words}; and so it is with that of all rows, which is no distribution either. Give "
            f"{model.parameter_names[spike.axis]} a prior that keeps it from that end"
        )
    return (
        f"{words}. That of all rows has no such place: draw from it with cb.correct. Or build "
        "again with a model that keeps the parameter from that end: one scale for all components, "
        "degrees of freedom of at least one, or a prior that has next to nothing there"
    )


def _gap_words(annealed: Annealed, tried: Tried) -> str:
    ratio = np.exp(min(annealed.log_evidence - tried.log_evidence, 50.0))
    return (
        f"annealing from the prior finds {ratio:.2g} times the mass that the modes of π_w which "
        "were found have: one was missed. Try another seed, or a model with one mode"
    )


def _lost_words(coreset: Coreset, found: Found) -> str | None:
    if not found.lost:
        return None
    return (
        f"the full posterior has a mode near θ = ({_place(found.lost[0])}) that the coreset "
        f"posterior does not have. {sentence(nearer(coreset))}, or use a model with one mode"
    )


def _place(mode: Mode) -> str:
    place = ", ".join(f"{value:.3g}" for value in mode.fit.mean[:5])
    return place + (", …" if mode.fit.mean.size > 5 else "")
