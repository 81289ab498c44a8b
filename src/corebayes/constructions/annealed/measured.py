"""KL(π_w ‖ π) at weighted draws of π_w, in one pass: what no tangent space leaves out."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from corebayes.constructions.annealed.look import Look
from corebayes.constructions.annealed.view import View
from corebayes.samplers.draws import Draws, systematic
from corebayes.samplers.mixture import mixture_draws
from corebayes.samplers.mode_search import Mode
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.proposal import Component, Proposal
from corebayes.samplers.resampling import MAX_PARETO_K
from corebayes.scan.heights import Heights
from corebayes.tangent.geometry import NEAR
from corebayes.tangent.hermite import UNSEEN, HermiteSpace
from corebayes.types import Array, Estimate, Gaussian, WeightedPoints

# Draws, enough to know KL to a fifth or so; and rows up to which more of them cost next to nothing.
ENOUGH, MEASURED, FEW_ROWS = 40, 400, 20_000
# Proposals that draws are chosen from: they cost the coreset's rows only.
PROPOSED = 4000
# Nats of the next degree that are worth a pass.
NOTABLE = 2e-5


def kl_of(view: View, look: Look, pilot: Look) -> Estimate:
    """What the space sees of KL, and what is left beyond it where that may be more.

    Polynomials of a degree that is matched say nothing of the next. Where few rows are all there
    are, that is measured; where many are, it is an estimate for rows that are unlike each other,
    which is too much for the rows of rare levels: where it counts, it is measured as well.
    Cost: 400·N potentials of few rows, 40·N where the estimate is notable.
    """
    seen, space = view.kl(look, pilot), look.space
    if not isinstance(space, HermiteSpace) or look.half_variance > NEAR:
        return seen
    if space.order < UNSEEN:
        beyond = space.beyond(look.points)
        if beyond > max(NOTABLE, 0.5 * seen.value):
            return Estimate(_measured(view, look, space, ENOUGH) or seen.value, 0.0)
        return seen
    if view.problem.data.num_rows > FEW_ROWS:
        return seen
    found = _measured(view, look, space, MEASURED, tails=True)
    return seen if found is None else seen._replace(value=max(seen.value, found))


def _measured(
    view: View, look: Look, space: HermiteSpace, number: int, *, tails: bool = False
) -> float | None:
    """At draws of the Gaussian that π_w is taken for, chosen again in proportion to π_w, or, where
    its `tails` count, of a wider one weighted by π_w; None where that does not cover it."""
    # Of its own random numbers: what is built does not depend on what is said of it.
    rng = np.random.default_rng(0)
    posterior = Posterior(view.problem.model, look.points.rows, look.points.weights)
    if not tails:
        draws = _chosen_again(rng, posterior, space.gaussian, number)
        return kl_at(view, look.points, space.location, draws, np.ones(number))
    drawn = weighted_draws(rng, posterior, [Mode(space.gaussian, 0.0)])
    if drawn.weights is None or drawn.pareto_k > MAX_PARETO_K:
        return None
    return kl_at(view, look.points, space.location, drawn.flat, drawn.weights.ravel())


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


def kl_at(view: View, points: WeightedPoints, place: Array, draws: Array, weights: Array) -> float:
    """KL(π_w ‖ π) = log E_w[e^r] − E_w[r] at weighted draws, r compared with that of a place.

    Cost: one pass of N potentials a draw.
    """
    model, places = view.problem.model, np.concatenate([place[None], draws])
    with np.errstate(all="ignore"):
        ours = model.sum_potentials(places, points.rows, points.weights)
        ratios = view.problem.ask(Heights(model, places)) - ours
    # A draw or two may lie where all rows overflow.
    known = np.isfinite(ratios[1:]) & (weights > 0.0)
    if not np.any(known):
        return 0.0
    ratios, weights = ratios[1:][known], weights[known] / weights[known].sum()
    return float(logsumexp(ratios, b=weights) - weights @ ratios)
