"""Annealed sparse variational inference: coresets of any number of rows in a handful of passes.

A posterior far away cannot be seen from the tangent space at the prior. So the way is marched from
the posterior of a subsample by temperature, with a generous pilot (`march`), or gone by Newton's
steps where a GLM is log-concave (`arrive`). Around π_pilot ≈ π the coreset is selected by pursuit,
for all sizes at once (`choose`); its weights are moved by natural gradient and its points selected
again from π_w, as long as that lowers KL (`polish`). Coresets that must stay far from π, few points
for many parameters, are also grown row by row (`grow`). Where π_w may have modes of its own they
are looked for (`stray`). `benchmarks.annealed_constants` measures what half or twice of a constant
would change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from corebayes.constructions.annealed import choose, grow, march, polish, stray
from corebayes.constructions.annealed.view import Goal, View, num_quadratics
from corebayes.constructions.construction import (
    CHEAP_ROWS,
    OPEN_PASSES,
    Construction,
    Info,
    Style,
)
from corebayes.problem import Problem
from corebayes.tangent.geometry import Geometry
from corebayes.tangent.pinned import Pinned
from corebayes.types import Rng, WeightedPoints
from corebayes.weights.natural_gradient import NaturalGradient
from corebayes.weights.pursuit import NOTHING_LEFT

# Passes at the most for a size that is asked for, and for each further one of a path. Some of them
# are kept back for what must follow; rows that take no time are gone over as often as it helps.
MOST_PASSES, FURTHER_PASSES, KEPT_BACK = 30.0, 4.0, 7.0

State = march.March | choose.Choose | polish.Polish | grow.Grow | stray.Settle | grow.Arrived


@dataclass(frozen=True, kw_only=True)
class AnnealedSparseVI(Construction):
    """Pursuit along a path of temperatures, then around the posterior.

    Cost: one pass where a subsample can stand for all rows (a GLM of up to 20 parameters, hundreds
    of thousands of rows; see `surrogate`), else as a rule two to nine whatever N is, more where a
    posterior is nearly as wide as its prior in some direction (separated classes; `build` keeps
    levels of few rows out of sight, see `build.rest`) and with fewer points than parameters, but no
    more than 30, and one to four for each further size of a path, or 120 to a tolerance; of fewer
    than 100,000 rows, whose passes take no time, as many as help. For each pursuit M·(M + d) flops
    a row of the pool.
    """

    style = Style("#0072B2", "o")
    ranges = {"warming": (1.0, float("inf")), "rounds": 0, "tolerance": 0.0}  # noqa: RUF012
    can_start = True

    geometry: Geometry | None = None
    """How covariances are known. Default: closed form, else Hermite for a GLM, else draws."""
    polish: NaturalGradient = field(
        default_factory=lambda: NaturalGradient(num_steps=3, least_share=0.1)
    )
    """The last word on the weights."""
    pool_rows: int = 4000
    """Random rows to choose from."""
    pilot_size: int = 200
    """Rows on the way to β = 1, at most, when fewer are asked for: too few would go astray."""
    warming: float = 16.0
    """The first ratio of temperatures; it adapts to what the looks show."""
    total_rows: float = 3.0
    """Rows in the subsample for a total, in units of βN: its error is 1/√3 deviations of π_β."""
    rounds: int = 3
    """Times that points are selected again around their own posterior, at most."""
    tolerance: float = 1e-8
    """Stop when what is left to fit, ½ ‖residual‖² in the tangent space, is at most this, or a
    hundred times this on the way to more than a hundred points."""

    @property
    def may_see_fewer_rows(self) -> bool:
        return self.geometry is None

    def passes(self, size: int | None) -> tuple[float, float]:
        """Of a size that was asked for; an open one takes a few more each time it grows."""
        return (1.0, OPEN_PASSES if size is None else MOST_PASSES)

    def init(self, rng: Rng, problem: Problem, size: int | None) -> State:
        if isinstance(self.geometry, Pinned):
            # There is no way to go: what is matched is seen from where it is.
            return self.init_from(rng, problem, size, problem.no_points())
        goal = _goal(problem, [size or num_quadratics(problem)], is_open=size is None)
        return march.begin(self._view(rng, problem, goal), goal, self.warming)

    def init_path(self, rng: Rng, problem: Problem, sizes: Sequence[int]) -> State:
        goal = _goal(problem, sizes, is_open=False)
        return march.begin(self._view(rng, problem, goal), goal, self.warming)

    def init_from(
        self, rng: Rng, problem: Problem, size: int | None, points: WeightedPoints
    ) -> State:
        """At temperature one with these points as the pilot. Cost: one look."""
        goal = _goal(problem, [size or num_quadratics(problem)], is_open=size is None)
        view = self._view(rng, problem, goal)
        arrived = march.arrived_from(view, goal, points)
        if arrived is not None:
            return arrived
        look = view.look(points, None)
        return choose.Choose(goal, look, points if isinstance(self.geometry, Pinned) else None)

    def reached(self, state: State, sizes: Sequence[int]) -> Mapping[int, WeightedPoints]:
        if isinstance(state, march.March | choose.Choose):
            return {}
        answers = [answer.points for answer in state.answers]
        return dict(zip(state.goal.sizes, answers, strict=False))

    def step(self, rng: Rng, problem: Problem, state: State) -> tuple[State, Info]:
        view = self._view(rng, problem, state.goal)
        polisher = polish.Polisher(self.polish, self.rounds, self.tolerance)
        match state:
            case march.March():
                return march.step(view, state, self.pilot_size)
            case choose.Choose():
                return choose.step(view, state, self.pilot_size)
            case polish.Polish():
                return stray.settling(view, *polish.step(view, state, polisher))
            case grow.Grow():
                return stray.settling(view, *grow.step(view, state, self.tolerance))
            case stray.Settle():
                return stray.step(view, state, polisher)
            case grow.Arrived():
                return stray.settling(view, *polish.enlarge(view, state, polisher))

    def _view(self, rng: Rng, problem: Problem, goal: Goal) -> View:
        geometry = self.geometry or goal.geometry
        left = min(NOTHING_LEFT, 100.0 * self.tolerance)
        size = goal.sizes[-1]
        view = View(rng, problem, size, geometry, self.pool_rows, self.total_rows, left)
        further = FURTHER_PASSES * (len(goal.sizes) - 1)
        passes = (MOST_PASSES - KEPT_BACK + further) * problem.data.num_rows
        return replace(view, most_scanned=goal.scanned + passes + CHEAP_ROWS)


def _goal(problem: Problem, sizes: Sequence[int], *, is_open: bool) -> Goal:
    sizes = tuple(sorted({min(size, problem.data.num_rows) for size in sizes}))
    return Goal(sizes, is_open, scanned=problem.rows_scanned)
