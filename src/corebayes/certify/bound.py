"""Bounds of a KL estimate that hold at their level although its error is very skewed.

The influence u − 1 − r of a draw on KL(π_w ‖ π) is never negative and about r²/2: its mean comes
from few large values, few draws see too few of them, and value and error are then both too small.
So Student's t misses on one side. Two corrections, of which the wider is taken:

    Hall's transformation      T + γ T²/3 + γ² T³/27 + γ/6,    γ = skewness / √S,
                               is normal to second order where T = (K̂ − K)/error is not
    the logarithm of K̂         since the error grows with the value, as that of a variance does

Hall, "On the removal of skewness by transformation" (1992); Johnson's modified t is its first term.
"""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from corebayes.types import Array

# Where errors are several times the value its logarithm says nothing.
STEEPEST = 3.0


def bounds(
    value: float, influence: Array, error: float, num_effective: float, level: float
) -> tuple[float, float]:
    """Below and above the true KL, each with a probability of at least 1 − `level`.

    `error` is the standard error of the mean influence of what is worth `num_effective`
    independent draws.
    """
    if error <= 0.0:
        return value, value
    centred: Array = influence - float(influence.mean())
    spread = float(np.sqrt(np.mean(np.square(centred))))
    skewness = float(np.mean((centred / spread) ** 3)) / float(np.sqrt(num_effective))
    quantile = float(stdtrit(max(num_effective - 1.0, 1.0), 1.0 - level))
    ratio = quantile * error / value if value > 0.0 else np.inf
    low = value - error * _untransformed(quantile, skewness)
    high = value - error * _untransformed(-quantile, skewness)
    factor = np.exp(min(ratio, STEEPEST))
    lower = min(low, value / factor)
    upper = max(high, value * factor, value + quantile * error)
    return max(float(lower), 0.0), float(upper)


def _untransformed(quantile: float, skewness: float) -> float:
    """The T whose transform is this quantile."""
    if abs(skewness) < 1e-6:
        return quantile
    return 3.0 / skewness * (np.cbrt(1.0 + skewness * (quantile - skewness / 6.0)) - 1.0)
