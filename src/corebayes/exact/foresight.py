"""What r will be at draws that no pass has seen, from all that passes have seen.

A polynomial of least squares, of the highest degree that foretells draws it was not fitted to. A
coreset that matches every quadratic leaves an r of degree three and more, which a tilt of the
proposals (`tilt.py`) cannot bend away but which can be foreseen: chains then go ahead by many moves
and few of them turn out to be void. Nothing hangs on it being right.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from corebayes.exact.tilt import DRAWS_EACH, MOST_LEFT, least_squares, whitened
from corebayes.types import Array

# Degrees that are tried, and coefficients at most.
DEGREES, MOST_COEFFICIENTS = (4, 3), 400


def learn_foresight(draws: Array, residuals: Array) -> Callable[[Array], Array] | None:
    """r̂ of degree three or four; None where neither foretells r. Cost: S·p² for p coefficients."""
    kept = np.flatnonzero(np.isfinite(residuals))
    draws, residuals = draws[kept], residuals[kept]
    dim = draws.shape[1]
    best, least = None, MOST_LEFT
    for degree in DEGREES:
        number = comb(dim + degree, degree)
        if number > MOST_COEFFICIENTS or len(draws) < DRAWS_EACH * number:
            continue
        centre, whitening = whitened(draws)
        features = _monomials((draws - centre) @ whitening.T, degree)
        seen = np.arange(len(draws)) % 3 != 0
        left = residuals[~seen] - features[~seen] @ least_squares(features[seen], residuals[seen])
        before = residuals[~seen] - residuals[seen].mean()
        share = float(left @ left) / max(float(before @ before), 1e-300)
        if share < least:
            best, least = (centre, whitening, degree, least_squares(features, residuals)), share
    if best is None:
        return None
    centre, whitening, degree, found = best
    return lambda other: _monomials((other - centre) @ whitening.T, degree) @ found


def _monomials(z: Array, degree: int) -> Array:
    """All products of up to `degree` coordinates, (S, p)."""
    with_one = np.column_stack([np.ones(len(z)), z])
    # A product of fewer coordinates has ones for the others.
    places = np.array(list(combinations_with_replacement(range(z.shape[1] + 1), degree)))
    product = with_one[:, places[:, 0]]
    for column in places.T[1:]:
        product = product * with_one[:, column]
    return product
