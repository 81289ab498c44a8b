"""KL(π_w ‖ π) at weighted draws of π_w, in one pass: what no tangent space leaves out."""

from __future__ import annotations

from dataclasses import replace

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
from corebayes.tangent.default import affordable_cubes
from corebayes.tangent.geometry import element_of, half_square
from corebayes.tangent.hermite import UNSEEN, HermiteSpace
from corebayes.types import Array, Estimate, WeightedPoints

# Draws, enough to know KL to a fifth or so; and rows up to which they cost next to nothing.
MEASURED, FEW_ROWS = 400, 20_000
# Nats of the next degree that are worth a pass.
NOTABLE = 1e-3


def kl_of(view: View, look: Look, tolerance: float) -> Estimate:
    """What the space sees of KL, and what is left beyond it where that may be more.

    Polynomials of a degree that is matched say nothing of the next. Where few rows are all there
    are, that is measured; where many are, it is an estimate for rows that are unlike each other,
    which is too much for the rows of rare levels: there the next degree is summed over all rows.
    Cost: 400·N potentials of few rows, or N·d³ flops where the estimate is notable.
    """
    seen, space = view.kl(look), look.space
    if not isinstance(space, HermiteSpace):
        return seen
    if space.order < UNSEEN:
        beyond = space.beyond(look.points)
        notable = beyond > max(NOTABLE, 0.5 * seen.value) and affordable_cubes(view.problem)
        return _with_next_degree(view, look, space, seen.value - beyond) if notable else seen
    if look.half_variance > tolerance or view.problem.data.num_rows > FEW_ROWS:
        return seen
    posterior = Posterior(view.problem.model, look.points.rows, look.points.weights)
    # Of its own random numbers: what is built does not depend on what is said of it.
    drawn = weighted_draws(np.random.default_rng(0), posterior, [Mode(space.gaussian, 0.0)])
    if drawn.weights is None or drawn.pareto_k > MAX_PARETO_K:
        return seen
    found = kl_at(view, look.points, space.location, drawn.flat, drawn.weights.ravel())
    return seen._replace(value=max(seen.value, found))


def _with_next_degree(view: View, look: Look, space: HermiteSpace, seen: float) -> Estimate:
    """KL that is seen, and half of the square of what is missing in the next degree."""
    finer = replace(space, order=space.order + 1)
    total = view.geometry().total(view.problem, finer)
    missing = half_square(total.element - element_of(finer, look.points))
    return Estimate(seen + max(missing - look.half_variance, 0.0), 0.0)


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
