"""Safeguarded Newton's method for log densities: the mode and the curvature there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import lapack

from corebayes.deadline import check_time
from corebayes.types import Array, Gaussian

# A rise by a smaller share of the value is none that can be seen.
ROUND_OFF = 1e-16


def newton(
    start: Array,
    slopes: Callable[[Array], tuple[Array, Array]],
    value: Callable[[Array], float],
    *,
    tolerance: float,
    max_steps: int,
) -> Gaussian:
    """N(mode, (−∇²)⁻¹) of a log density given by its `value` and `slopes` (gradient, Hessian).

    Full steps near the mode, where the Newton decrement g·(−H)⁻¹g is small; elsewhere the step
    is halved until the value rises by a share of what the slope promises (Armijo). Where the
    Hessian is not negative definite, its diagonal is raised until it is, so the direction
    always ascends. Stops when the decrement is below `tolerance`, or can no longer fall.
    Cost: d³ flops a step, plus the callbacks.
    """
    theta, last, root = start, np.inf, np.empty((0, 0))
    for _ in range(max_steps):
        check_time()
        gradient, hessian = slopes(theta)
        root, shifted = _cholesky(-hessian)
        step = lapack.dpotrs(root, gradient, lower=1)[0]
        decrement = float(gradient @ step)
        if not np.isfinite(decrement):
            # From here every step leads nowhere; the fit says so by not being finite.
            return Gaussian(theta + step, np.full_like(root, np.nan))
        if shifted or decrement > 0.25:
            share = _line_search(theta, step, decrement, value)
            if share == 0.0:
                # Nothing rises: the same step would be tried for ever.
                break
            theta = theta + share * step
        else:
            theta = theta + step
            # Below round-off the decrement only rattles: it stops falling before it is small.
            if decrement <= tolerance or (decrement < 1e-12 and decrement >= 0.25 * last):
                break
        last = decrement
    factor = lapack.dtrtri(root, lower=1)[0].T
    return Gaussian(theta, np.ascontiguousarray(factor))


def _cholesky(precision: Array) -> tuple[Array, bool]:
    """Lower factor of a symmetric matrix, its diagonal raised where it is not positive definite."""
    root, failed = lapack.dpotrf(precision, lower=1, clean=1)
    if not failed:
        return root, False
    if not np.all(np.isfinite(precision)):
        raise FloatingPointError("the log density's Hessian is not finite")
    eigenvalues, vectors = np.linalg.eigh(precision)
    floor = max(1e-8 * float(np.abs(eigenvalues).max()), 1e-300)
    repaired = (vectors * np.maximum(np.abs(eigenvalues), floor)) @ vectors.T
    return np.linalg.cholesky(repaired), True


def _line_search(
    theta: Array, step: Array, decrement: float, value: Callable[[Array], float]
) -> float:
    """The largest 2⁻ᵏ with value(θ + 2⁻ᵏ step) ≥ value(θ) + 2⁻ᵏ decrement / 10; zero if none."""
    base, share = value(theta), 1.0
    for _ in range(60):
        check_time()
        if 0.1 * share * decrement <= ROUND_OFF * abs(base):
            break
        if value(theta + share * step) >= base + 0.1 * share * decrement:
            return share
        share *= 0.5
    return 0.0
