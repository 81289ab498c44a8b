"""Derivatives by central differences of fourth order, all points in one call.

For a function of many draws at once, (S, d) to (S,). Abramowitz and Stegun 25.3.6 and 25.3.24.
The steps balance truncation (h⁴) against rounding: about 1e-12 of the function's size is lost in
a gradient, about 1e-10 in a Hessian. They suit parameters of which a change of one is large.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from corebayes.types import Array

Function = Callable[[Array], Array]

FIRST_STEP = float(np.finfo(np.float64).eps ** 0.2)
SECOND_STEP = float(np.finfo(np.float64).eps ** (1.0 / 6.0))


def difference_gradient(function: Function, theta: Array) -> Array:
    """∇ function(θ), from 4·d points."""
    steps, axes = _steps(theta, FIRST_STEP), np.eye(theta.size)
    directions = steps[:, None] * axes
    one_up, one_down, two_up, two_down = _around(function, theta, directions)
    # f' = (8 (f₊₁ − f₋₁) − (f₊₂ − f₋₂)) / 12h
    return (8.0 * (one_up - one_down) - (two_up - two_down)) / (12.0 * steps)


def difference_hessian(function: Function, theta: Array) -> Array:
    """∇² function(θ), from 2·d·(d + 1) + 1 points along axes and diagonals of pairs of them."""
    dim = theta.size
    first, second = np.triu_indices(dim, 1)
    steps, axes = _steps(theta, SECOND_STEP), np.eye(dim)
    directions = np.concatenate([axes, axes[first] + axes[second]]) * steps
    one_up, one_down, two_up, two_down = _around(function, theta, directions)
    here = function(theta[None, :])[0]
    # uᵀHu = (16 (f₊₁ + f₋₁) − (f₊₂ + f₋₂) − 30 f₀) / 12
    curvature = (16.0 * (one_up + one_down) - (two_up + two_down) - 30.0 * here) / 12.0
    scaled = np.diag(curvature[:dim])
    # e_iᵀHe_j = ½ ((e_i + e_j)ᵀH(e_i + e_j) − e_iᵀHe_i − e_jᵀHe_j)
    mixed = 0.5 * (curvature[dim:] - curvature[first] - curvature[second])
    scaled[first, second] = scaled[second, first] = mixed
    return scaled / np.outer(steps, steps)


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
