"""Special functions for compiled kernels, in loops' own arithmetic: no SciPy, no Python.

    log Γ(x + y)/Γ(x) and ψ(x + y) − ψ(x) as differences that do not cancel for large x,
    log Φ(x) and φ(x)/Φ(x) for any x.

ψ is the derivative of log Γ: by ψ(x) = ψ(x + 1) − 1/x up to x = 8 and from there by Stirling's
series, within 1e-14.
"""

from __future__ import annotations

import math

from corebayes.models.special import LAST_EXPONENT, LOG_ROOT_2PI

# From here Stirling's series has all digits.
SERIES_FROM = 8.0
# From here a difference is that of the series, term by term.
LARGE = 64.0
# Below this Φ underflows, and a few terms of its asymptotic series are exact.
FAR = -37.0


def stirling_slope(x: float) -> float:
    """log x − ψ(x) for x ≥ 8."""
    q = 1.0 / (x * x)
    series = 1.0 / 240.0 - q * (1.0 / 132.0 - q * (691.0 / 32760.0 - q / 12.0))
    return 0.5 / x + q * (1.0 / 12.0 - q * (1.0 / 120.0 - q * (1.0 / 252.0 - q * series)))


def stirling_rest(x: float) -> float:
    """log Γ(x) − (x − ½) log x + x − ½ log 2π for large x."""
    q = 1.0 / (x * x)
    return (1.0 / 12.0 - q * (1.0 / 360.0 - q * (1.0 / 1260.0 - q / 1680.0))) / x


def digamma(x: float) -> float:
    """ψ(x) for x > 0."""
    total = 0.0
    while x < SERIES_FROM:
        total -= 1.0 / x
        x += 1.0
    return total + math.log(x) - stirling_slope(x)


def log_rising(x: float, y: float) -> float:
    """log Γ(x + y)/Γ(x) for x > 0 and y ≥ 0."""
    if x < LARGE:
        return math.lgamma(x + y) - math.lgamma(x)
    grown = (x - 0.5) * math.log1p(y / x) + y * (math.log(x + y) - 1.0)
    return grown + stirling_rest(x + y) - stirling_rest(x)


def digamma_rise(x: float, y: float) -> float:
    """ψ(x + y) − ψ(x) for x > 0 and y ≥ 0."""
    if x < LARGE:
        return digamma(x + y) - digamma(x)
    return math.log1p(y / x) - stirling_slope(x + y) + stirling_slope(x)


def log_sigmoid(x: float) -> float:
    """log 1/(1 + e^−x)."""
    return min(x, 0.0) - math.log1p(math.exp(-abs(x)))


def sigmoid(x: float) -> float:
    t = math.exp(-abs(x))
    return (1.0 if x > 0.0 else t) / (1.0 + t)


def log_sum(a: float, b: float) -> float:
    """log(e^a + e^b)."""
    high = max(a, b)
    return high if a == b == -math.inf else high + math.log1p(math.exp(-abs(a - b)))


def log_phi(x: float) -> float:
    """log Φ(x); far below zero −x²/2 − log(−x√(2π)) + log(1 − 1/x² + 3/x⁴ − …)."""
    if x < FAR:
        q = 1.0 / (x * x)
        series = 1.0 - q * (1.0 - q * (3.0 - q * (15.0 - q * 105.0)))
        return -0.5 * x * x - LOG_ROOT_2PI - math.log(-x) + math.log(series)
    if x < 1.0:
        return math.log(0.5 * math.erfc(-x / math.sqrt(2.0)))
    return math.log1p(-0.5 * math.erfc(x / math.sqrt(2.0)))


def phi_ratio(x: float) -> float:
    """φ(x)/Φ(x), the slope of log Φ."""
    if x < FAR:
        q = 1.0 / (x * x)
        return -x / (1.0 - q * (1.0 - q * (3.0 - q * (15.0 - q * 105.0))))
    return math.exp(-0.5 * x * x - LOG_ROOT_2PI) / (0.5 * math.erfc(-x / math.sqrt(2.0)))


def grown(x: float) -> float:
    """eˣ, a quadratic beyond where `special.exponential` ends."""
    kept = min(x, LAST_EXPONENT)
    more = x - kept
    return math.exp(kept) * (1.0 + more * (1.0 + 0.5 * more))


def growth(x: float) -> float:
    """Its slope."""
    kept = min(x, LAST_EXPONENT)
    return math.exp(kept) * (1.0 + (x - kept))


HELPERS = (
    stirling_slope,
    stirling_rest,
    digamma,
    log_rising,
    digamma_rise,
    log_sigmoid,
    sigmoid,
    log_sum,
    log_phi,
    phi_ratio,
    grown,
    growth,
)
