"""The choice: points for every size, selected around the pilot's posterior.

At temperature one the pilot is fitted to all rows until π_pilot ≈ π. There the pursuit

    w = argmin_{w ≥ 0, ‖w‖_0 ≤ M} ‖Σ_n c_n g_n − Σ_i w_i g_i‖²

answers for all sizes M at once, on the one path to the largest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from corebayes.constructions.annealed.heavy import heaviest
from corebayes.constructions.annealed.look import Look
from corebayes.constructions.annealed.polish import SETTLED, Polish
from corebayes.constructions.annealed.view import WORTH_A_PASS, Goal, View
from corebayes.constructions.construction import Info
from corebayes.tangent.hermite import HermiteSpace
from corebayes.types import WeightedPoints

# An open size starts where the pursuit promises this many nats: close enough for the polish to see
# all of KL, and above the tolerances that people ask for, so that the first size is not too large.
FIRST_PROMISE = 0.1
# Shares of the first guess, all quadratics matched, that are tried for that: every tenth from 0.2.
FIRST_SHARES = np.linspace(0.2, 1.0, 9)
# Quadratics of which few may count. With so many a look costs more than a few rows are worth: more
# shares are tried, and a closer start.
MANY, FIRST_SHARES_OF_MANY, FIRST_PROMISE_OF_MANY = 256, np.linspace(0.05, 1.0, 20), 0.02


class Choose(NamedTuple):
    """At temperature one, before anything is chosen."""

    goal: Goal
    look: Look
    """The pilot."""
    heavy: WeightedPoints | None = None
    """Rows to choose from beside random ones, when the look is already from close to π, whatever
    its points are."""

    @property
    def points(self) -> WeightedPoints:
        return self.goal.shown(self.look.points)


def step(view: View, state: Choose, pilot_size: int) -> tuple[Choose | Polish, Info]:
    """Fit the pilot again if it is not there yet; else select for every size around it."""
    goal, pilot, heavy = state
    if heavy is None and pilot.half_variance > SETTLED and view.passes_left >= 1.0:
        better = view.look(view.pilot(pilot, pilot_size), pilot)
        if better.lower_than(pilot):
            return Choose(goal, better), view.info(goal, better)
    if goal.open:
        goal = goal._replace(sizes=(_first_size(view, pilot, heavy),))
    if heavy is None:
        chosen = view.select(pilot, goal.sizes, scan=False)
        return Polish(goal, pilot, pilot, tuple(chosen)), view.info(goal, pilot)
    # The pilot is selected with the others, on the same path; seen from so close to π it is seen
    # from its own posterior.
    view = replace(view, size=goal.sizes[-1])
    sizes = sorted({*goal.sizes, view.pilot_points(pilot_size)})
    chosen = dict(zip(sizes, view.select(pilot, sizes, scan=False, also=heavy), strict=True))
    space = pilot.space
    if heavy.size == 0 and isinstance(space, HermiteSpace) and _runs_out(view, pilot, chosen):
        heavy = heaviest(view, space, pilot.points, rare=True)
        chosen = dict(zip(sizes, view.select(pilot, sizes, scan=False, also=heavy), strict=True))
    pilot = Look.of(chosen[sizes[-1]], space, pilot.total)
    return Polish(goal, pilot, pilot, tuple(chosen[size] for size in goal.sizes)), Info(None)


def _runs_out(view: View, pilot: Look, chosen: dict[int, WeightedPoints]) -> bool:
    """Whether no more of the random rows help, though much is left: some levels are not in them."""
    size = max(chosen)
    found = chosen[size]
    few = found.size < size and view.has_unseen and view.passes_left >= 1.0
    return few and pilot.promise(found) > WORTH_A_PASS


def _first_size(view: View, pilot: Look, heavy: WeightedPoints | None) -> int:
    """Where an open size starts: few points that promise to be close."""
    shares = FIRST_SHARES if view.size <= MANY else FIRST_SHARES_OF_MANY
    sizes = sorted({max(1, int(view.size * share)) for share in shares})
    enough = FIRST_PROMISE if view.size <= MANY else FIRST_PROMISE_OF_MANY
    choices = view.select(pilot, sizes, scan=False, enough=enough, also=heavy)
    near = (
        size for size, choice in zip(sizes, choices, strict=True) if pilot.promise(choice) <= enough
    )
    return next(near, sizes[-1])
