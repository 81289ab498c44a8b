"""What a reserve misses is kept with it as a polynomial, and put right where the posterior goes.

R rows match as many numbers of the data as they are, around the posterior of their time. When later
rows are not like them the posterior moves by standard deviations, to where the degrees that were
not matched are large, and what is lost there grows with a high power of the distance. So the pass
that made the reserve is followed by one for

    r = Σ_n c_n f_n − Σ_i v_i f_i    to degree 4 or so, at N(μ, (κσ)²), wider than the posterior

a few hundred numbers that depend on no choice of rows. Where the posterior has moved to they say
what to add, and the rows of the reserve get the weights that are nearest to their own with it:

    min_δ ½ ‖r − Σ_i δ_i f_i‖² + ½ ε Σ_i δ_i² / v_i,    v + δ ≥ 0,    in the tangent space there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from scipy.linalg import lapack

from corebayes.coreset.missed import HIGHEST, MOST_NUMBERS, Missed, num_numbers
from corebayes.models.families.glm import GLM
from corebayes.problem import Problem
from corebayes.samplers.exact import is_conjugate
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.posterior import Posterior
from corebayes.tangent.geometry import element_of, half_square
from corebayes.tangent.hermite import Hermite, HermiteSpace
from corebayes.tangent.polynomial import element_at, polynomial_of
from corebayes.tangent.ridge import RidgeAlgebra
from corebayes.types import Array, Gaussian, Model, WeightedPoints

# The polynomial is fitted within κ standard deviations, the widest of these at which it is exact
# enough: of the first degree that it has not, no more is left at the posterior than this share of
# what rows miss of the third degree there.
WIDTHS, EXACT_ENOUGH = np.geomspace(1.0, 10.0, 16), 0.01
# So many widths, as a root mean square over the parameters, beyond which it says nothing.
FAR = 4.0
# Flops of a pass of d³ that nobody notices, a tenth of a second or so; products of higher degrees,
# which are one of matrices.
CHEAP, CHEAP_SUMS = 1e9, 5e8
LEAST_ORDER = 3
# What round-off takes of inner products; tries to leave out rows whose weight would be negative.
ROUND_OFF, TRIES = 1e-11, 20


class SeenTotal(NamedTuple):
    """The total of all rows in some space."""

    space: Any
    """A `TangentSpace`."""
    total: Array


def is_plain(model: Model) -> TypeGuard[GLM]:
    """Whether potentials are known as polynomials, to any degree, without draws."""
    return isinstance(model, GLM) and not is_conjugate(model)


def posterior_fit(
    model: Model, points: WeightedPoints, start: Array | None = None
) -> Gaussian | None:
    """Where the posterior of the points lies. Cost: a fit of M·d² flops."""
    return Laplace().try_fit(Posterior(model, points.rows, points.weights), start)


def wide_space(
    model: Model, points: WeightedPoints, num_rows: int, most: float
) -> HermiteSpace | None:
    """The space of the polynomial at the posterior of the points, of as high a degree as a pass
    over so many rows can pay for within `most` flops; None where that is none, or the model is no
    GLM, or conjugate."""
    fit = posterior_fit(model, points) if is_plain(model) else None
    if fit is None or not is_plain(model):
        return None
    dim, order = model.dim, LEAST_ORDER
    if num_numbers(dim, order) > MOST_NUMBERS or num_rows * float(dim) ** order > most:
        return None
    while order < HIGHEST and num_numbers(dim, order + 1) <= MOST_NUMBERS:
        if num_rows * RidgeAlgebra(dim, order + 1).sums > CHEAP_SUMS:
            break
        order += 1
    # LLᵀ = factor factorᵀ without the product, which fewer rows than parameters make singular.
    upper = np.linalg.qr(fit.factor.T)[1]
    # In the order of memory that a file gives back, for the same bits after it was read.
    root = np.ascontiguousarray(upper.T * np.where(np.diag(upper) < 0.0, -1.0, 1.0))
    space = Hermite(order=order).at(model, Gaussian(fit.mean, root))
    return replace(space, factor=_width(space, points) * root)


def _width(space: HermiteSpace, points: WeightedPoints) -> float:
    """The widest κ for a polynomial of the points. Cost: R·d² flops and R derivatives for each.

    Rows of weights v, fitted to lower degrees, are as good as random in the degree k:
    ½ Σ v_i² c_{i,k}² ‖β_i‖^{2k} / k! nats. A Hermite polynomial of κ times the width is a slope
    within it, of one κ²-th of that and twice as much for its steepness.
    """

    def left(width: float, degree: int) -> float:
        wider = replace(space, order=degree, factor=width * space.factor)
        energies = wider.last_degree(wider.embed(points.rows))
        return 2.0 * float(np.square(points.weights) @ energies) / width**2

    most = EXACT_ENOUGH * left(1.0, 3)
    exact = [width for width in WIDTHS[1:] if left(width, space.order + 1) <= most]
    return float(max(exact, default=1.0))


def seen_widely(problem: Problem, points: WeightedPoints, most: float) -> SeenTotal | None:
    """All rows in the wide space at the posterior of the points. Cost: a pass, N·d^order flops."""
    space = wide_space(problem.model, points, problem.data.num_rows, most)
    return None if space is None else SeenTotal(space, widely(problem, space))


def widely(problem: Problem, space: HermiteSpace) -> Array:
    return Hermite(order=space.order).total(problem, space).element


def missed_by(points: WeightedPoints, seen: SeenTotal) -> Missed | None:
    """What the points miss of all rows; None where that is beyond all numbers."""
    space, total = seen
    left = total - element_of(space, points)
    if not np.all(np.isfinite(left)):
        return None
    return polynomial_of(space.gaussian, space.order, left)


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
    if not half_square(left) < half_square(goal):
        return points
    # A row of weight zero would be one that does not count.
    return points.at(np.maximum(weights + change, ROUND_OFF * weights))


def _nearest_change(gram: Array, cross: Array, weights: Array) -> Array:
    """δ with v + δ ≥ 0: rows that would have less than nothing leave, and the others try again."""
    change, free = np.zeros_like(weights), weights > 0.0
    for _ in range(TRIES):
        change = np.where(free, 0.0, -weights)
        roots = np.sqrt(weights[free])
        scaled = roots[:, None] * gram[np.ix_(free, free)] * roots
        ridge = ROUND_OFF * np.trace(scaled) / max(roots.size, 1)
        wanted = cross[free] - gram[np.ix_(free, ~free)] @ change[~free]
        scaled[np.diag_indices_from(scaled)] += ridge
        root, failed = lapack.dpotrf(scaled, lower=1, clean=0)
        if failed:
            break
        change[free] = roots * lapack.dpotrs(root, roots * wanted, lower=1)[0]
        negative = free & (weights + change < 0.0)
        if not negative.any():
            return change
        free &= ~negative
    return np.zeros_like(weights)
