"""Derivatives by central differences of fourth order, all points in one call.

For a function of many draws at once, (S, d) to (S,). Abramowitz and Stegun 25.3.6 and 25.3.24.
The steps balance truncation (h⁴) against rounding: about 1e-12 of the function's size is lost in
a gradient, about 1e-10 in a Hessian. They suit parameters of which a change of one, or of their
own size, is large. Where the function has more shape than that, which differences of second order
that disagree with those of fourth show, the steps along that axis are made shorter.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from corebayes.types import Array

Function = Callable[[Array], Array]

FIRST_STEP = float(np.finfo(np.float64).eps ** 0.2)
SECOND_STEP = float(np.finfo(np.float64).eps ** (1.0 / 6.0))
# Orders that differ by this share, and by more than is lost in rounding, call for steps this much
# shorter, so many times at most.
DISAGREE, ROUNDING, SHORTER, MOST_SHORTER = 0.1, 1e-12, 0.25, 6


def difference_gradient(function: Function, theta: Array) -> Array:
    """∇ function(θ), from 4·d points, as a rule."""
    steps, axes = _steps(theta, FIRST_STEP), np.eye(theta.size)
    shorter = 0
    while True:
        one_up, one_down, two_up, two_down = _around(function, theta, steps[:, None] * axes)
        # h f' = (8 (f₊₁ − f₋₁) − (f₊₂ − f₋₂)) / 12
        rise = (8.0 * (one_up - one_down) - (two_up - two_down)) / 12.0
        bend = np.abs((two_up + two_down) - (one_up + one_down)) / 3.0
        error = np.abs(rise - 0.5 * (one_up - one_down))
        # Near a mode the slope is small, and what it changes by in a step is the measure.
        rough = error > DISAGREE * np.maximum(np.abs(rise), DISAGREE * bend)
        rough &= error > ROUNDING * np.abs(one_up)
        shorter += 1
        if shorter > MOST_SHORTER or not rough.any():
            return rise / steps
        steps = np.where(rough, SHORTER * steps, steps)


def difference_hessian(function: Function, theta: Array) -> Array:
    """∇² function(θ), as a rule from 2·d·(d + 1) + 1 points along axes and diagonals of pairs."""
    dim = theta.size
    first, second = np.triu_indices(dim, 1)
    steps, here = _steps(theta, SECOND_STEP), function(theta[None, :])[0]
    curvature, shorter = _curvature(function, theta, steps, here), 0
    while shorter < MOST_SHORTER:
        fourth, error = curvature
        rough = error[:dim] > DISAGREE * np.abs(fourth[:dim]) + ROUNDING * np.abs(here)
        if not rough.any():
            break
        steps = np.where(rough, SHORTER * steps, steps)
        curvature, shorter = _curvature(function, theta, steps, here), shorter + 1
    along = curvature[0]
    scaled = np.diag(along[:dim])
    # e_iᵀHe_j = ½ ((e_i + e_j)ᵀH(e_i + e_j) − e_iᵀHe_i − e_jᵀHe_j)
    mixed = 0.5 * (along[dim:] - along[first] - along[second])
    scaled[first, second] = scaled[second, first] = mixed
    return scaled / np.outer(steps, steps)


def _curvature(function: Function, theta: Array, steps: Array, here: float) -> tuple[Array, Array]:
    """uᵀHu along axes and diagonals of pairs, and what differences of second order make of it."""
    first, second = np.triu_indices(theta.size, 1)
    axes = np.eye(theta.size)
    directions = np.concatenate([axes, axes[first] + axes[second]]) * steps
    one_up, one_down, two_up, two_down = _around(function, theta, directions)
    # uᵀHu = (16 (f₊₁ + f₋₁) − (f₊₂ + f₋₂) − 30 f₀) / 12
    fourth = (16.0 * (one_up + one_down) - (two_up + two_down) - 30.0 * here) / 12.0
    return fourth, np.abs(fourth - (one_up + one_down - 2.0 * here))


def difference_jacobian(gradient: Callable[[Array], Array], theta: Array) -> Array:
    """∇² from the gradient at 4·d points, made symmetric."""
    steps, axes = _steps(theta, FIRST_STEP), np.eye(theta.size)

    def rows(points: Array) -> Array:
        return np.stack([gradient(point) for point in points])

    one_up, one_down, two_up, two_down = _around(rows, theta, steps[:, None] * axes)
    jacobian = (8.0 * (one_up - one_down) - (two_up - two_down)) / (12.0 * steps[:, None])
    return 0.5 * (jacobian + jacobian.T)


def _steps(theta: Array, relative: float) -> Array:
    return relative * np.maximum(1.0, np.abs(theta))


def _around(function: Function, theta: Array, directions: Array) -> list[Array]:
    """The function one and two steps up and down every direction."""
    points = np.concatenate([theta + move * directions for move in (1.0, -1.0, 2.0, -2.0)])
    return np.split(function(points), 4)
