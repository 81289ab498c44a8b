"""The march: from the posterior of a subsample to that of all rows, by temperature.

A subsample of U rows, each counted once, has about the posterior π_β ∝ exp(β Σ_n c_n f_n) π_0 of
temperature β = U/N, and from there the next temperature is in sight. At each, in the tangent space
at π_{βw}, the pilot is

    w ← argmin_{w ≥ 0, ‖w‖_0 ≤ M} ‖Σ_n c_n g_n − Σ_i w_i g_i‖²      (nonnegative orthogonal pursuit)

over a pool of random rows and the points so far. Few points would go astray, so the pilot is a
generous one. Totals are from subsamples: their error need only be small beside the width of π_β.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corebayes.constructions.annealed.arrive import Arrival, arrive
from corebayes.constructions.annealed.choose import Choose
from corebayes.constructions.annealed.look import Look
from corebayes.constructions.annealed.view import Goal, View
from corebayes.constructions.construction import Info
from corebayes.problem import Problem
from corebayes.samplers.laplace import prior_fit
from corebayes.scan.query import BadPotentialError
from corebayes.types import WeightedPoints

# The misfit is KL(π_{βw} ‖ π_β) / d to second order: half a nat is one standard deviation in every
# direction. From 7 deviations away (25) a tangent space sees nothing of use; within 0.7 (0.25)
# there was room for a longer step.
TOO_FAR, TOO_SHORT = 25.0, 0.25
# The ratio of temperatures below which none shorter is tried: one posterior is then a fifth wider
# than the other.
SHORTEST = 1.5
# What would end above this goes all the way: π is then at most 1.4 times narrower, within sight.
NEARLY_THERE = 0.5
# The first subsample: at least 500 rows and 20 a parameter, for a posterior that is close to a
# Gaussian; and a 50th of all rows, so that the march is one or two steps of the first ratio, 16,
# and an arrival takes two looks, up to 20,000 that still fit in memory as a matrix.
FIRST_ROWS, FIRST_ROWS_A_PARAMETER, FIRST_SHARE, MOST_FIRST_ROWS = 500, 20, 50, 20_000
# Parameters from which a pilot, d²/2 rows, is dear.
MANY_PARAMETERS = 40
# Nats to all rows, to second order, from which a march would not find its way.
OUT_OF_SIGHT = 1e9


class March(NamedTuple):
    """On the way at a temperature below one."""

    goal: Goal
    look: Look
    """The pilot, seen from its posterior at this temperature."""
    temperature: float
    warming: float
    """The ratio of the next temperature to this one."""

    @property
    def points(self) -> WeightedPoints:
        return self.goal.shown(self.look.points)


def begin(view: View, goal: Goal, warming: float) -> March | Choose:
    """The posterior of a subsample in which every row counts as in the data."""
    data = view.problem.data
    share = min(data.num_rows // FIRST_SHARE, MOST_FIRST_ROWS)
    wanted = max(FIRST_ROWS, FIRST_ROWS_A_PARAMETER * view.problem.model.dim, share)
    points = view.pool(view.problem.no_points(), wanted)
    covered = float(points.weights.sum()) / data.total_count
    temperature = 1.0 if wanted >= data.num_rows else min(1.0, covered)
    _check_potentials(view.problem, points)
    points = points.at(points.weights / temperature)
    # Of few rows every look is cheap, and a pilot fitted at its own posterior is the better one;
    # but of many parameters it has thousands of rows, and its fit costs more than all looks.
    if temperature < 1.0 and (view.has_unseen or view.problem.model.dim > MANY_PARAMETERS):
        arrived = arrive(view, points)
        if arrived is not None:
            return _chosen(goal, arrived)
    look = view.look(points, None, temperature, _warmer(temperature, warming))
    if temperature < 1.0 and not (view.has_unseen or look.half_variance < OUT_OF_SIGHT):
        # The subsample says nothing of a column that others are known by: as wide as its prior,
        # all rows cannot be seen from there, however cheap looks are.
        arrived = arrive(view, points)
        if arrived is not None:
            return _chosen(goal, arrived)
    return _arrived(March(goal, look, temperature, warming))


def arrived_from(view: View, goal: Goal, pilot: WeightedPoints) -> Choose | None:
    """Newton's steps from a pilot that counts for all rows; None where no posterior is in sight."""
    arrived = arrive(view, pilot)
    return (
        None if arrived is None else Choose(goal._replace(geometry=arrived.geometry), arrived.look)
    )


def _chosen(goal: Goal, arrived: Arrival) -> Choose:
    look, geometry, heavy = arrived
    return Choose(goal._replace(geometry=geometry), look, heavy)


def step(view: View, state: March, pilot_size: int) -> tuple[March | Choose, Info]:
    """Fit the pilot for the next temperature; go there if it is seen to fit there too."""
    temperature = _warmer(state.temperature, state.warming)
    after = _warmer(temperature, state.warming**2)
    points = view.pilot(state.look, pilot_size)
    look = view.look(points, state.look, temperature, after)
    misfit = temperature**2 * look.half_variance / view.problem.model.dim
    if misfit > TOO_FAR and state.warming > SHORTEST:
        return state._replace(warming=float(np.sqrt(state.warming))), Info(None)
    warming = state.warming**2 if misfit < TOO_SHORT else state.warming
    there = _arrived(March(state.goal, look, temperature, warming))
    return there, view.info(state.goal, look) if temperature == 1.0 else Info(None)


def _arrived(state: March) -> March | Choose:
    return state if state.temperature < 1.0 else Choose(state.goal, state.look)


def _warmer(temperature: float, ratio: float) -> float:
    """The temperature after this one."""
    warmer = ratio * temperature
    return 1.0 if warmer > NEARLY_THERE else warmer


def _check_potentials(problem: Problem, points: WeightedPoints) -> None:
    """Name a row that has no log-likelihood at the prior's mode, before a fit stumbles over it."""
    mode = prior_fit(problem.model, problem.no_points().rows).mean
    potentials = problem.model.potentials(mode[None, :], points.rows)[:, 0]
    bad = np.flatnonzero(~np.isfinite(potentials))
    if bad.size:
        raise BadPotentialError(int(points.indices[bad[0]]))
