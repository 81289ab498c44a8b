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

from dataclasses import dataclass
from typing import Any

import numpy as np

from corebayes.constructions.construction import Style
from corebayes.constructions.greedy import Greedy, State, best_row, include, no_rows
from corebayes.problem import Problem
from corebayes.types import Array, Block, Points, TangentSpace, WeightedPoints

# 1 − cos² of an angle of 1e-7: closer directions are told apart by round-off alone.
PARALLEL = 1e-14


@dataclass(frozen=True, kw_only=True)
class GIGA(Greedy):
    """Cost: one pass for b and one for every step (or N·S flops, for small N·S).

    A row may be chosen again, so there may be more steps than points.
    """

    style = Style("#D55E00", "D")

    def moved(self, problem: Problem, state: State) -> WeightedPoints | None:
        best = _best_on_the_way(problem, state)
        return None if best is None else _turned(state, *include(state.iterate, best))


def _best_on_the_way(problem: Problem, state: State) -> Points | None:
    """The row that lies best on the way from x to b̂."""
    target = state.target
    goal, iterate = _unit(target.total), _unit(target.total - state.residual)
    # Selection in the space without x asks for nothing but what `Beside` has.
    view: Any = Beside(target.space, iterate)
    missing = goal - float(goal @ iterate) * iterate
    return best_row(problem, state, view, missing, no_rows())


def _turned(state: State, points: WeightedPoints, chosen: int) -> WeightedPoints:
    """The points after x has turned as far as it should towards the chosen row."""
    total, space = state.target.total, state.target.space
    current = total - state.residual
    goal, iterate = _unit(total), _unit(current)
    vectors = space.embed(points.rows)
    norms = np.sqrt(space.squared_norms(vectors))
    only_chosen = np.zeros(points.size)
    only_chosen[chosen] = 1.0
    row = space.combine(vectors, only_chosen) / norms[chosen]
    # v in x = Σ_i v_i a_i; without points x = 0, and the new x is a_f
    shares = points.weights * norms / (float(np.linalg.norm(current)) or 1.0)
    along, across, beside = float(goal @ iterate), float(goal @ row), float(iterate @ row)
    # B x + A a_f
    shares *= max(along - across * beside, 0.0)
    shares[chosen] += max(across - along * beside, 0.0)
    turned = space.combine(vectors, shares / norms)
    # ‖b‖ ⟨b̂,x⟩ x, for any length of x
    scale = float(total @ turned) / float(turned @ turned)
    return points.at(scale * shares / norms)


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
