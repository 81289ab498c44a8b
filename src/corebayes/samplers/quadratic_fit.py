"""The Gaussian of a log density that is all but quadratic, from its values alone.

At places θ = μ + L z, z somewhat wider than a standard normal, log π is regressed on 1, z and zzᵀ:

    log π ≈ a + bᵀz − ½ zᵀHz,     μ ← μ + L H⁻¹b,     L ← L H^{−1/2}

until neither moves. Unlike moments of weighted draws it needs no overlap with π: a fit that is too
narrow, or some deviations off, is mended in two or three rounds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from scipy.linalg import solve_triangular

from corebayes.types import Array, Gaussian

# Places for each coefficient, how far out they are, and the rounds.
PLACES_EACH, WIDTH, MOST_ROUNDS = 2.0, 1.2, 8
# Deviations that the mean may still move by, and the change of the log of a variance; the second
# where it never settles, as far from a quadratic.
SETTLED, ROUGHLY = 0.3, 1.0
# In one round the mean moves by so many deviations at most, and these grow by such a factor.
LONGEST, MOST_WIDER = 4.0, 10.0
# Beyond that it is no quadratic: a wall.
STEEPEST = 1e8


def quadratic_fit(
    rng: Generator, log_density: Callable[[Array], Array], start: Gaussian
) -> Gaussian | None:
    """The Gaussian of log π near `start`; None where it has no mode there.

    Cost: some d² densities a round, mostly in two or three rounds.
    """
    fit, dim, moved = start, start.mean.size, np.inf
    upper = np.triu_indices(dim)
    number = int(PLACES_EACH * (1 + dim + upper[0].size)) + 10
    for _ in range(MOST_ROUNDS):
        z = WIDTH * rng.standard_normal((number, dim))
        heights = log_density(fit.mean + z @ fit.factor.T)
        if not np.all(np.isfinite(heights)):
            return None
        features = np.hstack([np.ones((number, 1)), z, z[:, upper[0]] * z[:, upper[1]]])
        found = np.linalg.lstsq(features, heights)[0]
        half = np.zeros((dim, dim))
        half[upper] = -found[1 + dim :]
        values, vectors = np.linalg.eigh(half + half.T)
        if values[-1] > STEEPEST:
            return None
        bends = np.maximum(values, MOST_WIDER**-2.0)
        bend = (vectors * bends) @ vectors.T
        root = np.linalg.cholesky(bend)
        step = np.linalg.solve(bend, found[1 : 1 + dim])
        length = float(np.linalg.norm(root.T @ step))
        # In deviations of the old fit, or of the new one: what is near in either is no leap.
        step *= LONGEST / max(min(length, float(np.linalg.norm(step))), LONGEST)
        # H = CCᵀ, and L C⁻ᵀ is a root of the new covariance.
        other = solve_triangular(root, fit.factor.T, lower=True).T
        factor = np.asarray(np.linalg.cholesky(other @ other.T), dtype=np.float64)
        fit = Gaussian(fit.mean + fit.factor @ step, factor)
        moved = max(length, float(np.abs(np.log(bends)).max()))
        if moved < SETTLED:
            return fit
    return fit if moved < ROUGHLY else None
