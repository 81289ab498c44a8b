"""What the families share: functions without overflow, to full relative precision, and buffers.

With e = e^η the first derivative of log log(1 + e^η) is e / ((1 + e) log(1 + e)) = Σ_k γ_k (−e)^k,
where the γ_k are the Adams–Bashforth coefficients (Hairer, Nørsett and Wanner, section III.1). Its
own derivatives are differences of nearly equal numbers for small e, where the series is used.
"""

from __future__ import annotations

import math
import threading

import numpy as np

from corebayes.types import Array

# 8 MB: larger arrays are rare, and would stay in memory for the life of the thread.
LARGEST_KEPT = 1 << 20
# log(1 + e^η) = e^η and log log(1 + e^η) = η to the last bit below this.
EXPONENTIAL_BELOW = -37.0
# The closed forms lose three digits here; the series needs five terms.
SERIES_BELOW = float(np.log(1e-3))
GAMMA = np.array([1.0, 1 / 2, 5 / 12, 3 / 8, 251 / 720, 95 / 288])
# k^power γ_k for the powers 0, 1 and 2, the highest k first.
SERIES = [(GAMMA * np.arange(GAMMA.size) ** power)[::-1].tolist() for power in range(3)]
# Where an exponential ends: e³⁰⁰ can still be squared and summed over any data.
LAST_EXPONENT = 300.0
LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
TINY = np.finfo(np.float64).tiny


class _Buffers(threading.local):
    def __init__(self) -> None:
        self.by_name: dict[str, Array] = {}


_buffers = _Buffers()


def scratch(name: str, shape: tuple[int, ...]) -> Array:
    """An uninitialised array, valid until this thread asks for the same name again."""
    size = math.prod(shape)
    if size > LARGEST_KEPT:
        return np.empty(shape)
    flat = _buffers.by_name.get(name)
    if flat is None or flat.size < size:
        flat = _buffers.by_name[name] = np.empty(size)
    return flat[:size].reshape(shape)


def sigmoid_pair(x: Array) -> tuple[Array, Array]:
    """σ(x) and 1 − σ(x) = σ(−x), both accurate when small."""
    # exp(700) is finite; beyond it σ(x) is as good as zero.
    odds_against = np.exp(-np.maximum(x, -700.0))
    sigma = 1.0 / (1.0 + odds_against)
    return sigma, odds_against * sigma


def exponential(x: Array) -> tuple[Array, Array, Array]:
    """eˣ and its first two derivatives; beyond x = 300 its quadratic Taylor polynomial there, so
    that sums over any data stay finite and convex."""
    kept = np.minimum(x, LAST_EXPONENT)
    bend, more = np.exp(kept), x - kept
    return bend * (1.0 + more * (1.0 + 0.5 * more)), bend * (1.0 + more), bend


def log_normal_tail(x: Array) -> tuple[Array, Array]:
    """log Φ(x), and its derivative φ(x)/Φ(x)."""
    from scipy.special import log_ndtr

    logs = np.asarray(log_ndtr(x), dtype=np.float64)
    return logs, np.exp(-0.5 * np.square(x) - LOG_ROOT_2PI - logs)


def softplus(x: Array) -> Array:
    """log(1 + eˣ)."""
    # max(x, 0) + log(1 + e^{−|x|})
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def log1p_exp_minus_abs(x: Array, name: str) -> Array:
    """log(1 + e^{−|x|}) in the scratch buffer of this name."""
    result = np.abs(x, out=scratch(name, x.shape))
    np.negative(result, out=result)
    np.exp(result, out=result)
    return np.log1p(result, out=result)


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


def log_odds(share: float, count: float) -> float:
    """log(p / (1 − p)) of a share of `count` rows, with half a row of each kind added."""
    return float(np.log(share * count + 0.5) - np.log((1.0 - share) * count + 0.5))


def log_mean(mean: float, count: float) -> float:
    """The logarithm of a mean of `count` numbers; where it is zero, as if half a one were there."""
    return float(np.log(mean if mean > 0.0 else 0.5 / max(count, 1.0)))
