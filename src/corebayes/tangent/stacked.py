"""One tangent space for several models of the same rows: their spaces side by side.

A coreset that serves the models v = 1, 2, … minimises Σ_v KL(π_{v,w} ‖ π_v) over one w ≥ 0. Every
term has its own posterior, and with it its own tangent space, so the vector of a row is

    g_n = (m_{1,n} g_{1,n}, m_{2,n} g_{2,n}, …)
    ⟨g_n, g_m⟩ = Σ_v m_{v,n} m_{v,m} Cov_{v,w}[f_n, f_m]

where m_{v,n} is zero for a row that model v leaves out (a fold) and one otherwise. All totals are
matched jointly, and whatever works in a tangent space works here. Cost: that of all the spaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from corebayes.data.narrowed import Narrowing
from corebayes.models.custom.touching import may_have_modes
from corebayes.models.families.glm import GLM
from corebayes.problem import Problem
from corebayes.samplers.exact import is_conjugate
from corebayes.tangent.default import default_geometry
from corebayes.tangent.geometry import Geometry
from corebayes.tangent.hermite import Hermite
from corebayes.types import (
    Array,
    Block,
    Estimate,
    Indices,
    Model,
    Rng,
    TangentSpace,
    Total,
    WeightedPoints,
)


@dataclass(frozen=True)
class ModelView:
    """A model, and what it sees of the rows."""

    model: Model
    narrowing: Narrowing
    problem: Problem | None = field(default=None, repr=False)
    """The model with the rows as it sees them, for what is looked up there: modes, and how high
    potentials are far away."""


class Layer(NamedTuple):
    """The space of one model, how many numbers its elements have, and what it sees."""

    space: TangentSpace
    length: int
    narrowing: Narrowing


class Stack(NamedTuple):
    """Vectors in every layer, and which rows count there (None: all)."""

    vectors: tuple[Any, ...]
    masks: tuple[Array | None, ...]


@dataclass(frozen=True)
class StackedSpace:
    """The layers one after the other in every element."""

    layers: tuple[Layer, ...]

    @property
    def width(self) -> int:
        return sum(layer.space.width for layer in self.layers)

    @property
    def location(self) -> Array:
        return np.concatenate([layer.space.location for layer in self.layers])

    def embed(self, block: Block, *, reuse: bool = False) -> Stack:
        # A buffer that is written over could be another layer's, so none is reused.
        seen = [Block(layer.narrowing.fields(block)) for layer in self.layers]
        pairs = zip(self.layers, seen, strict=True)
        return Stack(
            tuple(layer.space.embed(rows) for layer, rows in pairs),
            tuple(layer.narrowing.mask(block) for layer in self.layers),
        )

    def take(self, vectors: Stack, positions: Indices) -> Stack:
        return Stack(
            tuple(
                layer.space.take(one, positions)
                for layer, one in zip(self.layers, vectors.vectors, strict=True)
            ),
            tuple(None if mask is None else mask[positions] for mask in vectors.masks),
        )

    def combine(self, vectors: Stack, weights: Array) -> Array:
        return np.concatenate(
            [
                layer.space.combine(one, weights if mask is None else weights * mask)
                for layer, one, mask in zip(self.layers, *vectors, strict=True)
            ]
        )

    def project(self, vectors: Stack, element: Array) -> Array:
        return sum(
            _masked(layer.space.project(one, part), mask)
            for layer, one, mask, part in zip(
                self.layers, *vectors, self._split(element), strict=True
            )
        )  # pyright: ignore[reportReturnType]

    def squared_norms(self, vectors: Stack) -> Array:
        return sum(
            _masked(layer.space.squared_norms(one), mask)
            for layer, one, mask in zip(self.layers, *vectors, strict=True)
        )  # pyright: ignore[reportReturnType]

    def gram(self, vectors: Stack, others: Stack | None = None) -> Array:
        others = vectors if others is None else others
        result: Any = 0.0
        for k, layer in enumerate(self.layers):
            one = layer.space.gram(vectors.vectors[k], others.vectors[k])
            left, right = vectors.masks[k], others.masks[k]
            if left is not None and right is not None:
                one = one * left[:, None] * right
            result = result + one
        return result

    def third_moments(self, vectors: Stack, element: Array) -> Array:
        result: Any = 0.0
        for layer, one, mask, part in zip(self.layers, *vectors, self._split(element), strict=True):
            moments = layer.space.third_moments(one, part)
            result = result + (moments if mask is None else moments * mask[:, None] * mask)
        return result

    def total(self, block: Block) -> Total:
        parts = [layer.space.total(layer.narrowing.of(block)) for layer in self.layers]
        elements, means = zip(*parts, strict=True)
        return Total(np.concatenate(elements), sum(means))

    def free_energy(self, total: Total) -> float:
        """Σ_v of the layers' own: each is −mean plus what does not depend on the total's mean."""
        parts = zip(self.layers, self._split(total.element), strict=True)
        return sum(layer.space.free_energy(Total(part, 0.0)) for layer, part in parts) - total.mean

    def _split(self, element: Array) -> list[Array]:
        return np.split(element, np.cumsum([layer.length for layer in self.layers])[:-1])


def _masked(values: Array, mask: Array | None) -> Array:
    return values if mask is None else values * mask


def _first_place(seen: ModelView) -> Array | None:
    """The heaviest mode that is known of a model that may have several."""
    if seen.problem is None or not may_have_modes(seen.model):
        return None
    places = seen.problem.places
    return places[0] if len(places) else None


@dataclass(frozen=True, kw_only=True)
class Stacked(Geometry):
    """The tangent spaces of several bound models, stacked; `build(..., models=[…])` makes it."""

    models: Sequence[ModelView]
    size: int | None = None
    """Rows of the coreset, for the degree of the spaces."""

    def space(
        self, rng: Rng, problem: Problem, points: WeightedPoints, start: Array | None = None
    ) -> StackedSpace:
        dims = [seen.model.dim for seen in self.models]
        if start is not None and start.size == sum(dims):
            starts: list[Any] = np.split(start, np.cumsum(dims)[:-1])
        else:
            starts = [_first_place(seen) for seen in self.models]
        layers: list[Layer] = []
        for seen, begin in zip(self.models, starts, strict=True):
            narrowing = seen.narrowing
            mask = narrowing.mask(points.rows)
            weights = points.weights if mask is None else points.weights * mask
            rows = Block(narrowing.fields(points.rows))
            theirs = seen.problem or Problem(seen.model, problem.data)
            weighted = WeightedPoints(points.indices, rows, weights).positive()
            space = self._geometry(theirs).space(rng, theirs, weighted, begin)
            empty = space.combine(space.embed(rows.take(slice(0, 0))), np.empty(0))
            layers.append(Layer(space, empty.size, narrowing))
        return StackedSpace(tuple(layers))

    def _geometry(self, problem: Problem) -> Geometry:
        """Without statistics of all rows, which would be those of other columns."""
        if isinstance(problem.model, GLM) and is_conjugate(problem.model):
            return Hermite(order=2)
        return default_geometry(problem, self.size)

    def kl(self, problem: Problem, space: StackedSpace, residual: Array) -> Estimate:
        """Σ_v ½ Var r_v: an upper bound for each of them."""
        return Estimate(0.5 * float(residual @ residual), 0.0)
