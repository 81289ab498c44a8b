"""Posteriors that move: a reserve that is matched as widely as the next step may go.

A reserve is matched around the posterior of its time. When new rows are not like the old ones the
posterior moves by several standard deviations at a time, and what was matched to third degree is
wrong by its fourth where the next one lies. So where a step has moved by m > 1 standard deviations,
the reserve is matched under N(μ, m²Σ) in the place of N(μ, Σ), if its rows are enough for the
fourth degree: to third degree alone what is gained far away is lost nearby.
"""

from __future__ import annotations

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


def widened(problem: Problem, old: WeightedPoints, new: WeightedPoints, size: int) -> Pinned | None:
    """The tangent space for a reserve of `size` rows around the posterior of the `new` points, as
    wide as it has moved from that of the `old` ones; None where that is near, or no formula has it.

    Cost: two fits of few rows; of a total N·d^order flops.
    """
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
    order = highest_order(problem, size)
    distance = min(float(np.sqrt(np.mean(np.square(shift)))), WIDEST)
    if not distance > NEAR or order < LEAST_ORDER:
        return None
    inner = Hermite(order=order)
    space = inner.space_at(problem, Gaussian(now.mean, distance * now.factor))
    return Pinned(at=f"{distance:.9g} standard deviations", inner=inner, there=space)
