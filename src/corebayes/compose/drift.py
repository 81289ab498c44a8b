"""Posteriors that move: a reserve that is matched as widely as the next step may go.

A reserve is matched around the posterior of its time. When new rows are not like the old ones the
posterior moves by several standard deviations at a time, and what was matched to third degree is
wrong by its fourth where the next one lies. So where a step has moved by m > 1 standard deviations,
the reserve has more rows, and is matched under N(μ, m²Σ) in the place of N(μ, Σ) if these are
enough for the fourth degree: to third degree alone what is gained far away is lost nearby.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corebayes.build.reserve import highest_order, is_plain
from corebayes.problem import Problem
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.posterior import Posterior
from corebayes.tangent.hermite import Hermite
from corebayes.tangent.pinned import Pinned
from corebayes.types import Gaussian, WeightedPoints

# Standard deviations, as a root mean square, that a step may move by within what is matched; and
# the widest that is, beyond which nothing but all rows would do.
NEAR, WIDEST = 1.0, 10.0
LEAST_ORDER = 4


class Shift(NamedTuple):
    """A posterior that has moved."""

    distance: float
    """In standard deviations of the one before, as a root mean square, and no more than what is
    widest."""
    now: Gaussian


def shift_between(problem: Problem, old: WeightedPoints, new: WeightedPoints) -> Shift | None:
    """From the posterior of the `old` points to that of the `new` ones; None where that is near, or
    no formula has what is matched. Cost: two fits of few rows."""
    if not is_plain(problem):
        return None
    fits = [
        Laplace().try_fit(Posterior(problem.model, points.rows, points.weights))
        for points in (old, new)
    ]
    before, now = fits
    if before is None or now is None:
        return None
    shift = np.linalg.solve(before.factor, now.mean - before.mean)
    distance = min(float(np.sqrt(np.mean(np.square(shift)))), WIDEST)
    return Shift(distance, Gaussian(now.mean, now.factor)) if distance > NEAR else None


def widened(problem: Problem, shift: Shift, size: int) -> Pinned | None:
    """The tangent space for a reserve of `size` rows as wide as the posterior has moved; None where
    these are too few. Cost: of a total N·d^order flops."""
    order = highest_order(problem, size)
    if order < LEAST_ORDER:
        return None
    inner = Hermite(order=order)
    there = Gaussian(shift.now.mean, shift.distance * shift.now.factor)
    space = inner.space_at(problem, there)
    return Pinned(at=f"{shift.distance:.9g} standard deviations", inner=inner, there=space)
