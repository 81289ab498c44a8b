"""The quadratic weight update: Newton steps on KL (Campbell and Beronov 2019, appendix D.2).

Around the current weights, with gradient D and Hessian H over the active rows,

    v* = argmin_{v ≥ 0} (v − w)ᵀD + ½ (v − w)ᵀH(v − w),        H = Cov_w[f] − E_w[g gᵀ r],
    w ← (1 − γ_t) w + γ_t v*,

a nonnegative least-squares problem as long as H is positive definite. Where it is not, which can
only be far from the optimum since E_w[g gᵀ r] vanishes with the residual r, the Fisher metric
Cov_w[f] stands in for it and the step is one of natural gradient. This is the fully corrective
form; `LineSearch(update=Quadratic())` is the single one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from corebayes.arguments import check_fields
from corebayes.deadline import check_time
from corebayes.tangent.geometry import Curvature, Restriction
from corebayes.types import Array, Rng
from corebayes.weights.nnls import nonnegative_least_squares
from corebayes.weights.optimiser import Schedule, rate_at

# Below this share of the metric a curvature is not told from zero, and the least squares runs away.
LEAST_CURVATURE = 1e-6


@dataclass(frozen=True, kw_only=True)
class Quadratic:
    """T steps towards the minimum of the quadratic expansion.

    Nothing keeps a step from raising KL where the expansion is poor: that is the method. Cost of a
    step: one look at covariances and third moments, M²·S or M²·d, and a least-squares problem.
    """

    num_steps: int = 10
    rate: Schedule = 1.0
    """γ_t ≤ 1: a function of t = 1, 2, …, or the number γ in γ_t = min(γ/t, 1). The default is a
    running mean of the minima, which also averages out the Monte Carlo error."""

    def __post_init__(self) -> None:
        check_fields(self)

    def run(self, rng: Rng, restriction: Restriction, weights: Array) -> Array:
        for step in range(1, self.num_steps + 1):
            check_time()
            minimum = _minimum(restriction.curvature(rng, weights), weights)
            share = min(rate_at(self.rate, step), 1.0)
            weights = (1.0 - share) * weights + share * minimum
        return weights


def _minimum(curvature: Curvature, weights: Array) -> Array:
    hessian = _positive_definite(curvature)
    return nonnegative_least_squares(hessian, hessian @ weights - curvature.gradient, weights)


def _positive_definite(curvature: Curvature) -> Array:
    """H where it is positive definite relative to the metric, else the metric."""
    norms = np.sqrt(np.diag(curvature.metric))
    scale = np.outer(norms, norms)
    unit = np.divide(curvature.hessian, scale, out=np.eye(norms.size), where=scale > 0.0)
    if np.linalg.eigvalsh(unit)[0] > LEAST_CURVATURE:
        return curvature.hessian
    return curvature.metric
