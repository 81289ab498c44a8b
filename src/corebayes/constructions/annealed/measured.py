"""KL(π_w ‖ π) at weighted draws of π_w, in one pass: what no tangent space leaves out."""

from __future__ import annotations

import numpy as np

from corebayes.constructions.annealed.look import Look
from corebayes.constructions.annealed.surrogate import NEGLIGIBLE, Carried
from corebayes.constructions.annealed.view import View
from corebayes.problem import Problem
from corebayes.samplers.kl import MEASURED, Heights, kl_measured
from corebayes.samplers.posterior import Posterior
from corebayes.scan.heights import Heights as RowHeights
from corebayes.tangent.geometry import NEAR
from corebayes.tangent.hermite import HermiteSpace
from corebayes.types import Estimate

# Draws at the least, and values of single rows that they may cost from there to the most.
ENOUGH, POTENTIALS = 40, 24_000_000


def kl_of(view: View, look: Look, pilot: Look) -> Estimate:
    """What the space sees of KL, or what is measured where that is more.

    Polynomials of a degree that is matched say nothing of the next, and the rows that are kept say
    nothing of those far out that are not. Cost: a pass of 40 to 400 potentials a row; none where a
    subsample stands for all rows there too.
    """
    seen, space, geometry = view.kl(look, pilot), look.space, view.geometry()
    if not isinstance(space, HermiteSpace) or look.half_variance > NEAR:
        return seen
    seen = Estimate(look.half_variance, 0.0)
    posterior = Posterior(view.problem.model, look.points.rows, look.points.weights)
    if isinstance(geometry, Carried) and geometry.stands_for(view.problem, space):
        surrogate = geometry.surrogate
        found = kl_measured(posterior, space.gaussian, surrogate.heights, MEASURED)
        if surrogate.noise_beyond(space) <= max(0.5 * found.value, NEGLIGIBLE):
            return max(seen, found)
    number = int(np.clip(POTENTIALS // view.problem.data.num_rows, ENOUGH, MEASURED))
    heights = heights_of(view.problem)
    return max(seen, kl_measured(posterior, space.gaussian, heights, number))


def heights_of(problem: Problem) -> Heights:
    """Σ_n c_n f_n at places, above the first of them. Cost: one pass of N potentials a place."""
    return lambda places: problem.ask(RowHeights(problem.model, places))
