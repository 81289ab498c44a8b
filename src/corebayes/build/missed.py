"""What a reserve misses is kept with it as a polynomial, and put right where the posterior goes.

R rows match as many numbers of the data as they are, around the posterior of their time. When later
rows are not like them the posterior moves by standard deviations, to where the degrees that were
not matched are large, and what is lost there grows with a high power of the distance. So the pass
that made the reserve is followed by one for

    r = Σ_n c_n f_n − Σ_i v_i f_i    to degree 4 or so, at N(μ, (3σ)²): wider than the posterior

a few hundred numbers that depend on no choice of rows. Where the posterior has moved to they say
what to add, and the rows of the reserve get the weights that are nearest to their own with it:

    min_δ ½ ‖r − Σ_i δ_i f_i‖² + ½ ε Σ_i δ_i² / v_i,    v + δ ≥ 0,    in the tangent space there.
"""

from __future__ import annotations

from typing import TypeGuard

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from corebayes.coreset.missed import HIGHEST, MOST_NUMBERS, Missed, num_numbers
from corebayes.models.glm import GLM
from corebayes.problem import Problem
from corebayes.samplers.exact import is_conjugate
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.posterior import Posterior
from corebayes.tangent.geometry import element_of, half_square
from corebayes.tangent.hermite import Hermite, HermiteSpace
from corebayes.tangent.polynomial import element_at, polynomial_of
from corebayes.types import Array, Gaussian, Model, WeightedPoints

# Standard deviations of the posterior that the polynomial is fitted within; steps of one or two
# come and go, and what is lost nearby is of a high degree, so next to nothing.
WIDTH = 3.0
# So many of these, as a root mean square over the parameters, beyond which it says nothing.
FAR = 4.0
# Flops of a pass that nobody notices: a tenth of a second or so.
CHEAP = 1e9
LEAST_ORDER = 3
# What round-off takes of inner products; tries to leave out rows whose weight would be negative.
ROUND_OFF, TRIES = 1e-11, 20


def is_plain(model: Model) -> TypeGuard[GLM]:
    """Whether potentials are known as polynomials, to any degree, without draws."""
    return isinstance(model, GLM) and not is_conjugate(model)


def posterior_fit(model: Model, points: WeightedPoints) -> Gaussian | None:
    """Where the posterior of the points lies. Cost: a fit of M·d² flops."""
    return Laplace().try_fit(Posterior(model, points.rows, points.weights))


def wide_space(
    model: Model, fit: Gaussian | None, num_rows: int, most: float
) -> HermiteSpace | None:
    """The space of the polynomial, of as high a degree as a pass over so many rows can pay for
    within `most` flops; None where that is none, or the model is no GLM, or conjugate."""
    if fit is None or not is_plain(model):
        return None
    dim, order = model.dim, LEAST_ORDER
    if num_numbers(dim, order) > MOST_NUMBERS or num_rows * float(dim) ** order > most:
        return None
    while order < HIGHEST and num_numbers(dim, order + 1) <= MOST_NUMBERS:
        if num_rows * float(dim) ** (order + 1) > CHEAP:
            break
        order += 1
    root = np.linalg.cholesky(fit.factor @ fit.factor.T)
    return Hermite(order=order).at(model, Gaussian(fit.mean, WIDTH * root))


def missed_by(points: WeightedPoints, space: HermiteSpace | None, total: Array) -> Missed | None:
    """What the points miss of a total in the wide space; None where that is beyond all numbers."""
    if space is None:
        return None
    left = total - element_of(space, points)
    if not np.all(np.isfinite(left)):
        return None
    return polynomial_of(space.gaussian, space.order, left)


def missed_by_reserve(problem: Problem, points: WeightedPoints, most: float) -> Missed | None:
    """What the points miss of all rows. Cost: a pass of N·d^order flops."""
    fit = posterior_fit(problem.model, points)
    space = wide_space(problem.model, fit, problem.data.num_rows, most)
    if space is None:
        return None
    return missed_by(points, space, Hermite(order=space.order).total(problem, space).element)


def put_right(
    model: GLM, points: WeightedPoints, missed: Missed, there: Gaussian
) -> WeightedPoints:
    """The points at the weights that have what they missed, as it is seen from `there`; as they
    are where that is too far, or nothing is gained. Cost: R³ flops."""
    distance = np.linalg.solve(missed.at.factor, there.mean - missed.at.mean)
    if np.sqrt(np.mean(np.square(distance))) > FAR:
        return points
    space = Hermite(order=missed.order).at(model, there)
    goal = element_at(missed, there, missed.order)
    vectors, weights = space.embed(points.rows), points.weights
    gram, cross = space.gram(vectors), space.project(vectors, goal)
    change = _nearest_change(gram, cross, weights)
    left = goal - space.combine(vectors, change)
    return points.at(weights + change) if half_square(left) < half_square(goal) else points


def _nearest_change(gram: Array, cross: Array, weights: Array) -> Array:
    """δ with v + δ ≥ 0: rows that would have less than nothing leave, and the others try again."""
    change, free = np.zeros_like(weights), weights > 0.0
    for _ in range(TRIES):
        change = np.where(free, 0.0, -weights)
        roots = np.sqrt(weights[free])
        scaled = roots[:, None] * gram[np.ix_(free, free)] * roots
        ridge = ROUND_OFF * np.trace(scaled) / max(roots.size, 1)
        wanted = cross[free] - gram[np.ix_(free, ~free)] @ change[~free]
        factor = cho_factor(scaled + ridge * np.eye(roots.size), lower=True)
        change[free] = roots * cho_solve(factor, roots * wanted)
        negative = free & (weights + change < 0.0)
        if not negative.any():
            return change
        free &= ~negative
    return np.zeros_like(weights)
