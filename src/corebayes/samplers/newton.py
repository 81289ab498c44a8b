"""Safeguarded Newton's method for log densities: the mode and the curvature there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import lapack

from corebayes.deadline import check_time
from corebayes.types import Array, Gaussian

# A rise by a smaller share of the value is none that can be seen.
ROUND_OFF = 1e-16
# Shorter steps that are tried in one pass.
HALVINGS = 20


def newton(
    start: Array,
    slopes: Callable[[Array], tuple[Array, Array]],
    value: Callable[[Array], float],
    *,
    tolerance: float,
    max_steps: int,
    rises: Callable[[Array], Array] | None = None,
) -> Gaussian:
    """N(mode, (−∇²)⁻¹) of a log density given by its `value` and `slopes` (gradient, Hessian).

    Full steps near the mode, where the Newton decrement g·(−H)⁻¹g is small; elsewhere the step
    is halved until the value rises by a share of what the slope promises (Armijo). Where the
    Hessian is not negative definite, its diagonal is raised until it is, so the direction
    always ascends. Stops when the decrement is below `tolerance`, or can no longer fall.
    With `rises`, by how much the value rises from the first of some places to each, all for the
    price of one (a pass), a step that is too long is halved many times at once.
    Cost: d³ flops a step, plus the callbacks.
    """
    theta, last, root, share = start, np.inf, np.empty((0, 0)), 1.0
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
            share = _line_search(theta, step, decrement, value, rises, whole=share == 1.0)
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
    theta: Array,
    step: Array,
    decrement: float,
    value: Callable[[Array], float],
    rises: Callable[[Array], Array] | None,
    *,
    whole: bool,
) -> float:
    """The first 2⁻ᵏ, or the best of those tried at once, with

    value(θ + 2⁻ᵏ step) ≥ value(θ) + 2⁻ᵏ decrement / 10;    zero if there is none.
    """
    base = value(theta)
    shares = 0.5 ** np.arange(60)
    shares = shares[0.1 * shares * decrement > ROUND_OFF * abs(base)]
    # The whole step is tried alone: as a rule it does, and its derivatives come with its value;
    # where the step before was too long, so will this one be.
    first, together = 0, 1 if whole or rises is None else HALVINGS
    while first < shares.size:
        check_time()
        tried = shares[first : first + together]
        places = theta + tried[:, None] * step
        if rises is None or together == 1:
            found = np.array([value(places[0]) - base])
        else:
            found = rises(np.vstack([theta, places]))[1:]
        found[~(found >= 0.1 * tried * decrement)] = -np.inf
        best = int(np.argmax(found))
        if found[best] > -np.inf:
            return float(tried[best])
        first += tried.size
        together = 1 if rises is None else HALVINGS
    return 0.0
