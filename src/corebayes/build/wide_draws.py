"""All rows at draws wider than the posterior: what the reserve of a model that is no GLM matches.

A GLM's rows are polynomials, and its reserve matches their higher degrees. Of other models of few
parameters nothing is known but values at draws. Draws of the posterior's own width see little but
quadratics, which later posteriors, somewhere else, have no use for. At N(μ_w, (κσ_w)²) the higher
degrees count, κ^k times as much in degree k, so that rows which match all others there match them
where the posterior goes to. Fewer rows than there are numbers of those degrees match none of them,
least of all the quadratics, which count least there: so κ is as large as the rows are many.
"""

from __future__ import annotations

from math import comb
from typing import Any

from corebayes.build.missed import SeenTotal, is_plain, posterior_fit
from corebayes.models.families.family import Family
from corebayes.models.mixed.regression import MixedRegression
from corebayes.problem import Problem
from corebayes.samplers.exact import is_conjugate
from corebayes.samplers.laplace import pulled_in
from corebayes.samplers.posterior import Posterior
from corebayes.scan.query import BadPotentialError
from corebayes.tangent.default import SKEWED_DIM
from corebayes.tangent.geometry import random_points
from corebayes.tangent.monte_carlo import MonteCarlo, MonteCarloSpace
from corebayes.types import Gaussian, Model, Rng, WeightedPoints

# κ: two or three nights that move the posterior by as many deviations go as far as this, where the
# fourth degree can be matched; where the third can be; and where neither can.
WIDTHS = (3.0, 2.0, 1.0)
# Where the provenance has κ: rows that match all there is are fewer than were asked for.
KEPT_WIDTH = "reserve_width"
# Random rows whose posterior is near that of all; that of few weighted ones may have other modes.
START_ROWS = 2000
# Draws for each row that is to be chosen, and the least.
DRAWS_A_ROW, LEAST_DRAWS = 4, 500
# Values that a default computes at the most, half a second or so.
CHEAP_VALUES = 3e7


def is_seen_at_draws(model: Model) -> bool:
    """Whether a reserve is chosen at wide draws: few parameters, and no groups, which have places
    of their own."""
    structure: Any = getattr(model, "structure", None)
    grouped = structure is not None and bool(structure.terms)
    return not (grouped or is_plain(model) or is_conjugate(model)) and model.dim <= SKEWED_DIM


def is_cheap_at_draws(problem: Problem, size: int) -> bool:
    """Whether a default may spend that pass: on built-in models, of not too many rows."""
    model = problem.model
    built_in = isinstance(model, Family | MixedRegression)
    cheap = problem.data.num_rows * num_draws(size) <= CHEAP_VALUES
    return built_in and is_seen_at_draws(model) and cheap


def width_of(model: Model, size: int) -> float:
    """κ for a reserve of so many rows."""
    cubes, fourth = (comb(model.dim + degree, degree) for degree in (3, 4))
    return WIDTHS[0] if size >= fourth else WIDTHS[1] if size >= cubes else WIDTHS[2]


def kept_width(model: Model, size: int) -> dict[str, float]:
    """For the provenance: how wide a reserve that was to have so many rows was matched."""
    return {KEPT_WIDTH: width_of(model, size)} if is_seen_at_draws(model) else {}


def num_draws(size: int) -> int:
    return max(LEAST_DRAWS, DRAWS_A_ROW * size)


def seen_at_draws(
    rng: Rng, problem: Problem, points: WeightedPoints, size: int
) -> SeenTotal | None:
    """All rows at wide draws around the posterior of the points, for `size` rows to match; None
    where these have no fit, or values there are beyond all numbers. Cost: a pass of N·S values."""
    model = problem.model
    if not is_seen_at_draws(model):
        return None
    fit = _fit_near(rng, problem, points)
    if fit is None:
        return None
    wide = Gaussian(fit.mean, width_of(model, size) * fit.factor)
    draws = wide.draw_matched(rng, num_draws(size))
    # A scale that is hardly known would be drawn where nothing is likely.
    draws = pulled_in(Posterior(model, points.rows, points.weights), wide, draws)
    space = MonteCarloSpace(model, draws, fit.mean)
    try:
        return SeenTotal(space, MonteCarlo(num_draws=len(draws)).total(problem, space).element)
    except BadPotentialError:
        return None


def _fit_near(rng: Rng, problem: Problem, points: WeightedPoints) -> Gaussian | None:
    """Where the posterior of the points lies, of its modes the one that rows at random have too;
    of few rows where that of all lies. Cost: fits of some rows."""
    model, data = problem.model, problem.data
    some = random_points(rng, problem, START_ROWS).positive()
    near = posterior_fit(model, some.scaled(data.total_count / some.weights.sum()))
    if near is None or data.num_rows <= START_ROWS:
        return near
    return posterior_fit(model, points, near.mean)
