"""Looks at a problem and selections from its rows: what all phases do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from corebayes.constructions.annealed.look import Look
from corebayes.constructions.construction import Info, no_direction
from corebayes.problem import Problem
from corebayes.scan.query import BestRows
from corebayes.tangent.closed_form import ClosedForm
from corebayes.tangent.default import default_geometry
from corebayes.tangent.gaussian import gaussian_kl
from corebayes.tangent.geometry import NEAR, Geometry, LookCost, Moments, subsample
from corebayes.tangent.hermite import Hermite, HermiteSpace
from corebayes.types import Array, Estimate, Indices, Rng, WeightedPoints
from corebayes.weights.natural_gradient import NaturalGradient
from corebayes.weights.pursuit import NOTHING_LEFT, orthogonal_pursuit

# The best-aligned of all rows are worth a pass when KL is above this many nats: below, a pool of
# random rows fits as well as the digits of a certificate show.
WORTH_A_PASS = 1e-4
# The pool has at least so many rows for each point: the cone of fewer random rows is too narrow for
# the total of all.
POOL_ROWS_A_POINT = 3
# Nats between the Gaussians of two spaces that see the same: a tenth of a standard deviation in one
# direction changes ½ Var_w r by a few per cent.
SAME = 5e-3
# The largest subsample for a total, 8 MB of row numbers, so that memory does not grow with N; where
# more rows were wanted the total is of all rows.
MOST_NUMBERS = 2**20


class Goal(NamedTuple):
    """What was asked for."""

    sizes: tuple[int, ...]
    """Rows to select, smallest first."""
    open: bool
    """Whether the size may grow, since none was asked for."""
    geometry: Geometry | None = None
    """How covariances are known, once that is decided on the way."""
    scanned: int = 0
    """Rows that passes had gone over before this size was begun."""

    def shown(self, points: WeightedPoints) -> WeightedPoints:
        """All points; of a pilot with more rows than were asked for those of largest weight, which
        then stand for all."""
        size = points.size if self.open else self.sizes[-1]
        kept = points.take(np.argsort(-points.weights, kind="stable")[:size])
        return kept.scaled(points.weights.sum() / kept.weights.sum())


@dataclass(frozen=True)
class View:
    """A problem seen with one geometry. Cost of a look: what the geometry says."""

    rng: Rng
    problem: Problem
    size: int
    """The largest size asked for: points beyond the dimension of a space have nothing to fit."""
    given: Geometry | None
    """The geometry, if one was given."""
    pool_rows: int
    """Random rows to choose from, at least."""
    total_rows: float
    """Rows of a subsampled total, in units of βN."""
    left: float = NOTHING_LEFT
    """Nats at which a pursuit of many points is over."""
    most_scanned: float = np.inf
    """Rows that passes may have gone over before another is only made where there is no answer."""

    def over(self, rows: WeightedPoints) -> View:
        """The same model on these rows alone, each counted as often as its weight says."""
        return replace(self, problem=self.problem.of_points(rows), most_scanned=np.inf)

    @property
    def passes_left(self) -> float:
        """Passes that may still be made in search of something better."""
        return (self.most_scanned - self.problem.rows_scanned) / self.problem.data.num_rows

    def geometry(self, *, exact_draws: bool = True) -> Geometry:
        return self.given or default_geometry(self.problem, self.size, exact_draws=exact_draws)

    @property
    def cost(self) -> LookCost:
        return self.geometry().look_cost(self.problem)

    @property
    def pool_size(self) -> int:
        """Random rows to choose from: enough for as many points as were asked for."""
        most = min(self.size, num_quadratics(self.problem))
        return max(self.pool_rows, POOL_ROWS_A_POINT * most)

    @property
    def has_unseen(self) -> bool:
        """Whether a pool leaves rows out."""
        return self.problem.data.num_rows > self.pool_size

    def look(
        self,
        points: WeightedPoints,
        last: Look | None,
        temperature: float = 1.0,
        after: float = 1.0,
    ) -> Look:
        """The look from π_{βw}, with a total good enough for the temperature after this one."""
        # On the way a Gaussian fit will do; at β = 1 draws are of π_w itself.
        geometry, problem = self.geometry(exact_draws=temperature == 1.0), self.problem
        start = _first_place(problem) if last is None else last.space.location
        space = geometry.space(self.rng, problem, points.scaled(temperature), start)
        rows = None
        if after < 1.0:
            wanted = max(self.pool_size, int(self.total_rows * after * problem.data.num_rows))
            rows = subsample(self.rng, problem, wanted) if wanted <= MOST_NUMBERS else None
        return Look.of(points, space, geometry.total(problem, space, rows))

    def look_near(self, points: WeightedPoints, near: Look) -> Look:
        """The look from π_w; of the space that is near, without a pass, where that is its own."""
        geometry, space = self.geometry(), near.space
        if self.has_unseen and isinstance(geometry, Hermite) and isinstance(space, HermiteSpace):
            own = geometry.space(self.rng, self.problem, points, space.location)
            if own.order == space.order and gaussian_kl(own.gaussian, space.gaussian) <= SAME:
                return Look.of(points, space, near.total)
            return Look.of(points, own, geometry.total(self.problem, own))
        return self.look(points, near)

    def polished(self, look: Look, steps: NaturalGradient) -> Look:
        """The look after natural-gradient steps, its points of weight zero dropped."""
        # All looks share their random numbers, so that KL is compared along one smooth curve.
        seed = int(self.rng.integers(2**63))

        def look_at(weights: Array) -> tuple[Moments, Look]:
            view = replace(self, rng=np.random.default_rng(seed))
            seen = view.look(look.points.at(weights), look)
            return seen.moments(), seen

        weights, seen = steps.descend(
            look_at, look.points.weights, (look.moments(), look), most_looks=self.passes_left
        )
        if np.all(weights > 0.0):
            return seen
        return Look.of(seen.points.positive(), seen.space, seen.total)

    def select(
        self,
        look: Look,
        sizes: Sequence[int],
        *,
        scan: bool = True,
        overshoot: float = 2.0,
        enough: float = 0.0,
        also: WeightedPoints | None = None,
    ) -> list[WeightedPoints]:
        """Points of each size by pursuit, from where the look was made.

        Of many points none is added once they promise as few nats as are `enough`.

        The pool is random rows, the look's own, those given and, when `scan` and some are not in
        the pool, the best-aligned of all rows.
        """
        points = look.points
        if points.size > self.pool_size:
            # The first subsample: rows as random as the pool's.
            points = self.problem.no_points()
        if also is not None:
            points = points.append(
                also.take(np.flatnonzero(~np.isin(also.indices, points.indices)))
            )
        if scan and self.has_unseen and look.half_variance > WORTH_A_PASS:
            query = BestRows(look.space, look.residual(), max(sizes), np.sort(points.indices))
            points = points.append(self.problem.ask(query).points.weighted())
        pool = self.pool(points)
        total = look.total.element
        choices = orthogonal_pursuit(
            look.space, pool.rows, total, sizes, overshoot=overshoot, enough=enough or self.left
        )
        if choices[-1].taken.size == 0:
            raise no_direction()
        return [pool.take(choice.taken).at(choice.weights) for choice in choices]

    def pilot(self, look: Look, pilot_size: int) -> WeightedPoints:
        """Points enough not to go astray, of random rows."""
        return self.select(look, [self.pilot_points(pilot_size)], scan=False, overshoot=1.0)[0]

    def pilot_points(self, pilot_size: int) -> int:
        return max(self.size, min(num_quadratics(self.problem), pilot_size))

    def pool_numbers(self, num_rows: int) -> Indices:
        rows = subsample(self.rng, self.problem, num_rows)
        return np.arange(self.problem.data.num_rows) if rows is None else rows

    def pool(self, points: WeightedPoints, num_rows: int | None = None) -> WeightedPoints:
        """The given points first, then random other rows that count, weighted by their counts; and
        unless so many are asked for, rows that a mode may rest on."""
        if num_rows is None:
            numbers = np.union1d(self.pool_numbers(self.pool_size), self.problem.carriers)
        else:
            numbers = self.pool_numbers(num_rows)
        fresh = self.problem.points(np.setdiff1d(numbers, points.indices))
        return points.append(fresh.at(fresh.rows.multiplicity()).positive())

    def kl(self, look: Look, pilot: Look | None = None) -> Estimate:
        """To second order; far from π, where that is orders too high, the free energy above that
        of a pilot which is close to π."""
        geometry = self.geometry()
        kl = geometry.kl(self.problem, look.space, look.residual())
        if isinstance(look.space, HermiteSpace):
            kl = Estimate(kl.value + look.space.beyond(look.points), kl.standard_error)
        if pilot is None or kl.value <= NEAR or isinstance(geometry, ClosedForm):
            return kl
        higher = look.level.energy - pilot.level.energy
        return kl._replace(value=higher) if 0.0 < higher < np.inf else kl

    def info(self, goal: Goal, look: Look, pilot: Look | None = None) -> Info:
        """On the way; a pilot, which may be all rows, is no answer where the size is open."""
        return Info(None if goal.open else self.kl(look, pilot))


def _first_place(problem: Problem) -> Array | None:
    """Where to begin: at the heaviest mode that is known where there may be several."""
    if problem.model.log_concave or len(problem.places) == 0:
        return None
    return problem.places[0]


def num_quadratics(problem: Problem) -> int:
    """Points that match every quadratic in θ: d(d + 3)/2 + 1 (Carathéodory)."""
    dim = problem.model.dim
    return min(dim * (dim + 3) // 2 + 1, problem.data.num_rows)
