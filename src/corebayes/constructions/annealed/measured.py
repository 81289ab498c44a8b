"""KL(π_w ‖ π) at weighted draws of π_w, in one pass: what no tangent space leaves out."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from corebayes.constructions.annealed.look import Look
from corebayes.constructions.annealed.view import View
from corebayes.samplers.draws import Draws
from corebayes.samplers.mixture import mixture_draws
from corebayes.samplers.mode_search import Mode
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.resampling import MAX_PARETO_K
from corebayes.scan.heights import Heights
from corebayes.tangent.hermite import UNSEEN, HermiteSpace
from corebayes.types import Array, Estimate, WeightedPoints

# Draws, enough to know KL to a fifth or so; and rows up to which they cost next to nothing.
MEASURED, FEW_ROWS = 400, 20_000


def kl_of(view: View, look: Look, tolerance: float) -> Estimate:
    """What the space sees of KL and, where all of that is matched, what is left of it.

    Polynomials of a degree that is matched say nothing of the next, which few rows of few
    parameters still miss by up to a thousandth of a nat. Cost: 400·N potentials, of few rows only.
    """
    seen = view.kl(look)
    if not (
        isinstance(look.space, HermiteSpace)
        and look.space.order >= UNSEEN
        and look.half_variance <= tolerance
        and view.problem.data.num_rows <= FEW_ROWS
    ):
        return seen
    points = look.points
    posterior = Posterior(view.problem.model, points.rows, points.weights)
    # Of its own random numbers: what is built does not depend on what is said of it.
    drawn = weighted_draws(np.random.default_rng(0), posterior, [Mode(look.space.gaussian, 0.0)])
    if drawn.weights is None or drawn.pareto_k > MAX_PARETO_K:
        return seen
    found = kl_at(view, points, look.space.location, drawn.flat, drawn.weights.ravel())
    return seen._replace(value=max(seen.value, found))


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
