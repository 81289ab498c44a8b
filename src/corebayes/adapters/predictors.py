"""Through which predictors rows see their parameters, found from slopes.

A linear predictor shows in the slopes of a row: in the coefficients of η = x_n·β they are ∂f/∂η
times x_n, so that at every θ they have the same direction. Of some places of θ the slope in each
parameter has a profile, its values at these places; parameters whose profiles are parallel in every
row are seen through one predictor. Where a row does not see a parameter it has nothing to say.
"""

from __future__ import annotations

import numpy as np

from corebayes.types import Array, Indices

# How parallel profiles are, and how small a slope is, of a row's largest, that is round-off.
PARALLEL, ROUND_OFF = 1e-8, 1e-13


def find_predictors(slopes: Array) -> Indices:
    """(m,): the predictor of each parameter, by slopes (K, n, m) of rows at K places. Those of
    most parameters come first."""
    profiles = np.moveaxis(slopes, 0, -1).transpose(1, 0, 2)
    largest = np.abs(slopes).max(axis=(0, 2))[:, None]
    found: list[tuple[list[int], Array]] = []
    for column, profile in enumerate(profiles):
        sizes = np.abs(profile).max(axis=1, keepdims=True)
        seen = sizes > ROUND_OFF * largest
        unit = np.divide(profile, sizes, out=np.zeros_like(profile), where=seen)
        for place, (members, known) in enumerate(found):
            if _parallel(unit, known):
                fresh = ~np.any(known != 0.0, axis=1, keepdims=True)
                found[place] = ([*members, column], np.where(fresh, unit, known))
                break
        else:
            found.append(([column], unit))
    predictor_of = np.empty(len(profiles), dtype=np.int64)
    for number, (members, _) in enumerate(sorted(found, key=lambda one: -len(one[0]))):
        predictor_of[members] = number
    return predictor_of


def _parallel(one: Array, other: Array) -> bool:
    """Whether all rows' profiles (n, K) are, of those that have both."""
    crossed = one[:, :, None] * other[:, None, :]
    return bool(np.all(np.abs(crossed - crossed.transpose(0, 2, 1)) <= PARALLEL))
