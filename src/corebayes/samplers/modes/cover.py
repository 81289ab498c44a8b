"""A mixture that covers a posterior of one or several modes, found by trying.

First a Gaussian and a t around each mode. Where these do not cover π_w, since a mode has another
shape (a ridge, a crescent), around clusters of particles of π_w, twice, the second time around
clusters of better ones: the draws of the first mixture, resampled by their weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import logsumexp

from corebayes.samplers.draws import systematic
from corebayes.samplers.modes.search import Mode, shares_of
from corebayes.samplers.pareto import pareto_k
from corebayes.samplers.parts import Part, draw_parts, log_mixture
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Gaussian

# Proposals at which a mixture is tried, the largest k̂ of its ratios, and what share of them they
# must be worth.
TRIED, MAX_PARETO_K, LEAST_EFFICIENCY = 2000, 0.5, 0.1
# A mode or cluster gets at least this share of the proposals, since its mass is known roughly.
LEAST_SHARE = 0.02
NUM_CLUSTERS, DEGREES = (8, 24), 5.0


class CoverMixture(NamedTuple):
    """Parts and their shares."""

    parts: list[Part]
    shares: Array

    def log_density(self, draws: Array) -> Array:
        return log_mixture(self.parts, self.shares, draws)


class Tried(NamedTuple):
    """How a proposal does on a posterior."""

    draws: Array
    log_weights: Array
    """log π_w / q, not normalised."""
    efficiency: float
    pareto_k: float

    @property
    def covers(self) -> bool:
        return self.efficiency >= LEAST_EFFICIENCY and self.pareto_k <= MAX_PARETO_K

    @property
    def log_evidence(self) -> float:
        return float(logsumexp(self.log_weights)) - float(np.log(self.log_weights.size))


def parts_around(fit: Gaussian) -> list[Part]:
    """A Gaussian, and a t for what is beyond it: the less so the more dimensions there are."""
    return [Part(fit), Part(fit, max(DEGREES, float(fit.mean.size)))]


def around_modes(modes: list[Mode]) -> CoverMixture:
    shares = np.maximum(shares_of(modes), LEAST_SHARE)
    parts = [part for mode in modes for part in parts_around(mode.fit)]
    return CoverMixture(parts, np.repeat(shares / shares.sum(), 2) / 2.0)


def tried(rng: Generator, posterior: Posterior, proposal: CoverMixture) -> Tried:
    """Weighted draws of the proposal. Cost: M potentials for each."""
    counts = np.ceil(TRIED * proposal.shares).astype(int)
    draws = draw_parts(rng, proposal.parts, counts.tolist())
    with np.errstate(all="ignore"):
        logs = posterior.finite_log_density(draws)
    logs = logs - log_mixture(proposal.parts, counts / counts.sum(), draws)
    if not np.isfinite(logs.max()):
        return Tried(draws, logs, 0.0, np.inf)
    share = float(np.exp(2.0 * logsumexp(logs) - logsumexp(2.0 * logs))) / logs.size
    return Tried(draws, logs, share, pareto_k(np.maximum(logs, logs.max() - 700.0), 1.0))


def cover(
    rng: Generator, posterior: Posterior, modes: list[Mode], particles: Array | None
) -> tuple[CoverMixture, Tried] | None:
    """A proposal that covers π_w, and how it did; None where none does."""
    proposal = around_modes(modes)
    found = tried(rng, posterior, proposal)
    for number in NUM_CLUSTERS:
        if found.covers or particles is None:
            break
        clusters = around_clusters(rng, particles, number)
        parts = [*clusters.parts, *proposal.parts]
        shares = np.concatenate([0.8 * clusters.shares, 0.2 * proposal.shares])
        proposal = CoverMixture(parts, shares / shares.sum())
        found = tried(rng, posterior, proposal)
        weights = np.exp(found.log_weights - found.log_weights.max())
        if found.efficiency > 0.0:
            particles = found.draws[systematic(rng, weights, 2 * TRIED)]
    return (proposal, found) if found.covers else None


def around_clusters(rng: Generator, particles: Array, number: int) -> CoverMixture:
    """A Gaussian and a t around each of so many clusters (k-means, in units of deviations)."""
    scale = particles.std(axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    points, dim = particles / scale, particles.shape[1]
    centres = points[_spread_out(rng, points, number)]
    for _ in range(10):
        nearest = _nearest(points, centres)
        centres = np.array(
            [
                points[nearest == k].mean(axis=0) if np.any(nearest == k) else centre
                for k, centre in enumerate(centres)
            ]
        )
    nearest = _nearest(points, centres)
    parts: list[Part] = []
    shares: list[float] = []
    for k in range(len(centres)):
        mine = points[nearest == k]
        if len(mine) <= 2 * dim:
            continue
        covariance: Array = np.atleast_2d(np.cov(mine, rowvar=False))
        covariance += (1e-9 + 1e-4 * float(np.diag(covariance).mean())) * np.eye(dim)
        # Clusters are cut off where they meet.
        factor: Array = 1.2 * scale[:, None] * np.linalg.cholesky(covariance)
        parts.extend(parts_around(Gaussian(mine.mean(axis=0) * scale, factor)))
        shares.extend([len(mine) / len(points)] * 2)
    total = np.maximum(np.array(shares), LEAST_SHARE)
    return CoverMixture(parts, total / total.sum())


def _spread_out(rng: Generator, points: Array, number: int) -> list[int]:
    """Places far from each other: each drawn by its squared distance to those before it."""
    chosen = [int(rng.integers(len(points)))]
    distances = np.sum(np.square(points - points[chosen[0]]), axis=1)
    while len(chosen) < number and distances.sum() > 0.0:
        chosen.append(int(rng.choice(len(points), p=distances / distances.sum())))
        new = np.sum(np.square(points - points[chosen[-1]]), axis=1)
        distances = np.minimum(distances, new)
    return chosen


def _nearest(points: Array, centres: Array) -> Array:
    cross = points @ centres.T
    return np.argmax(cross - 0.5 * np.sum(np.square(centres), axis=1), axis=1)
