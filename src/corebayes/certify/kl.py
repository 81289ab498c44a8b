"""KL both ways from log importance ratios, and what the ratios are worth.

For θ_s ~ π_w the log importance ratio log π/π_w is r(θ_s) = Σ_n c_n f_n(θ_s) − Σ_i w_i f_i(θ_s)
up to a constant, so with r centred and u_s = e^{r_s} / mean e^r,

    KL(π_w ‖ π) = log mean e^r                           ("reverse", what a coreset minimises)
    KL(π ‖ π_w) = mean u r − log mean e^r                ("forward")

Both are never negative (Jensen; a discrete relative entropy) and, because r is centred, as exact
at 1e-12 nats as at 1. Their influence functions are u − 1 − r and u (r − mean u r) − (u − 1).
Draws of something else than π_w have weights, and all means are weighted. The shape k̂ of the tail
of what is averaged (Vehtari et al., "Pareto smoothed importance sampling", 2024) says whether means
can be trusted at all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from corebayes.certify.bound import bounds
from corebayes.samplers.convergence import efficiency, standard_error
from corebayes.samplers.pareto import HEAVY, pareto_k, tail_inflation
from corebayes.types import Array, Estimate

# Tails are too heavy beyond this k̂, and fewer draws than this cannot be told from one another.
MAX_PARETO_K, MIN_EFFECTIVE = 0.7, 100.0
# What ratios beyond those drawn may add to KL, as a share of the tolerance, without counting; and
# the range beyond which they always count.
UNSEEN, WIDE = 0.25, 1.0


class Measured(NamedTuple):
    """What weighted draws say of the distance between π_w and π.

    The standard errors are half of the distance to the upper bounds, so that two of them lead
    there; of values that are far from normal they are more than the deviation.
    """

    reverse: Estimate
    forward: Estimate
    symmetrised: Estimate
    lower: float
    """KL(π_w ‖ π) is above this with probability 1 − level, and below `upper`."""
    upper: float
    pareto_k: float | None
    """The shape k̂ of the tail of the ratios; at most zero where `tail_counts` says that no tail can
    change the verdict. None without draws."""
    effective: float | None
    """How many draws of π these are worth."""
    trouble: str | None
    """Why no number may be given."""

    def no_less_than(self, least: float) -> Measured:
        """The same, with no KL below what could have been seen."""
        estimates = {
            name: _no_less_than(kl, least)
            for name, kl in (
                ("reverse", self.reverse),
                ("forward", self.forward),
                ("symmetrised", self.symmetrised),
            )
        }
        return self._replace(**estimates, upper=max(self.upper, least))


def _no_less_than(kl: Estimate, least: float) -> Estimate:
    value, top = max(kl.value, least), max(kl.value + 2.0 * kl.standard_error, least)
    return Estimate(value, 0.5 * (top - value))


def measure_kl(
    ratios: Array, log_weights: Array | None, *, independent: bool, level: float, tol: float
) -> Measured:
    """The estimates from log ratios r and the logs of weights of mean one, both (chains, draws)."""
    logs = np.zeros_like(ratios) if log_weights is None else log_weights
    weights = np.exp(logs)
    ratios = ratios - np.mean(weights * ratios)
    log_mean = _log_mean_exp(ratios, logs, weights)
    # Weight times u: finite also where a draw has no weight but all of the ratio.
    moved = np.exp(ratios + logs - log_mean)
    share = efficiency(moved, independent=independent)
    number = share * ratios.size
    # Against what the draws are of: π / π_w, or π / q.
    drawn = ratios + logs
    shape = pareto_k(np.maximum(drawn, drawn.max() - 700.0), share)
    counts = tail_counts(ratios[weights > 0.0], number, tol)
    effective = number / float(np.mean(np.square(moved)))
    mean_ur = float(np.mean(moved * ratios))
    inflation = tail_inflation(min(shape, HEAVY), ratios.size)

    def estimated(value: float, influence: Array) -> tuple[Estimate, float, float]:
        error = inflation * standard_error(influence, independent=independent)
        lower, upper = bounds(value, influence, error, number, level)
        return Estimate(value, 0.5 * (upper - value)), lower, upper

    # w (u − 1 − r), which for small r would be lost in rounding
    small = weights * (np.expm1(np.minimum(ratios, 1.0) - log_mean) - ratios)
    own = np.where(ratios < 1.0, small, moved - weights * (1.0 + ratios))
    reverse, lower, upper = estimated(log_mean, own)
    pull = moved * (ratios - mean_ur)
    return Measured(
        reverse=reverse,
        forward=estimated(max(mean_ur - log_mean, 0.0), pull - moved + weights)[0],
        symmetrised=estimated(max(mean_ur, 0.0), pull - weights * ratios)[0],
        lower=lower,
        upper=upper,
        pareto_k=shape if counts else min(shape, 0.0),
        effective=effective,
        trouble=_trouble(shape, share, effective, ratios.size) if counts else None,
    )


def tail_counts(ratios: Array, num_effective: float, tol: float) -> bool:
    """Whether ratios that were not drawn can change the verdict.

    k̂ is the shape of a tail and not its size: ratios between 0.999 and 1.001 may have any. Beyond
    the largest of S draws a tail of shape k adds about its range / (S (1 − k)) to the mean.
    """
    spread = float(np.ptp(ratios))
    return spread > WIDE or spread / (num_effective * (1.0 - HEAVY)) > UNSEEN * tol


def _trouble(shape: float, share: float, effective: float, num_draws: int) -> str | None:
    # Of about 3 √S values in the tail, k̂ has an error of (1 + k) / √(their number).
    error = (1.0 + max(shape, 0.0)) / np.sqrt(
        min(num_draws / 5.0, 3.0 * np.sqrt(num_draws / share))
    )
    if shape + error > MAX_PARETO_K:
        return (
            f"have too heavy a tail (Pareto k̂ = {shape:.2f} ± {error:.2f}, where it must be "
            f"{MAX_PARETO_K} at most)"
        )
    if effective < min(MIN_EFFECTIVE, 0.1 * num_draws):
        return f"leave only {effective:.0f} effective draws of {num_draws:,}"
    return None


def _log_mean_exp(ratios: Array, log_weights: Array, weights: Array) -> float:
    """log mean e^r ≥ 0 of centred r, exact also where r is tiny, safe where it is huge."""
    if float(ratios.max()) < 1.0:
        # mean e^r = 1 + mean(e^r − 1 − r), since mean r = 0
        return float(np.log1p(np.mean(weights * (np.expm1(ratios) - ratios))))
    return float(logsumexp(ratios + log_weights)) - float(np.log(ratios.size))
