"""The logarithm of softplus, log log(1 + e^η), with its derivatives, for any η.

With e = e^η the first derivative is e / ((1 + e) log(1 + e)) = Σ_k γ_k (−e)^k, where the γ_k are
the Adams–Bashforth coefficients (Hairer, Nørsett and Wanner, section III.1). Its own derivatives
are differences of nearly equal numbers for small e, where the series is used instead.
"""

from __future__ import annotations

import numpy as np

from corebayes.models.sigmoid import softplus
from corebayes.types import Array

# log(1 + e^η) = e^η and log log(1 + e^η) = η to the last bit below this.
EXPONENTIAL_BELOW = -37.0
# The closed forms lose three digits here; the series needs five terms.
SERIES_BELOW = float(np.log(1e-3))
GAMMA = np.array([1.0, 1 / 2, 5 / 12, 3 / 8, 251 / 720, 95 / 288])
# k^power γ_k for the powers 0, 1 and 2, the highest k first.
SERIES = [(GAMMA * np.arange(GAMMA.size) ** power)[::-1].tolist() for power in range(3)]
TINY = np.finfo(np.float64).tiny


def log_softplus(eta: Array, rate: Array, out: Array) -> Array:
    """log of `rate` = softplus(η), into `out`."""
    if eta.min(initial=0.0) >= EXPONENTIAL_BELOW:
        return np.log(rate, out=out)
    np.maximum(rate, TINY, out=out)
    np.log(out, out=out)
    np.copyto(out, eta, where=eta < EXPONENTIAL_BELOW)
    return out


def log_softplus_derivatives(
    eta: Array, sigma: Array, rest: Array, order: int
) -> tuple[Array, ...]:
    """The first `order` of three derivatives in η, given σ(η) and 1 − σ(η)."""
    first = sigma / np.maximum(softplus(eta), TINY)
    derivatives = [first]
    if order > 1:
        # a' = a (1 − σ − a)
        gap = rest - first
        derivatives.append(first * gap)
        if order > 2:
            # a'' = a ((1 − σ − a)(1 − σ − 2a) − σ(1 − σ))
            derivatives.append(first * (gap * (gap - first) - sigma * rest))
    if eta.min(initial=0.0) < SERIES_BELOW:
        low = np.nonzero(eta < SERIES_BELOW)
        minus_e = -np.exp(eta[low])
        for power, values in enumerate(derivatives):
            values[low] = _series(minus_e, power)
    return tuple(derivatives)


def _series(minus_e: Array, power: int) -> Array:
    """Σ_k k^power γ_k (−e)^k, by Horner's rule."""
    last, *others = SERIES[power]
    total = np.full_like(minus_e, last)
    for coefficient in others:
        total *= minus_e
        total += coefficient
    return total
