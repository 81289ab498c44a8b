"""KL(π_w ‖ π) at weighted draws of π_w, whatever stands for π."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp

from corebayes.samplers.draws import Draws, systematic
from corebayes.samplers.mixture import mixture_draws
from corebayes.samplers.modes.search import Mode
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.proposal import Component, Proposal
from corebayes.samplers.resampling import MAX_PARETO_K
from corebayes.types import Array, Estimate, Gaussian

# Draws that are weighted, and proposals that fewer are chosen from: they cost the coreset's rows
# only.
MEASURED, PROPOSED = 400, 4000

# Σ_n c_n f_n at places, up to a constant.
Heights = Callable[[Array], Array]


def kl_measured(
    posterior: Posterior,
    fit: Gaussian,
    heights: Heights,
    number: int = MEASURED,
    *,
    unknown: float = 0.0,
) -> Estimate:
    """At draws of π_w, of which `fit` is the Gaussian: many weighted ones of a wider distribution,
    which see its tails, or few that are chosen again in proportion to π_w."""
    # Of its own random numbers: what is built does not depend on what is said of it.
    rng = np.random.default_rng(0)
    if number == MEASURED:
        drawn = weighted_draws(rng, posterior, [Mode(fit, 0.0)])
        if drawn.weights is not None and drawn.pareto_k <= MAX_PARETO_K:
            weights = drawn.weights.ravel()
            return kl_at(posterior, heights, fit.mean, drawn.flat, weights, unknown=unknown)
    draws = _chosen_again(rng, posterior, fit, number)
    return kl_at(posterior, heights, fit.mean, draws, np.ones(number), unknown=unknown)


def _chosen_again(
    rng: np.random.Generator, posterior: Posterior, gaussian: Gaussian, number: int
) -> Array:
    """Levels of a handful of rows make π_w skewed, and the Gaussian's other tail is not its own."""
    proposal = Proposal((Component(gaussian, 1.0),)).widened()
    draws = proposal.draw(rng, PROPOSED)
    with np.errstate(all="ignore"):
        ratios = posterior.finite_log_density(draws) - proposal.log_density(draws)
    return draws[systematic(rng, np.exp(ratios - ratios.max()), number)]


def weighted_draws(rng: np.random.Generator, posterior: Posterior, modes: list[Mode]) -> Draws:
    with np.errstate(all="ignore"):
        return mixture_draws(rng, posterior, MEASURED, modes)


def kl_at(
    posterior: Posterior,
    heights: Heights,
    place: Array,
    draws: Array,
    weights: Array,
    *,
    unknown: float = 0.0,
) -> Estimate:
    """KL(π_w ‖ π) = log E_w[e^r] − E_w[r] at weighted draws, r compared with that of a place;
    `unknown` where r is finite at none of them."""
    places = np.concatenate([place[None], draws])
    with np.errstate(all="ignore"):
        ours = posterior.model.sum_potentials(places, posterior.rows, posterior.weights)
        ratios = heights(places) - ours
    # A draw or two may lie where all rows overflow.
    known = np.isfinite(ratios[1:]) & (weights > 0.0)
    if not np.any(known):
        return Estimate(unknown, 0.0)
    ratios, weights = ratios[1:][known], weights[known] / weights[known].sum()
    # About their mean, or a KL of 1e-8 is lost beside a log-likelihood of millions.
    ratios = ratios - weights @ ratios
    kl = float(logsumexp(ratios, b=weights) - weights @ ratios)
    # To second order it is the mean of these.
    halves = 0.5 * np.square(ratios)
    return Estimate(kl, float(np.sqrt(np.square(weights) @ np.square(halves - weights @ halves))))
