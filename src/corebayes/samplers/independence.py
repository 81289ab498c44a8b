"""Draws of π_w by independence Metropolis: proposals that do not look at the chain.

With log ratios ℓ(θ) = log π_w(θ) − log q(θ), a chain at θ goes to a proposal θ′ ~ q with
probability min(1, e^{ℓ(θ′) − ℓ(θ)}) and π_w is invariant exactly. As no proposal depends on the
chain, all of them are drawn and weighed in one vectorised call of the model, and the accepting is a
loop over numbers. A chain at θ leaves with the probability

    A(θ) = E_q min(1, e^{ℓ(θ′) − ℓ(θ)}),       τ = E_π [2 / A(θ) − 1]

and τ is about its autocorrelation time, in steps (Liu, "Metropolized independent sampling with
comparisons to rejection sampling and importance sampling", 1996). Both are known from a pilot, and
so is whether q covers π_w: the shape k̂ of the tail of e^ℓ. Every ⌈τ⌉-th state is kept, so draws are
nearly independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.random import Generator
from scipy.special import logsumexp

from corebayes.arguments import check_fields
from corebayes.deadline import check_time
from corebayes.samplers.draws import Draws
from corebayes.samplers.modes.search import Mode, distinct_modes, find_modes, shares_of
from corebayes.samplers.pareto import pareto_k
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.proposal import Component, Proposal
from corebayes.samplers.wide import WideProposal
from corebayes.types import Array, Gaussian, Indices

# Proposals that a mixture is tried on, and how often it is fitted to the moments seen there.
NUM_PILOT, NUM_FITS = 1000, 3
# A mixture is not fitted better where a chain would keep every draw.
CLOSE = 1.2
# Steps before the first draw; chains start from the pilot, which is all but right.
NUM_BURN = 20
# The log of how many times the mean a ratio must be for a chain to be caught there.
LARGE = np.log(8.0)
# Potentials held at once.
VALUES_AT_ONCE = 1 << 22


class Target(Protocol):
    """What proposals are weighed by: a posterior, or one with some parameters integrated out."""

    @property
    def dim(self) -> int: ...

    @property
    def weights(self) -> Array: ...

    def finite_log_density(self, draws: Array) -> Array: ...


class Pilot(NamedTuple):
    """A mixture q and what it is worth, from proposals of it."""

    proposal: Proposal | WideProposal
    draws: Array
    log_ratios: Array
    time: float
    """τ, the autocorrelation time of a chain."""
    pareto_k: float
    """k̂ of the ratios π_w / q."""


@dataclass(frozen=True, kw_only=True)
class Independence:
    """Draws of π_w, proposed around its modes. Cost: about 1000 + ⌈τ⌉·S densities of M potentials.

    The mixture q has Gaussians and t around the modes, refitted to the moments of weighted
    proposals where Laplace's fit is off. `fit` may find no mode; then `draw` raises, and
    `Automatic` goes on with NUTS.
    """

    chains: int = 4
    max_time: float = 10.0
    """The largest τ at which q counts as close to π_w."""
    max_pareto_k: float = 0.6
    num_pilot: int = NUM_PILOT
    """Proposals that a mixture is tried on, or twenty a parameter if that is more."""

    def __post_init__(self) -> None:
        check_fields(self)

    def fit(self, rng: Generator, posterior: Posterior, start: Array | None = None) -> Pilot | None:
        """A mixture around the mode of π_w, or None when there is no mode to be found."""
        starts = [np.zeros(posterior.dim) if start is None else start]
        return self.fit_modes(rng, posterior, distinct_modes(find_modes(posterior, starts)))

    def fit_modes(self, rng: Generator, posterior: Target, modes: list[Mode]) -> Pilot | None:
        """A mixture around these modes."""
        if not modes:
            return None
        fits = [mode.fit for mode in modes]
        first = _around(fits, fits, shares_of(modes))
        best = try_proposal(rng, posterior, first, self.num_pilot)
        for _ in range(NUM_FITS):
            if best.time < CLOSE:
                break
            refitted = _refitted(best, fits)
            if refitted is None:
                break
            other = try_proposal(rng, posterior, refitted, self.num_pilot)
            if not other.time < best.time:
                break
            best = other
        return best

    def covers(self, pilot: Pilot) -> bool:
        """Whether chains of these proposals come to all of π_w that the pilot has seen."""
        return pilot.time <= self.max_time and pilot.pareto_k <= self.max_pareto_k

    def run(self, rng: Generator, posterior: Posterior, pilot: Pilot, num_draws: int) -> Draws:
        """Chains of num_draws / chains draws each, rounded up."""
        thin = max(1, int(np.ceil(min(pilot.time, 10.0 * self.max_time) - 0.1)))
        steps = NUM_BURN + thin * -(-num_draws // self.chains)
        first = rng.choice(len(pilot.draws), size=self.chains, p=_weights(pilot.log_ratios))
        starts = pilot.draws[first]
        # Chains start at the first entries and propose the others.
        visited = np.vstack([starts, pilot.proposal.draw(rng, self.chains * steps)])
        heights = log_densities(posterior, visited)
        log_ratios = heights - pilot.proposal.log_density(visited)
        proposals = self.chains + np.arange(self.chains * steps).reshape(self.chains, steps)
        walks = [_walk(rng, log_ratios, k, mine) for k, mine in enumerate(proposals)]
        places = np.stack([walk.places for walk in walks])
        rates = np.stack([walk.rates for walk in walks])[:, NUM_BURN:]
        kept = places[:, NUM_BURN + thin - 1 :: thin]
        return Draws(
            values=visited[kept],
            location=pilot.proposal.location,
            how=f"independence Metropolis, {self.chains} chains",
            acceptance=float((places == proposals).mean()),
            pareto_k=_tail_shape(log_ratios[self.chains :]),
            stats={
                "lp": heights[kept],
                "acceptance_rate": rates.reshape(*kept.shape, thin).mean(axis=2),
                "diverging": np.zeros(kept.shape, dtype=np.bool_),
            },
        )

    def draw(
        self, rng: Generator, posterior: Posterior, num_draws: int, start: Array | None = None
    ) -> Draws:
        with np.errstate(all="ignore"):
            pilot = self.fit(rng, posterior, start)
            if pilot is None:
                raise ValueError(
                    "Newton's method finds no mode of the coreset posterior to propose draws "
                    'around: draw with sampler="nuts"'
                )
            return self.run(rng, posterior, pilot, num_draws)


def log_densities(posterior: Target, draws: Array) -> Array:
    """log π_w in as few calls as memory allows."""
    step = max(1, VALUES_AT_ONCE // max(1, posterior.weights.size))
    parts: list[Array] = []
    for first in range(0, len(draws), step):
        check_time()
        parts.append(posterior.finite_log_density(draws[first : first + step]))
    return np.concatenate(parts)


def try_proposal(
    rng: Generator,
    posterior: Target,
    proposal: Proposal | WideProposal,
    least: int = NUM_PILOT,
) -> Pilot:
    """What a mixture is worth, from fresh draws of it."""
    number = max(least, 20 * proposal.dim)
    draws = proposal.draw(rng, number)
    log_ratios = log_densities(posterior, draws) - proposal.log_density(draws)
    time = autocorrelation_time(log_ratios)
    shape = _tail_shape(log_ratios) if np.isfinite(time) else np.inf
    return Pilot(proposal, draws, log_ratios, time, shape)


def autocorrelation_time(log_ratios: Array) -> float:
    """τ of a chain with these log π / q of proposals. Cost: a sort.

    A_i = mean_j min(1, w_j / w_i); τ = Σ_i w_i (2 / A_i − 1) / Σ_i w_i.
    """
    top = log_ratios.max()
    if not np.isfinite(top):
        return np.inf
    ordered = np.exp(np.sort(log_ratios) - top)
    ordered = ordered[ordered > 0.0]
    missing, number = log_ratios.size - ordered.size, log_ratios.size
    below = np.cumsum(ordered) - ordered
    at_least = np.arange(number - missing, 0.0, -1.0)
    leaving: Array = (below / ordered + at_least) / number
    return float(np.sum(ordered * (2.0 / leaving - 1.0)) / ordered.sum())


def _around(narrow: list[Gaussian], fits: list[Gaussian], shares: Array) -> Proposal:
    """Gaussians at `narrow` and at `fits`, and a t at `narrow` that bounds the ratios.

    The ratios of a t to a Gaussian spread with the dimension, and less so for a t that is more
    like one.
    """
    # A mode gets at least some of the proposals, since the masses are rough.
    shares = np.maximum(shares, 0.05)
    degrees = max(5.0, float(narrow[0].mean.size))
    parts: list[Component] = []
    for near, fit, share in zip(narrow, fits, shares, strict=True):
        parts.append(Component(near, 0.75 * share))
        parts.append(Component(near, 0.15 * share, degrees))
        if near is not fit:
            parts.append(Component(fit, 0.1 * share))
    return Proposal(tuple(parts))


def _refitted(pilot: Pilot, fits: list[Gaussian]) -> Proposal | None:
    """The mixture with the moments of the weighted proposals, mode by mode; None when too few of
    them count. The fits keep a share."""
    weights = _weights(pilot.log_ratios)
    dim = pilot.draws.shape[1]
    nearest = _nearest(pilot.draws, fits)
    moments: list[Gaussian] = []
    shares: list[float] = []
    for place, fit in enumerate(fits):
        mine = weights * (nearest == place)
        share = float(mine.sum())
        effective = share**2 / max(float(np.sum(np.square(mine))), 1e-300)
        shares.append(share)
        moments.append(fit)
        if effective > 4.0 * dim:
            mean = mine @ pilot.draws / share
            centred = pilot.draws - mean
            covariance = (centred.T * (mine / share)) @ centred
            # As much of Laplace's covariance as there are parameters for draws that count.
            covariance += (fit.factor @ fit.factor.T - covariance) * (dim / (dim + effective))
            moments[-1] = Gaussian(mean, np.linalg.cholesky(covariance))
    if all(moment is fit for moment, fit in zip(moments, fits, strict=True)):
        return None
    return _around(moments, fits, np.array(shares))


def _nearest(draws: Array, fits: list[Gaussian]) -> Indices:
    """The fit in which every draw lies, by density."""
    if len(fits) == 1:
        return np.zeros(len(draws), dtype=np.int64)
    components = tuple(Component(fit, 1.0, 5.0) for fit in fits)
    return np.argmax(Proposal(components).log_parts(draws), axis=0)


def _weights(log_ratios: Array) -> Array:
    """Proposals in proportion to π_w / q, of sum one."""
    weights = np.exp(log_ratios - log_ratios.max())
    return weights / weights.sum()


def _tail_shape(log_ratios: Array) -> float:
    """k̂ of the ratios; zero where none is large: k̂ is the shape of a tail and not its size."""
    if log_ratios.max() - logsumexp(log_ratios) + np.log(log_ratios.size) < LARGE:
        return 0.0
    return pareto_k(np.maximum(log_ratios, log_ratios.max() - 700.0), 1.0)


class _Walk(NamedTuple):
    places: Indices
    """Where the chain is after each step."""
    rates: Array
    """The probability with which each proposal was accepted."""


def _walk(rng: Generator, log_ratios: Array, place: int, proposals: Indices) -> _Walk:
    """From a place on, accept or reject one proposal after another; all are places of ratios."""
    thresholds = -rng.standard_exponential(proposals.size)
    current = float(log_ratios[place])
    places, slopes = list[int](), list[float]()
    # Numbers of Python's own: a loop over them is quicker than one over an array.
    steps = zip(
        proposals.tolist(), log_ratios[proposals].tolist(), thresholds.tolist(), strict=True
    )
    for proposal, ratio, threshold in steps:
        slopes.append(ratio - current)
        if ratio - current > threshold:
            current, place = ratio, proposal
        places.append(place)
    rates = np.exp(np.minimum(np.array(slopes), 0.0))
    return _Walk(np.array(places, dtype=np.int64), rates)
