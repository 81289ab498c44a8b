"""Annealed sparse variational inference: coresets of any number of rows in a handful of passes.

A posterior far away cannot be seen from the tangent space at the prior, so the way there is
marched: β = d/N, 4d/N, …, 1. At each temperature, in the tangent space at π_{βw},

    w ← argmin_{w ≥ 0, ‖w‖_0 ≤ M} ‖Σ_n c_n g_n − Σ_i w_i g_i‖²      (nonnegative orthogonal pursuit)

over a pool of random rows and the points so far. A posterior at 4β is half as wide, so what fits
at β is a good start there. At β < 1 a subsample of 30 · β · N rows is enough for the total: its
error is that of the posterior itself. Few points would go astray on the way, so when few are asked
for a larger pilot makes it, and is compressed at β = 1. There the points are selected anew, with
the best-aligned of all rows in the pool, and the weights polished by natural gradient, which never
raises KL.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from corebayes.constructions.construction import Info, drop_zeros
from corebayes.problem import Problem
from corebayes.scan.query import BestRows
from corebayes.tangent import Geometry, default_geometry
from corebayes.tangent.geometry import subsample
from corebayes.types import Array, Estimate, Points, TangentSpace, Total
from corebayes.weights import NaturalGradient, WeightUpdate
from corebayes.weights.pursuit import orthogonal_pursuit


class Look(NamedTuple):
    """The tangent space at π_{βw} and what is missing there."""

    space: TangentSpace
    total: Total
    residual: Array
    energy: float
    """KL(π_w ‖ π) up to a constant; only comparable at temperature one."""

    @property
    def half_variance(self) -> float:
        return 0.5 * float(self.residual @ self.residual)

    def better_than(self, other: Look) -> bool:
        """Lower KL: by the free energy when far, by the second-order KL within a nat."""
        if max(self.half_variance, other.half_variance) < 1.0:
            return self.half_variance < other.half_variance
        return self.energy < other.energy


class State(NamedTuple):
    points: Points
    weights: Array
    """At the scale of all rows, whatever the temperature."""
    size: int
    """Rows to select."""
    open: bool
    """Whether the size may grow, since none was asked for."""
    temperature: float
    look: Look


@dataclass(frozen=True, kw_only=True)
class AnnealedSparseVI:
    """Pursuit along a path of temperatures, then around the posterior.

    Cost: about log₄(N/d) steps of which only the last few look at all rows, so ten to thirty passes
    whatever N is; and M projections of the pool for each temperature. Stopped before β = 1 it hands
    over the pilot, which may have more rows than were asked for.
    """

    geometry: Geometry | None = None
    """How covariances are known. Default: closed form, else Hermite for a GLM, else draws."""
    polish: WeightUpdate = field(default_factory=lambda: NaturalGradient(num_steps=2))
    """The last word on the weights."""
    pool_rows: int = 4000
    """Random rows to choose from at each temperature; at β = 1 the best-aligned ones join."""
    pilot_size: int = 200
    """Rows on the way to β = 1, at most, when fewer are asked for: too few would go astray."""
    warming: float = 4.0
    """The ratio of consecutive temperatures."""
    total_rows: float = 30.0
    """Rows in the subsample for the total, in units of βN."""
    tolerance: float = 1e-8
    """Stop when what is left to fit, ½ ‖residual‖² in the tangent space, is at most this."""

    def init(self, rng: np.random.Generator, problem: Problem, size: int | None) -> State:
        count, dim = problem.data.total_count, problem.model.dim
        first_size = min(size or _quadratics(problem), problem.data.num_rows)
        temperature = min(1.0, dim / count)
        points, weights = problem.no_points(), np.empty(0)
        look = self._look(rng, problem, points, weights, temperature, None)
        return State(points, weights, first_size, size is None, temperature, look)

    def step(self, rng: np.random.Generator, problem: Problem, state: State) -> tuple[State, Info]:
        if state.temperature < 1.0:
            return self._warm(rng, problem, state)
        if state.weights.size > state.size:
            return self._compress(rng, problem, state)
        return self._refine(rng, problem, state)

    def _warm(self, rng: np.random.Generator, problem: Problem, state: State) -> tuple[State, Info]:
        """Fit a pilot at this temperature, then look from the next."""
        size = max(state.size, min(_quadratics(problem), self.pilot_size))
        points, weights = self._pursue(rng, problem, state, problem.no_points(), size)
        temperature = min(1.0, self.warming * state.temperature)
        look = self._look(rng, problem, points, weights, temperature, state.look)
        kl = self._kl(problem, look) if temperature == 1.0 else None
        state = state._replace(points=points, weights=weights, temperature=temperature, look=look)
        return state, Info(kl)

    def _compress(
        self, rng: np.random.Generator, problem: Problem, state: State
    ) -> tuple[State, Info]:
        """Select as many rows as asked for around the pilot's posterior, and fit their weights."""
        look = state.look
        query = BestRows(look.space, look.total.element, state.size, np.sort(state.points.indices))
        points, weights = self._pursue(rng, problem, state, problem.ask(query).points, state.size)
        fitted = self._look(rng, problem, points, weights, 1.0, look)
        state = state._replace(points=points, weights=weights, look=fitted)
        state = self._polish(rng, problem, state)
        return state, Info(self._kl(problem, state.look))

    def _refine(
        self, rng: np.random.Generator, problem: Problem, state: State
    ) -> tuple[State, Info]:
        """Select anew around the posterior; keep the result if KL is lower."""
        look = state.look
        query = BestRows(look.space, look.residual, state.size, np.sort(state.points.indices))
        best = problem.ask(query).points
        points, weights = self._pursue(rng, problem, state, best, state.size)
        candidate = self._look(rng, problem, points, weights, 1.0, look)
        # Of no more rows than parameters the first step is here, and no coreset is ever empty.
        improved = state.weights.size == 0 or candidate.better_than(look)
        if improved:
            state = state._replace(points=points, weights=weights, look=candidate)
        kl = self._kl(problem, state.look)
        if improved and kl.value > self.tolerance:
            return state, Info(kl)
        state = self._polish(rng, problem, state)
        kl = self._kl(problem, state.look)
        if kl.value <= self.tolerance:
            return state, Info(kl, "nothing is left to fit that the tangent space can see")
        if state.open and state.size < problem.data.num_rows:
            size = min(state.size + max(1, state.size // 3), problem.data.num_rows)
            return state._replace(size=size), Info(kl)
        return state, Info(kl, f"KL no longer falls at size {state.size}")

    def _polish(self, rng: np.random.Generator, problem: Problem, state: State) -> State:
        geometry = self._geometry(problem)
        restriction = geometry.restrict(problem, state.points, state.look.space.location)
        weights = self.polish.run(rng, restriction, state.weights)
        points, weights = drop_zeros(state.points, weights)
        look = self._look(rng, problem, points, weights, 1.0, state.look)
        if not look.better_than(state.look):
            return state
        return state._replace(points=points, weights=weights, look=look)

    def _pursue(
        self,
        rng: np.random.Generator,
        problem: Problem,
        state: State,
        best: Points,
        size: int,
    ) -> tuple[Points, Array]:
        look = state.look
        pool = _pool(rng, problem, state.points.append(best), self.pool_rows)
        taken, weights = orthogonal_pursuit(look.space, pool.rows, look.total.element, size)
        if taken.size == 0:
            raise ValueError(
                "no row says anything about the parameters: every potential is constant in θ"
            )
        return pool.take(taken), weights

    def _look(
        self,
        rng: np.random.Generator,
        problem: Problem,
        points: Points,
        weights: Array,
        temperature: float,
        last: Look | None,
    ) -> Look:
        geometry = self._geometry(problem)
        start = None if last is None else last.space.location
        space = geometry.space(rng, problem, points, temperature * weights, start)
        rows = None
        if temperature < 1.0:
            wanted = self.total_rows * temperature * problem.data.num_rows
            rows = subsample(rng, problem, max(self.pool_rows, int(wanted)))
        total = geometry.total(problem, space, rows)
        missing = total.element
        if weights.size:
            missing = missing - space.combine(space.embed(points.rows), weights)
        return Look(space, total, missing, space.free_energy(total))

    def _kl(self, problem: Problem, look: Look) -> Estimate:
        return self._geometry(problem).kl(problem, look.space, look.residual)

    def _geometry(self, problem: Problem) -> Geometry:
        return self.geometry or default_geometry(problem)


def _quadratics(problem: Problem) -> int:
    """Points that match every quadratic in θ: d(d + 3)/2 + 1 (Carathéodory)."""
    dim = problem.model.dim
    return min(dim * (dim + 3) // 2 + 1, problem.data.num_rows)


def _pool(rng: np.random.Generator, problem: Problem, points: Points, num_rows: int) -> Points:
    """The given points and random other rows that count, each once."""
    rows = subsample(rng, problem, num_rows)
    rows = np.arange(problem.data.num_rows) if rows is None else rows
    rows = np.setdiff1d(rows, points.indices)
    fresh = Points(rows, problem.data.take(rows))
    counted = np.flatnonzero(fresh.rows.multiplicity() > 0.0)
    return points.append(fresh.take(counted))
