"""ℓ1-penalised coresets (Campbell and Beronov 2019, appendix D.3).

Instead of a bound on their number, weights have a price:

    w* = argmin_{w ≥ 0} KL(π_w ‖ π) + λ Σ_n f̃_n w_n,      f̃_n = Var_0 f_n    (potential scales)

For one λ it is solved by proximal steps. With w ≥ 0 the proximal operator is a shift and a cut,

    w_n ← (w_n − γ (∂KL/∂w_n + λ f̃_n))₊,

so a weight update that is shown the slopes ∂KL/∂w_n + λ f̃_n takes such steps: `SGD` those of the
paper, `NaturalGradient` those in the Fisher metric. A row outside may enter if
Cov_w[f_n, r] > λ f̃_n; a few enter at a time, those that violate this most, since all that do so at
first would be too many. The λ that gives M rows is found by bisection between 0 and
λ_max = max_n Cov_0[f_n, Σ c f] / f̃_n, at which w = 0 is optimal (the paper's bound leaves out f̃_n);
a stage that ever has more than 2M rows returns early, as such weights are costly to draw from.
Weights at λ > 0 are pulled towards zero, so those of the rows found are fitted once more, without
the penalty.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from corebayes.constructions.construction import Construction, Info, Style, no_direction
from corebayes.problem import Problem
from corebayes.scan.every_row import Norms, Pieces, Projections, joined
from corebayes.tangent import Geometry, Moments, Restriction, default_geometry
from corebayes.tangent.geometry import Curvature, Level, residual_of
from corebayes.types import Array, Block, Estimate, Indices, Rng, TangentSpace, WeightedPoints
from corebayes.weights import NaturalGradient, WeightUpdate


class State(NamedTuple):
    points: WeightedPoints
    size: int
    scales: Array
    """f̃_n of every row, zero for rows that can never enter."""
    low: float
    """The largest λ known to give too many rows."""
    high: float
    """The smallest λ known to give at most M rows: those of `points`."""
    num_stages: int


@dataclass(frozen=True, kw_only=True)
class L1(Construction):
    """Proximal descent on the ℓ1-penalised KL, and a bisection on the penalty.

    Cost of a round: two passes, one for the total and one for the slope of every row, N·S
    potentials each unless the geometry is cheaper, and the weight update; N numbers are kept. About
    ten rounds for one λ.
    """

    style = Style("#44AA99", ">")
    ranges = {"share_entering": (0.0, 1.0 + 1e-9), "tolerance": 0.0, "scale_power": 0.0}  # noqa: RUF012

    geometry: Geometry | None = None
    """How covariances are known. Default: closed form, else Hermite for a GLM, else draws."""
    update: WeightUpdate = field(default_factory=lambda: NaturalGradient(num_steps=20))
    """How the active weights move down the penalised KL."""
    refit: WeightUpdate | None = field(default_factory=lambda: NaturalGradient(num_steps=20))
    """How the final weights are fitted without the penalty; None leaves them as they are."""
    num_stages: int = 15
    """Values of λ, at most."""
    num_rounds: int = 20
    """Times that rows may enter for one λ, at most."""
    share_entering: float = 0.2
    """Rows that may enter in one round, as a share of M."""
    tolerance: float = 1e-3
    """Rows stay out that violate the optimality condition by no more than this share of λ f̃_n."""
    scale_power: float = 1.0
    """f̃_n = (Var_0 f_n)^power: 1 is the paper's formula; ½ makes the penalty invariant to the scale
    of potentials, which its text wants, and is better where scales differ much."""

    def init(self, rng: Rng, problem: Problem, size: int | None) -> State:
        size, points, geometry = self.require(size), problem.no_points(), self._geometry(problem)
        space = geometry.space(rng, problem, points)
        variances = joined(problem.ask(Variances(space)))
        state = State(points, size, variances**self.scale_power, 0.0, 0.0, 0)
        prices = self._prices(problem, state, space)
        highest = float(prices.max())
        if highest <= 0.0:
            raise no_direction()
        # Just below λ_max this row enters alone, and every size has room for one.
        points = problem.points(np.array([int(prices.argmax())]))
        restriction = geometry.restrict(problem, points, space.location)
        points = points.at(NaturalGradient().run(rng, restriction, points.weights))
        return state._replace(points=points, high=highest)

    def step(self, rng: Rng, problem: Problem, state: State) -> tuple[State, Info]:
        penalty = 0.5 * (state.low + state.high)
        found = self.solve(rng, problem, state, penalty)
        state = state._replace(num_stages=state.num_stages + 1)
        if found is None or found.size > state.size:
            state = state._replace(low=penalty)
        else:
            state = state._replace(high=penalty, points=found if found.size else state.points)
        done = self._done(state)
        if done is not None:
            state = self._refitted(rng, problem, state)
        return state, Info(self._kl(rng, problem, state), done)

    def solve(
        self, rng: Rng, problem: Problem, state: State, penalty: float
    ) -> WeightedPoints | None:
        """The optimum for one λ from the weights at hand; None once it has more than 2M rows."""
        geometry, points, start = self._geometry(problem), state.points, None
        for _ in range(self.num_rounds):
            space = geometry.space(rng, problem, points, start)
            prices = self._prices(problem, state._replace(points=points), space)
            entering = self._entering(prices, state, penalty)
            if entering.size == 0 and start is not None:
                break
            start = space.location
            points = points.append(problem.points(entering))
            restriction = Penalised(
                geometry.restrict(problem, points, start), penalty * state.scales[points.indices]
            )
            moved = self.update.run(rng, restriction, points.weights)
            still = np.allclose(moved, points.weights, rtol=self.tolerance, atol=0.0)
            points = points.at(moved).positive()
            if points.size > 2 * state.size:
                return None
            if still:
                # The update finds no way down, to its precision, with these rows.
                break
        return points

    def _prices(self, problem: Problem, state: State, space: TangentSpace) -> Array:
        """Cov_w[f_n, r] / f̃_n of every row, the λ at which it would enter; zero for active rows."""
        geometry = self._geometry(problem)
        residual = residual_of(geometry, problem, space, state.points)
        slopes = joined(problem.ask(Projections(space, residual)))
        prices = np.zeros_like(slopes)
        np.divide(slopes, state.scales, out=prices, where=state.scales > 0.0)
        prices[state.points.indices] = 0.0
        return prices

    def _entering(self, prices: Array, state: State, penalty: float) -> Indices:
        """The rows that violate the optimality condition most, a few of them."""
        violating = np.flatnonzero(prices > (1.0 + self.tolerance) * penalty)
        number = max(1, int(self.share_entering * state.size))
        return np.sort(violating[np.argsort(-prices[violating], kind="stable")[:number]])

    def _refitted(self, rng: Rng, problem: Problem, state: State) -> State:
        if self.refit is None:
            return state
        restriction = self._geometry(problem).restrict(problem, state.points)
        points = state.points.at(self.refit.run(rng, restriction, state.points.weights))
        return state._replace(points=points.positive()) if points.weights.any() else state

    def _done(self, state: State) -> str | None:
        found = f"λ = {state.high:.3g} gives {state.points.size} rows"
        if state.points.size >= state.size - state.size // 20:
            return f"near enough to size {state.size}: {found}"
        if state.num_stages >= self.num_stages:
            return f"{state.num_stages} values of λ tried: {found}"
        if state.high - state.low <= self.tolerance * state.high:
            return f"a little less penalty gives more than {state.size} rows: {found}"
        return None

    def _kl(self, rng: Rng, problem: Problem, state: State) -> Estimate:
        geometry = self._geometry(problem)
        space = geometry.space(rng, problem, state.points)
        residual = residual_of(geometry, problem, space, state.points)
        return geometry.kl(problem, space, residual)

    def _geometry(self, problem: Problem) -> Geometry:
        return self.geometry or default_geometry(problem)


@dataclass(frozen=True)
class Penalised:
    """A restriction whose KL has the price Σ_i price_i w_i added."""

    restriction: Restriction
    price: Array

    def gradient(self, rng: Rng, weights: Array) -> Array:
        return self.restriction.gradient(rng, weights) + self.price

    def moments(self, rng: Rng, weights: Array) -> Moments:
        gram, cross, level = self.restriction.moments(rng, weights)
        cost = float(self.price @ weights)
        level = Level(level.energy + cost, level.half_variance + cost)
        return Moments(gram, cross - self.price, level)

    def curvature(self, rng: Rng, weights: Array) -> Curvature:
        curvature = self.restriction.curvature(rng, weights)
        return curvature._replace(gradient=curvature.gradient + self.price)


@dataclass(frozen=True)
class Variances(Norms):
    """‖g_n‖² of every row; zero where a potential is constant or a row counts zero times."""

    def answer_embedded(self, vectors: Any, block: Block, numbers: Indices) -> Pieces:
        values = self.space.squared_norms(vectors)
        return (values if block.counts is None else np.where(block.counts > 0.0, values, 0.0),)
