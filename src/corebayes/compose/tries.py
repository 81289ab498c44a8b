"""A coreset chosen again from its reserve, by exchanges, and taken if it is closer.

Greedy choices of few rows end where their first steps led them: coresets of the same size differ
in KL by a factor of ten from one set of candidates to the next, and most where they have fewer rows
than quadratics; and the few rows of a reserve leave a greedy path little to choose from. But they
also make a search affordable that all rows do not: with all inner products at hand rows are
exchanged until none makes the rest smaller, from many starts (`weights/exchange.py`). A reserve
stands for all rows, with next to no error beside that of a coreset, and to measure

    KL(π_w ‖ π_v) = log E_w e^r − E_w r,    r = Σ_i v_i f_i − Σ_j w_j f_j    (reserve v, coreset w)

at weighted draws of π_w, costs no pass.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from corebayes.build.missed import posterior_fit
from corebayes.compose.asked import Reduction
from corebayes.constructions import default_construction
from corebayes.constructions.annealed.stray import Between, modes_around
from corebayes.coreset import Coreset
from corebayes.deadline import OutOfTimeError, TimeLimit
from corebayes.models.custom.touching import may_have_modes
from corebayes.models.families.glm import GLM
from corebayes.models.structure import is_structured
from corebayes.samplers.kl import kl_measured
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.modes.search import log_volume, shares_of_logs
from corebayes.samplers.modes.spikes import find_spike
from corebayes.samplers.posterior import Posterior
from corebayes.tangent.default import SKEWED_DIM
from corebayes.tangent.geometry import element_of
from corebayes.tangent.hermite import Hermite
from corebayes.tangent.monte_carlo import MonteCarloSpace
from corebayes.types import Array, Gaussian, Model, Rng, TangentSpace, WeightedPoints
from corebayes.weights.exchange import GivenProducts, searched

# Rows to choose from at the most, beside the coreset's own.
MOST_CANDIDATES = 1000
# Searches: from the reserve's posterior first, then from that of the coreset found.
ROUNDS = 3
# Starts of each, and flops: a second or so at the most.
STARTS, MOST_FLOPS = 50, 2e9
# Of polynomials, whose inner products cost as much to any degree; else draws.
ORDER, SPACE_DRAWS = 4, 2000
# Nats below which no certificate sees a difference, and below which none are said.
CLOSE_ENOUGH, SHOWN = 1e-8, 1e-7


def closest(
    model: Model, asked: Reduction, limit: TimeLimit, built: Coreset, reserve: WeightedPoints
) -> Coreset:
    """The coreset, or what a search finds if that is closer to the reserve. Cost: R² inner products
    and exchanges of M²·R flops; no pass."""
    if not _may_try(model, asked, built):
        return built
    best, kl = built.points, _judged(model, built.points, reserve)
    pool = _pool(built.points, reserve, np.random.default_rng(asked.seed))
    for number in range(ROUNDS):
        if kl <= CLOSE_ENOUGH or limit.is_over():
            break
        rng = np.random.default_rng([asked.seed, number])
        at = posterior_fit(model, reserve if number == 0 else best)
        if at is None:
            break
        try:
            space = _space(model, at, rng)
            goal = element_of(space, reserve)
            found = _searched(space, goal, pool, best, asked.size or best.size, rng)
            another = _judged(model, found, reserve)
        except (OutOfTimeError, np.linalg.LinAlgError):
            break
        if another < kl:
            best, kl = found, another
        elif not np.isfinite(another):
            # Rows that make a spike: others instead of half of them.
            out = rng.permutation(found.indices)[: (found.size + 1) // 2]
            pool = pool.take(np.flatnonzero(~np.isin(pool.indices, out)))
        else:
            break
    if best is built.points:
        return built
    order = np.argsort(best.indices)
    last: dict[str, Any] = {**built.trace[-1], "step": len(built.trace) + 1} if built.trace else {}
    told = {**last, "size": best.size, "kl": kl, "kl_se": None}
    ended = "no exchange of rows lowers KL further"
    ended += f", from about {kl:.2g} nats" if kl > SHOWN else ""
    reason = built.reason if limit.is_over() else ended
    points = best.take(order)._asdict()
    return replace(built, **points, reason=reason, trace=(*built.trace, told))


def _may_try(model: Model, asked: Reduction, built: Coreset) -> bool:
    """Where nothing but a size was asked for, of a model of few parameters: groups have rows and
    places of their own."""
    usual = asked.tol is None and asked.around is None
    usual = usual and asked.method == default_construction(model)
    grouped = is_structured(model) and bool(model.structure.terms)
    learned = built.indices.min(initial=0) < 0
    interrupted = built.reason == "interrupted"
    return usual and not (grouped or learned or interrupted) and model.dim <= SKEWED_DIM


def _pool(points: WeightedPoints, reserve: WeightedPoints, rng: Rng) -> WeightedPoints:
    """Rows to choose from: those of the points and of the reserve, of very many some at random."""
    others = np.flatnonzero(~np.isin(reserve.indices, points.indices))
    if others.size > MOST_CANDIDATES:
        others = np.sort(rng.permutation(others)[:MOST_CANDIDATES])
    return points.append(reserve.take(others))


def _searched(
    space: TangentSpace,
    goal: Array,
    pool: WeightedPoints,
    best: WeightedPoints,
    size: int,
    rng: Rng,
) -> WeightedPoints:
    """`size` of the pool whose sum is near the goal, from those that are the best so far."""
    vectors = space.embed(pool.rows)
    candidates, lengths = GivenProducts.of(
        space.gram(vectors), space.project(vectors, goal), float(goal @ goal)
    )
    start = candidates.solved(np.flatnonzero(np.isin(pool.indices, best.indices)))
    found = searched(candidates, start, size, rng, starts=STARTS, most_flops=MOST_FLOPS)
    return pool.take(found.taken).at(found.weights / lengths[found.taken])


def _space(model: Model, at: Gaussian, rng: Rng) -> TangentSpace:
    if isinstance(model, GLM):
        return Hermite(order=ORDER).at(model, at)
    return MonteCarloSpace(model, at.draw_matched(rng, SPACE_DRAWS), at.mean)


def distance(model: Model, points: WeightedPoints, others: WeightedPoints) -> float:
    """KL(π_w ‖ π_v) of the points from the others; infinite where that is not known."""
    mine = Posterior(model, points.rows, points.weights)
    fit = Laplace().try_fit(mine)
    if fit is None:
        return np.inf

    def heights(places: Array) -> Array:
        return model.sum_potentials(places, others.rows, others.weights)

    return kl_measured(mine, fit, heights, unknown=np.inf).value


def _judged(model: Model, points: WeightedPoints, others: WeightedPoints) -> float:
    """The distance, and what modes add to it that only the points have; infinite beside a spike.

    Cost, of models that may have such modes: a thousand particles on M rows."""
    kl = distance(model, points, others)
    if not np.isfinite(kl) or not may_have_modes(model):
        return kl
    mine = Posterior(model, points.rows, points.weights)
    modes = modes_around(np.random.default_rng(0), mine, np.empty((0, model.dim))).modes
    if not modes:
        return kl
    places = np.array([mode.fit.mean for mode in modes])
    volumes = np.array([log_volume(mode.fit) for mode in modes])
    with np.errstate(all="ignore"):
        theirs = Posterior(model, others.rows, others.weights).log_density(places)
        shares = Between(
            places,
            shares_of_logs(mine.log_density(places) + volumes),
            shares_of_logs(theirs + volumes),
        )
    spike = find_spike(mine, modes, int(np.argmax(shares.full)))
    return kl + max(shares.kl, 0.0) if spike is None else np.inf
