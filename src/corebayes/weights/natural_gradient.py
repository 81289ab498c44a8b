"""The natural-gradient weight update: nonnegative least squares in the tangent space at π_w.

The Fisher metric at w is G(w) = Cov_w[f], so the natural-gradient step over the active rows is

    v = argmin_{v ≥ 0} ½ ‖Σ_n c_n g_n − Σ_i v_i g_i‖²_w + ½ damping · Σ_i (v_i − w_i)² ‖g_i‖²_w.

The tangent space at w only sees its neighbourhood, so a step is taken only if KL falls by a
share of what the least-squares model promised; otherwise the damping grows and the step shrinks
towards a scaled gradient step (Levenberg and Marquardt). One step replaces hundreds of SGD's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from corebayes.tangent.geometry import Moments, Restriction
from corebayes.types import Array
from corebayes.weights.nnls import nonnegative_least_squares


@dataclass(frozen=True, kw_only=True)
class NaturalGradient:
    """Damped natural-gradient steps that never raise KL, as the geometry measures it.

    Cost of a step: one look at the covariances (a space, a total, M² inner products) for each
    trial, mostly one or two, and M³/3 flops for each change of the support.
    """

    num_steps: int = 5
    damping: float = 1e-6
    """The least damping; each failed trial multiplies it by ten, each good step divides it."""
    max_trials: int = 10
    """Looks in search of one step; if none lowers KL the weights stay as they are."""
    tolerance: float = 1e-10
    """Stop when a step promises to lower KL by less than this, in nats."""

    def run(self, rng: np.random.Generator, restriction: Restriction, weights: Array) -> Array:
        # All looks share their random numbers, so that KL is compared along one smooth curve.
        seed = int(rng.integers(2**63))
        moments = restriction.moments(np.random.default_rng(seed), weights)
        damping, trials = self.damping, 0
        steps = 0
        while steps < self.num_steps and trials < self.max_trials:
            trial = _damped_target(moments, weights, damping)
            promised = _promised_decrease(moments, weights, trial)
            if promised <= self.tolerance:
                break
            trial_moments = restriction.moments(np.random.default_rng(seed), trial)
            if _decrease(moments, trial_moments) > 0.0:
                weights, moments = trial, trial_moments
                damping = max(0.1 * damping, self.damping)
                steps, trials = steps + 1, 0
            else:
                damping, trials = max(10.0 * damping, 1e-3), trials + 1
        return weights


def _decrease(before: Moments, after: Moments) -> float:
    """How far KL fell, by the free energy. That counts π_w as Gaussian, an error that shows once
    KL is below a nat; there the second-order KL is a second witness. Far away it is worthless."""
    by_energy = before.energy - after.energy
    if max(before.half_variance, after.half_variance) < 1.0:
        return max(by_energy, before.half_variance - after.half_variance)
    return by_energy


def _damped_target(moments: Moments, weights: Array, damping: float) -> Array:
    ridge = damping * np.diag(moments.gram)
    return nonnegative_least_squares(
        moments.gram + np.diag(ridge), moments.cross + ridge * weights, weights
    )


def _promised_decrease(moments: Moments, weights: Array, trial: Array) -> float:
    """The fall of ½ ‖total − Σ v_i g_i‖² from w to the trial point."""
    change = trial - weights
    return -float(moments.gradient(weights) @ change + 0.5 * change @ moments.gram @ change)
