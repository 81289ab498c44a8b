"""Greedy iterative geodesic ascent (GIGA): Hilbert coresets on the unit sphere.

With b̂ = b/‖b‖, a_n = g_n/‖g_n‖ and the unit iterate x = Σ_i v_i a_i, every step turns x towards b̂
along the great circle through the row that lies best on the way:

    f = argmax_n ⟨b̂ − ⟨b̂,x⟩x, a_n⟩ / √(1 − ⟨a_n,x⟩²),
    x ← normalise(B x + A a_f),   A = ⟨b̂,a_f⟩ − ⟨b̂,x⟩⟨x,a_f⟩,   B = ⟨b̂,x⟩ − ⟨b̂,a_f⟩⟨x,a_f⟩,

with the same combination of the weights, which are scaled by ‖b‖⟨b̂,x⟩ in the end (Campbell and
Broderick 2018, "Bayesian coreset construction via greedy iterative geodesic ascent"). The error
never rises, and falls geometrically.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from corebayes.arguments import check_fields
from corebayes.constructions.construction import Info
from corebayes.constructions.greedy import Limits, State, advance, finish, start
from corebayes.constructions.hilbert import (
    NOTHING_TO_ADD,
    Target,
    include,
    no_rows,
    require_a_row,
)
from corebayes.problem import Problem
from corebayes.scan.query import Best, BestRows
from corebayes.tangent.weighting import FullPosterior, Weighting
from corebayes.types import Array, Block, Points, TangentSpace

# 1 − cos² of an angle of 1e-7: closer directions are told apart by round-off alone.
PARALLEL = 1e-14


@dataclass(frozen=True, kw_only=True)
class GIGA:
    """Cost: one pass for b and one for every step (or N·S flops, for small N·S).

    A row may be chosen again, so there may be more steps than points.
    """

    weighting: Weighting = field(default_factory=FullPosterior)
    """The distribution π̂ under which potentials are compared."""
    refit: bool = False
    """Whether the weights handed over are the nonnegative least squares on the points chosen."""
    num_iterations: int | None = None
    """Steps at most. Default: until the size is reached."""
    patience: int = 50
    """Steps in a row that add no row before giving up; not used with `num_iterations`."""

    def __post_init__(self) -> None:
        check_fields(self)

    def init(self, rng: np.random.Generator, problem: Problem, size: int | None) -> State:
        return start(problem, Target.of(rng, problem, self.weighting), size)

    def step(self, rng: np.random.Generator, problem: Problem, state: State) -> tuple[State, Info]:
        last = state.iterate
        best = _select(problem, state)
        if last.weights.size == 0:
            require_a_row(best)
        elif best.scores.size == 0 or best.scores[0] <= 0.0:
            return finish(problem, state, NOTHING_TO_ADD)
        points, weights, chosen = include(last.points, last.weights, best.points)
        weights = _turned(state, points, weights, chosen)
        limits = Limits(self.num_iterations, self.patience)
        return advance(problem, state, points, weights, limits, refit=self.refit)


def _select(problem: Problem, state: State) -> Best:
    """The row that lies best on the way from x to b̂."""
    target = state.target
    goal, iterate = _unit(target.total), _unit(target.total - state.iterate.residual)
    # Selection in the space without x asks for nothing but what `Beside` has.
    view: Any = Beside(target.space, iterate)
    missing = goal - float(goal @ iterate) * iterate
    return target.ask(problem, BestRows(view, missing, num_best=1, exclude=no_rows()))


def _turned(state: State, points: Points, weights: Array, chosen: int) -> Array:
    """The weights after x has turned as far as it should towards the chosen row."""
    target, space = state.target, state.target.space
    current = target.total - state.iterate.residual
    goal, iterate = _unit(target.total), _unit(current)
    vectors = space.embed(points.rows)
    norms = np.sqrt(space.squared_norms(vectors))
    row = space.combine(vectors, _one(weights.size, chosen)) / norms[chosen]
    # v in x = Σ_i v_i a_i; without points x = 0, and the new x is a_f
    shares = weights * norms / (float(np.linalg.norm(current)) or 1.0)
    along, across, beside = float(goal @ iterate), float(goal @ row), float(iterate @ row)
    # B x + A a_f
    shares *= max(along - across * beside, 0.0)
    shares[chosen] += max(across - along * beside, 0.0)
    turned = space.combine(vectors, shares / norms)
    # ‖b‖ ⟨b̂,x⟩ x, for any length of x
    scale = float(target.total @ turned) / float(turned @ turned)
    return scale * shares / norms


@dataclass(frozen=True)
class Beside:
    """A tangent space without one unit direction x: g_n − ⟨g_n,x⟩x, for elements orthogonal to x.

    There, ⟨·, g_n⟩/‖g_n‖ is the score of a geodesic step, and rows along x have no direction.
    """

    space: TangentSpace
    direction: Array

    @property
    def width(self) -> int:
        return self.space.width

    def embed(self, block: Block, *, reuse: bool = False) -> Any:
        return self.space.embed(block, reuse=reuse)

    def project(self, vectors: Any, element: Array) -> Array:
        return self.space.project(vectors, element)

    def squared_norms(self, vectors: Any) -> Array:
        whole = self.space.squared_norms(vectors)
        # ‖g_n − ⟨g_n,x⟩x‖² = ‖g_n‖² (1 − ⟨a_n,x⟩²)
        rest = whole - np.square(self.space.project(vectors, self.direction))
        return np.where(rest > PARALLEL * whole, rest, 0.0)


def _unit(element: Array) -> Array:
    """The direction of an element; zero for zero."""
    length = float(np.linalg.norm(element))
    return element / length if length > 0.0 else element


def _one(size: int, position: int) -> Array:
    weights = np.zeros(size)
    weights[position] = 1.0
    return weights
