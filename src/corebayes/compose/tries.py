"""A coreset chosen again and again from its reserve, of which the closest is taken.

Greedy choices of few rows end where their first steps led them: coresets of the same size differ
in KL by a factor of ten from one set of candidates to the next, and most where they have fewer rows
than quadratics. Of all rows another try is another build. But a reserve stands for all rows, with
next to no error beside that of a coreset, and has few rows: to choose from it, and to measure

    KL(π_w ‖ π_v) = log E_w e^r − E_w r,    r = Σ_i v_i f_i − Σ_j w_j f_j    (reserve v, coreset w)

at weighted draws of π_w, costs no pass.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from corebayes.build.run import Run
from corebayes.build.tolerance import Tolerance
from corebayes.compose.asked import Reduction
from corebayes.compose.union import Union
from corebayes.constructions import default_construction
from corebayes.coreset import Coreset
from corebayes.deadline import OutOfTimeError, TimeLimit
from corebayes.models.structure import is_structured
from corebayes.samplers.kl import kl_measured
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.posterior import Posterior
from corebayes.tangent.default import SKEWED_DIM
from corebayes.types import Array, Model, WeightedPoints

# The share of the reserve that each try may choose from; with more they are too much alike, with
# less there is too little to choose from.
SHARES = (1.0, 0.75, 0.75, 0.75)
# Nats below which no certificate sees a difference.
CLOSE_ENOUGH = 1e-8


def closest(
    union: Union, asked: Reduction, limit: TimeLimit, built: Coreset, reserve: WeightedPoints
) -> Coreset:
    """The coreset, or one of the tries if that is closer to the reserve. Cost: of each try a build
    from the reserve's rows."""
    if not _may_try(union.model, asked, built):
        return built
    best, kl = built.points, distance(union.model, built.points, reserve)
    for number, share in enumerate(SHARES):
        if kl <= CLOSE_ENOUGH or limit.is_over():
            break
        try:
            found = _tried(union, asked, limit, reserve, share, number)
        except OutOfTimeError:
            break
        if found is None:
            continue
        another = distance(union.model, found, reserve)
        if another < kl:
            best, kl = found, another
    if best is built.points:
        return built
    order = np.argsort(best.indices)
    last: dict[str, Any] = {**built.trace[-1], "step": len(built.trace) + 1} if built.trace else {}
    told = {**last, "size": best.size, "kl": kl, "kl_se": None}
    return replace(built, **best.take(order)._asdict(), trace=(*built.trace, told))


def _may_try(model: Model, asked: Reduction, built: Coreset) -> bool:
    """Where nothing but a size was asked for, of a model of few parameters: groups have rows and
    places of their own."""
    usual = asked.tol is None and asked.around is None
    usual = usual and asked.method == default_construction(model)
    grouped = is_structured(model) and bool(model.structure.terms)
    learned = built.indices.min(initial=0) < 0
    interrupted = built.reason == "interrupted"
    return usual and not (grouped or learned or interrupted) and model.dim <= SKEWED_DIM


def _tried(
    union: Union,
    asked: Reduction,
    limit: TimeLimit,
    reserve: WeightedPoints,
    share: float,
    number: int,
) -> WeightedPoints | None:
    """One build from the reserve; None where it could not be."""
    method: Any = asked.method
    if share < 1.0:
        method = replace(method, pool_rows=max(int(share * reserve.size), 1))
    problem = union.stood_for(reserve)
    rng = np.random.default_rng([asked.seed, number])
    run = Run(problem, method, asked.seed, rng, limit, "")
    start = reserve._replace(indices=np.arange(reserve.size)) if method.can_start else None
    try:
        run.init(asked.size, start)
        reason = run.until(Tolerance(None), lambda *_: None)
    except (ValueError, np.linalg.LinAlgError):
        # A pool of fewer rows than a model needs; the coreset itself is there.
        return None
    found = run.points
    if reason == "interrupted" or found.size > (asked.size or 0) or found.indices.min() < 0:
        return None
    return reserve.take(found.indices).at(found.weights)


def distance(model: Model, points: WeightedPoints, others: WeightedPoints) -> float:
    """KL(π_w ‖ π_v) of the points from the others; infinite where that is not known."""
    mine = Posterior(model, points.rows, points.weights)
    fit = Laplace().try_fit(mine)
    if fit is None:
        return np.inf

    def heights(places: Array) -> Array:
        return model.sum_potentials(places, others.rows, others.weights)

    return kl_measured(mine, fit, heights, unknown=np.inf).value
