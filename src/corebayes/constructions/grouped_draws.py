"""More rows than a mixed model has quadratics: what is left is seen at draws of the Gaussian fit.

A posterior of few rows is skewed, and so is that of a dispersion. Coresets that match every
quadratic differ in what remains of the potentials, which is matched at draws θ_s of the fit:

    g_n = (the quadratic coordinates of row n, f_n(θ_s) − mean, s = 1 … S),

the first without noise and the second for whatever is not quadratic. Further draws, which the
choice does not see, say what it is worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from corebayes.arrow.gaussian import ArrowGaussian
from corebayes.data.narrowed import Narrowing
from corebayes.models.custom.touching import is_touching
from corebayes.tangent.arrow.implicit import ImplicitSpace
from corebayes.tangent.arrow.space import ArrowSpace
from corebayes.tangent.monte_carlo import MonteCarloSpace
from corebayes.tangent.stacked import Layer, StackedSpace
from corebayes.types import Array, Estimate, Model, Points, Rng, WeightedPoints
from corebayes.weights.pursuit import orthogonal_pursuit

# Draws for each row of the coreset, the least, and potentials of a pass at the most.
DRAWS_A_ROW, LEAST_DRAWS, MOST_POTENTIALS = 4, 256, 300_000_000
# Further draws, which say what a choice is worth: half of their variance to within a sixth.
JUDGES = 64
# Rows of a coreset from which on draws take longer than all the rest of a build, so that two widths
# are looked at (`grouped_widths`), and only where quadratics miss more than these nats.
MANY_ROWS, NEAR_ENOUGH = 300, 5e-4
# So many times its rows may be matched for all that.
NEARLY = 1.25


class FullHeights(NamedTuple):
    """Σ_n c_n f_n(θ_s) of all rows at draws of the Gaussian fit; the last of them are judges."""

    draws: Array
    """(S, d)."""
    sums: Array


def sees_more(matched: int, size: int) -> bool:
    """Whether a coreset of this size can match more than quadratics, or nearly: small groups have
    fewer of them."""
    return matched <= NEARLY * size


def sees_draws(matched: int, size: int) -> bool:
    """Whether these are what it should match."""
    return size <= MANY_ROWS and sees_more(matched, size)


def worth_more(
    matched: int, size: int, found: WeightedPoints, promise: Estimate, enough: float = NEAR_ENOUGH
) -> bool:
    """Whether a coreset of this size should match more than quadratics, given what was found and
    what that misses; so few nats as are `enough` need not be fewer."""
    near = promise.value + 2.0 * promise.standard_error <= enough
    ran_out = found.size < size or sees_more(matched, size)
    return sees_draws(matched, size) or (ran_out and not near)


def judge_draws(rng: Rng, model: Model, gaussian: ArrowGaussian) -> Array:
    """Where all rows are looked at to judge any choice."""
    return _draws(rng, model, gaussian, JUDGES)


def height_draws(
    rng: Rng, model: Model, gaussian: ArrowGaussian, sizes: Sequence[int], num_rows: int
) -> Array:
    """Where all rows are looked at, for coresets of these sizes that match more."""
    most = max(LEAST_DRAWS, MOST_POTENTIALS // num_rows)
    number = min(max(DRAWS_A_ROW * max(sizes, default=0), LEAST_DRAWS), most) if sizes else 0
    return _draws(rng, model, gaussian, number)


def _draws(rng: Rng, model: Model, gaussian: ArrowGaussian, number: int) -> Array:
    draws = gaussian.draw(rng, number)
    return model.rescaling.theta(draws) if is_touching(model) else draws


def by_draws(
    heights: FullHeights, space: ArrowSpace, total: Array, pool: Points, sizes: Sequence[int]
) -> list[WeightedPoints]:
    """Points of each size that match quadratics and what all rows are at the draws.

    Cost: n·S potentials of the n rows of the pool, and a pursuit.
    """
    draws, sums = heights.draws[:-JUDGES], heights.sums[:-JUDGES]
    finite = np.isfinite(sums)
    draws, sums = draws[finite], sums[finite]
    layers = (
        Layer(ImplicitSpace(space.model, space.gaussian, space.prior), total.size, Narrowing()),
        Layer(MonteCarloSpace(space.model, draws), sums.size, Narrowing()),
    )
    wanted = np.concatenate([total, (sums - sums.mean()) / np.sqrt(sums.size)])
    choices = orthogonal_pursuit(StackedSpace(layers), pool.rows, wanted, sizes, overshoot=2.0)
    return [pool.take(choice.taken).weighted(choice.weights) for choice in choices]


def judged(heights: FullHeights, model: Model, points: WeightedPoints) -> Estimate:
    """½ Var r at draws that no choice has seen: KL(π_w ‖ π) to second order. Cost: M potentials at
    each of them."""
    draws, sums = heights.draws[-JUDGES:], heights.sums[-JUDGES:]
    with np.errstate(over="ignore"):
        residual = sums - model.sum_potentials(draws, points.rows, points.weights)
    residual = residual[np.isfinite(residual)]
    if residual.size < 2:
        return Estimate(np.inf, 0.0)
    squares = np.square(residual - residual.mean()) * residual.size / (residual.size - 1)
    error = 0.5 * float(squares.std()) / np.sqrt(squares.size)
    return Estimate(0.5 * float(squares.mean()), error)
