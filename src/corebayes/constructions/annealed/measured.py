"""KL(π_w ‖ π) at weighted draws of π_w, in one pass: what no tangent space leaves out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp

from corebayes.constructions.annealed.look import Look
from corebayes.constructions.annealed.surrogate import NEGLIGIBLE, Carried
from corebayes.constructions.annealed.view import View
from corebayes.problem import Problem
from corebayes.samplers.draws import Draws, systematic
from corebayes.samplers.mixture import mixture_draws
from corebayes.samplers.mode_search import Mode
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.proposal import Component, Proposal
from corebayes.samplers.resampling import MAX_PARETO_K
from corebayes.scan.heights import Heights as RowHeights
from corebayes.tangent.geometry import NEAR
from corebayes.tangent.hermite import HermiteSpace
from corebayes.types import Array, Estimate, Gaussian

# Draws at the least and at the most, and values of single rows that they may cost in between.
ENOUGH, MEASURED, POTENTIALS = 40, 400, 24_000_000
# Proposals that draws are chosen from: they cost the coreset's rows only.
PROPOSED = 4000

Heights = Callable[[Array], Array]


def kl_of(view: View, look: Look, pilot: Look) -> Estimate:
    """What the space sees of KL, or what is measured where that is more.

    Polynomials of a degree that is matched say nothing of the next, and the rows that are kept say
    nothing of those far out that are not. Cost: a pass of 40 to 400 potentials a row; none where a
    subsample stands for all rows there too.
    """
    seen, space, geometry = view.kl(look, pilot), look.space, view.geometry()
    if not isinstance(space, HermiteSpace) or look.half_variance > NEAR:
        return seen
    seen, number = Estimate(look.half_variance, 0.0), MEASURED
    if isinstance(geometry, Carried) and geometry.stands_for(view.problem, space):
        surrogate = geometry.surrogate
        found = _measured(view, look, space, surrogate.heights, number)
        if surrogate.noise_beyond(space) <= max(0.5 * found.value, NEGLIGIBLE):
            return max(seen, found)
    number = int(np.clip(POTENTIALS // view.problem.data.num_rows, ENOUGH, MEASURED))
    return max(seen, _measured(view, look, space, heights_of(view.problem), number))


def _measured(
    view: View, look: Look, space: HermiteSpace, heights: Heights, number: int
) -> Estimate:
    """At draws of π_w: many weighted ones of a wider distribution, which see its tails, or few that
    are chosen again in proportion to π_w."""
    # Of its own random numbers: what is built does not depend on what is said of it.
    rng = np.random.default_rng(0)
    posterior = Posterior(view.problem.model, look.points.rows, look.points.weights)
    if number == MEASURED:
        drawn = weighted_draws(rng, posterior, [Mode(space.gaussian, 0.0)])
        if drawn.weights is not None and drawn.pareto_k <= MAX_PARETO_K:
            weights = drawn.weights.ravel()
            return kl_at(posterior, heights, space.location, drawn.flat, weights)
    draws = _chosen_again(rng, posterior, space.gaussian, number)
    return kl_at(posterior, heights, space.location, draws, np.ones(number))


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


def heights_of(problem: Problem) -> Heights:
    """Σ_n c_n f_n at places, above the first of them. Cost: one pass of N potentials a place."""
    return lambda places: problem.ask(RowHeights(problem.model, places))


def kl_at(
    posterior: Posterior, heights: Heights, place: Array, draws: Array, weights: Array
) -> Estimate:
    """KL(π_w ‖ π) = log E_w[e^r] − E_w[r] at weighted draws, r compared with that of a place."""
    places = np.concatenate([place[None], draws])
    with np.errstate(all="ignore"):
        ours = posterior.model.sum_potentials(places, posterior.rows, posterior.weights)
        ratios = heights(places) - ours
    # A draw or two may lie where all rows overflow.
    known = np.isfinite(ratios[1:]) & (weights > 0.0)
    if not np.any(known):
        return Estimate(0.0, 0.0)
    ratios, weights = ratios[1:][known], weights[known] / weights[known].sum()
    # About their mean, or a KL of 1e-8 is lost beside a log-likelihood of millions.
    ratios = ratios - weights @ ratios
    kl = float(logsumexp(ratios, b=weights) - weights @ ratios)
    # To second order it is the mean of these.
    halves = 0.5 * np.square(ratios)
    return Estimate(kl, float(np.sqrt(np.square(weights) @ np.square(halves - weights @ halves))))
