"""Models whose coreset posteriors are Gaussian for all weights."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy.linalg import lapack

from corebayes.types import Array, Block, Gaussian, Model


@runtime_checkable
class Conjugate(Protocol):
    """What a conjugate model offers beside `Model`.

    Statistics are a NamedTuple whose entries add up over rows, linearly in the weights.
    """

    def statistics(self, block: Block, weights: Array | None = None) -> Any:
        """Sufficient statistics of the weighted rows; weights of one when not given."""
        ...

    def posterior(self, statistics: Any) -> Gaussian:
        """π_w of rows with these statistics, exactly."""
        ...


class ConjugateModel(Model, Conjugate, Protocol):
    """A model that is conjugate."""


# Below this share of a diagonal entry a pivot of Cholesky's method is mostly rounding error.
SMALLEST_PIVOT = 1e-10


def solve_gaussian(prior: Array, likelihood: Array, information: Array) -> Gaussian:
    """N(P⁻¹h, P⁻¹) with P = prior + likelihood, from precisions and h = `information`.

    The prior's precision is positive definite; that of the likelihood need not be, and h is in
    its range. With P = RRᵀ the factor of the covariance is R⁻ᵀ. Cost: d³.
    """
    precision = prior + likelihood
    root, failed = lapack.dpotrf(precision, lower=1, clean=1)
    # R_jj² / P_jj does not depend on the units of the parameters.
    if failed or np.any(np.diag(root) ** 2 < SMALLEST_PIVOT * np.diag(precision)):
        return _solve_graded(prior, likelihood, information)
    factor = np.ascontiguousarray(lapack.dtrtri(root, lower=1)[0].T)
    return Gaussian(factor @ (information @ factor), factor)


def _solve_graded(prior: Array, likelihood: Array, information: Array) -> Gaussian:
    """The same where rounding in a huge likelihood hides the prior.

    Directions in which the likelihood is rounding error are left to the prior, and precisions
    that differ by any factor are kept apart by working along the likelihood's axes.
    """
    units = 1.0 / np.sqrt(np.diag(prior) + np.maximum(np.diag(likelihood), 0.0))
    shares, axes = np.linalg.eigh(likelihood * np.outer(units, units))
    seen = shares > 4.0 * units.size * np.finfo(np.float64).eps
    axes = units[:, None] * axes
    # Vᵀ P V, V the scaled axes, largest share first so that Cholesky's method loses nothing
    order = np.argsort(-shares)
    axes, shares, seen = axes[:, order], shares[order], seen[order]
    precision = np.diag(np.where(seen, shares, 0.0)) + axes.T @ prior @ axes
    root = np.linalg.cholesky(precision)
    factor = axes @ lapack.dtrtri(root, lower=1)[0].T
    shift = np.where(seen, information @ axes, 0.0)
    return Gaussian(axes @ lapack.dpotrs(root, shift, lower=1)[0], factor)
