"""The natural-gradient weight update: nonnegative least squares in the tangent space at π_w.

The Fisher metric at w is G(w) = Cov_w[f], so the natural-gradient step over the active rows is

    v = argmin_{v ≥ 0} ½ ‖Σ_n c_n g_n − Σ_i v_i g_i‖²_w + ½ damping · Σ_i (v_i − w_i)² ‖g_i‖²_w.

The tangent space at w only sees its neighbourhood, so a step is taken only if KL falls by a
share of what the least-squares model promised; otherwise the damping grows and the step shrinks
towards a scaled gradient step (Levenberg and Marquardt); in the end only part of it is taken. One
step replaces hundreds of SGD's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from corebayes.arguments import check_fields
from corebayes.tangent.geometry import Moments, Restriction
from corebayes.types import Array, Rng
from corebayes.weights.nnls import nonnegative_least_squares

T = TypeVar("T")

# Where every damped step fails, parts of one are tried: a half, a quarter and so on. A row may
# be nearly constant under π_w and yet be all that keeps π_w from leaving, like a count of zero
# far out, and damping in proportion to its variance does not keep it.
PARTLY_DAMPED = 1.0
# The least share of ½ Var_w r that is worth a look within a nat.
NEAR_SHARE = 0.01


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
    """Looks in search of one damped step; if neither that nor part of one lowers KL the weights
    stay as they are."""
    parts: int = 5
    """Then a half, a quarter and so on of a damped step, so many times."""
    tolerance: float = 1e-10
    """Stop when a step promises to lower KL by less than this, in nats."""
    least_share: float = 0.0
    """Stop when a step promises to lower ½ Var_w r by less than this share of it; within a nat,
    where ½ Var_w r is close to KL, a hundredth is always too little."""

    def __post_init__(self) -> None:
        check_fields(self, parts=0, damping=0.0, tolerance=0.0, least_share=0.0)

    def run(self, rng: Rng, restriction: Restriction, weights: Array) -> Array:
        # All looks share their random numbers, so that KL is compared along one smooth curve.
        seed = int(rng.integers(2**63))

        def look(weights: Array) -> tuple[Moments, None]:
            return restriction.moments(np.random.default_rng(seed), weights), None

        return self.descend(look, weights, look(weights))[0]

    def descend(
        self,
        look: Callable[[Array], tuple[Moments, T]],
        weights: Array,
        seen: tuple[Moments, T],
        *,
        most_looks: float = np.inf,
    ) -> tuple[Array, T]:
        """The weights after the steps, and what was seen there.

        `look` gives the covariances at any weights and whatever else the caller wants to keep of
        that look; `seen` is the look at the first weights.
        """
        moments, kept = seen
        damping, share, trials, steps, looks = self.damping, 1.0, 0, 0, 0
        while steps < self.num_steps and trials < self.max_trials + self.parts:
            trial = (1.0 - share) * weights + share * _damped_target(moments, weights, damping)
            promised = _promised_decrease(moments, weights, trial)
            if promised <= self._worth(moments.level.half_variance) or looks + 1 > most_looks:
                break
            looks += 1
            trial_moments, trial_kept = look(trial)
            if trial_moments.level.lower_than(moments.level):
                weights, moments, kept = trial, trial_moments, trial_kept
                damping, share = max(0.1 * damping, self.damping), 1.0
                steps, trials = steps + 1, 0
            else:
                trials += 1
                if trials < self.max_trials:
                    damping = max(10.0 * damping, 1e-3)
                else:
                    damping, share = PARTLY_DAMPED, 0.5 * share
        return weights, kept

    def _worth(self, half_variance: float) -> float:
        """The least fall of KL that is worth a look, where ½ Var_w r is so much."""
        if not np.isfinite(half_variance):
            return self.tolerance
        share = max(self.least_share, NEAR_SHARE if half_variance < 1.0 else 0.0)
        return max(self.tolerance, share * half_variance)


def _damped_target(moments: Moments, weights: Array, damping: float) -> Array:
    ridge = damping * np.diag(moments.gram)
    return nonnegative_least_squares(
        moments.gram + np.diag(ridge), moments.cross + ridge * weights, weights
    )


def _promised_decrease(moments: Moments, weights: Array, trial: Array) -> float:
    """The fall of ½ ‖total − Σ v_i g_i‖² from w to the trial point."""
    change = trial - weights
    return -float(moments.gradient(weights) @ change + 0.5 * change @ moments.gram @ change)
