"""Derivatives of a model whose rows touch few parameters, by JAX.

With few parameters those in the k predictors of a row are taken at a θ of its own, Σ_b η_b A_nb.
Thousands of effects cannot be written out for every row: then at one θ for all, along a direction
p_b of the parameters of each predictor, that of effects the same in every group, since a row sees
its own groups' only: what a row sees of it is A_nb·p_b.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corebayes.models.custom.compiling import call, pad
from corebayes.models.custom.rescaling import Rescaling
from corebayes.models.structure import Jets
from corebayes.types import Array, Block, Indices

Bools = NDArray[np.bool_]

# Rows of one call, and of blocks from which on there are so many: to compile the second derivatives
# of a likelihood for another number of rows takes seconds, and a call of few rows next to nothing.
SIZE, LARGE_SIZE, LARGE = 512, 4096, 16_384
# Slopes below this have lost digits.
SMALLEST = 1e-250
# The share of what it might see of a direction below which a row has too few digits of it.
BLIND = 1e-5


class RowMeans(NamedTuple):
    """Potentials and their derivatives in the k predictors, on average over some places."""

    value: Array
    """(n,)."""
    first: Array
    """(n, k)."""
    second: Array
    """(n, k, k)."""
    third: Array | None
    """(n,), for one predictor."""


class ScaleJet(NamedTuple):
    """A value with its derivatives in the scales."""

    value: float
    slope: Array
    bend: Array


@dataclass(frozen=True, eq=False)
class Traced:
    """Of `row_terms(theta, rows)`, (n,), and `prior_term(theta)`, in the coordinates."""

    row_terms: Callable[[Any, Mapping[str, Any]], Any]
    prior_term: Callable[[Any], Any]
    column_of: Indices
    """(d,): which of the m touched parameters an entry of the coordinates is; m for none."""
    members: Bools
    """(k, m): which of these a predictor is made of."""
    places: Array
    """(J, m): touched parameters at which slopes are looked at, and directions too."""
    rescaling: Rescaling

    precision = 1e-8

    def slopes(self, touched: Array, block: Block) -> Array:
        """(n, m), at touched parameters (m,). Cost: m potentials of every row."""
        return _in_parts(self._slopes, block, (self._written(touched),))[0]

    def loads(self, block: Block) -> Array:
        """(n, k, m): A_nb, the direction of a row's slope in the parameters of each predictor, at
        the first of the places where it has one; zero where it has none, so that there is nothing
        to see. Cost: m potentials of every row."""
        alone = self.members.sum(axis=1) == 1
        loads = np.zeros((len(block), *self.members.shape))
        loads[:, alone] = self.members[alone]
        left = np.arange(len(block))
        for place in self.places:
            rows = block if left.size == len(block) else block.take(left)
            slopes = self.slopes(place, rows)
            parts = np.where(self.members[~alone], slopes[:, None], 0.0)
            # Large and small ones have no square, and the smallest too few digits.
            sizes = np.abs(parts).max(axis=2, keepdims=True)
            sizes[~((sizes >= SMALLEST) & np.isfinite(sizes))] = 0.0
            units = np.divide(parts, sizes, out=np.zeros_like(parts), where=sizes > 0.0)
            lengths = np.linalg.norm(units, axis=2, keepdims=True)
            found = np.divide(units, lengths, out=units, where=lengths > 0.0)
            own = loads[np.ix_(left, ~alone)]
            seen = np.any(own != 0.0, axis=2, keepdims=True)
            loads[np.ix_(left, ~alone)] = np.where(seen, own, found)
            left = left[np.any((sizes == 0.0) & ~seen, axis=(1, 2))]
            if left.size == 0:
                break
        return loads

    def jets(self, predictors: Array, loads: Array, block: Block) -> Jets:
        """At predictors (n, k, R) of each row's own."""
        return Jets(*_in_parts(self._jets, block, (), predictors, loads, size=SIZE))

    def row_means(self, places: Array, loads: Array, block: Block) -> RowMeans:
        """Averages over coordinates (R, d) that are the same for all rows."""
        means = self._means_along(self.places[0], places, loads, block)
        blind = np.flatnonzero(_blind(loads, self.places[0]))
        if blind.size:
            others = self._means_along(self.places[1], places, loads[blind], block.take(blind))
            for part, other in zip(means, others, strict=True):
                if part is not None:
                    part[blind] = other
        return means

    def _means_along(self, direction: Array, places: Array, loads: Array, block: Block) -> RowMeans:
        number = len(self.members)
        steps = np.where(self.members, direction, 0.0)
        written = np.stack([self._written(one) for one in steps])
        total: list[Array] = []
        for place in places:
            answer = _in_parts(self._along, block, (place, written))
            total = [a + b for a, b in zip(total, answer, strict=True)] if total else answer
        value, *derivatives = (part / len(places) for part in total)
        seen = loads @ direction
        once = np.divide(1.0, seen, out=np.zeros_like(seen), where=seen != 0.0)
        first, second = derivatives[0] * once, derivatives[1] * once[:, :, None] * once[:, None]
        third = derivatives[2][:, 0, 0, 0] * once[:, 0] ** 3 if number == 1 else None
        return RowMeans(value, first, second, third)

    def _written(self, touched: Array) -> Array:
        """Touched parameters as coordinates, the effects of all groups alike."""
        return np.append(touched, 0.0)[self.column_of]

    def prior_mean(self, places: Array) -> float:
        return float(_call(self._prior_mean, places))

    def prior_products(self, places: Array, probes: Array) -> tuple[Array, Array]:
        return _call(self._prior_products, places, probes)

    def prior_of_scales(self, places: Array, positions: Indices, scales: Array) -> ScaleJet:
        return ScaleJet(*_call(self._prior_of_scales, places, positions, scales))

    def _prior(self, coordinates: Any) -> Any:
        volume = self.rescaling.traced_log_volume(coordinates)
        return self.prior_term(self.rescaling.traced(coordinates)) + volume

    def _moved(self, place: Any, directions: Any, rows: Mapping[str, Any]) -> Any:
        """Potentials of rows as a function of steps along directions (·, d)."""

        def moved(steps: Any) -> Any:
            return self.row_terms(self.rescaling.traced(place + steps @ directions), rows)

        return moved

    @cached_property
    def _slopes(self) -> Any:
        jax = _jax()
        number = int(self.members.shape[1])
        columns = np.equal.outer(np.arange(number), self.column_of).astype(np.float64)

        def slopes(place: Any, rows: Mapping[str, Any]) -> Any:
            moved = self._moved(place, columns, rows)
            return (jax.jacfwd(moved)(jax.numpy.zeros(number)),)

        return jax.jit(slopes)

    @cached_property
    def _along(self) -> Any:
        jax, number = _jax(), len(self.members)

        def along(place: Any, directions: Any, rows: Mapping[str, Any]) -> Any:
            derivatives = [self._moved(place, directions, rows)]
            for _ in range(3 if number == 1 else 2):
                derivatives.append(jax.jacfwd(derivatives[-1]))
            return [one(jax.numpy.zeros(number)) for one in derivatives]

        return jax.jit(along)

    @cached_property
    def _jets(self) -> Any:
        jax = _jax()

        def jet(predictors: Any, loads: Any, row: Mapping[str, Any]) -> Any:
            rows = {name: values[None] for name, values in row.items()}

            def value(at: Any) -> Any:
                coordinates = jax.numpy.append(at @ loads, 0.0)[self.column_of]
                return self.row_terms(self.rescaling.traced(coordinates), rows)[0]

            slope = jax.jacfwd(value)
            return value(predictors), slope(predictors), jax.jacfwd(slope)(predictors)

        of_row = jax.vmap(jet, in_axes=(1, None, None), out_axes=-1)
        return jax.jit(jax.vmap(of_row))

    @cached_property
    def _prior_mean(self) -> Any:
        jax = _jax()

        def mean(places: Any) -> Any:
            return jax.vmap(self._prior)(places).mean()

        return jax.jit(mean)

    @cached_property
    def _prior_products(self) -> Any:
        jax = _jax()
        gradient = jax.grad(self._prior)

        def products(place: Any, probes: Any) -> Any:
            def product(probe: Any) -> Any:
                return jax.jvp(gradient, (place,), (probe,))[1]

            return gradient(place), jax.vmap(product)(probes)

        def means(places: Any, probes: Any) -> Any:
            slopes, bends = jax.vmap(products, in_axes=(0, None))(places, probes)
            return slopes.mean(axis=0), bends.mean(axis=0)

        return jax.jit(means)

    @cached_property
    def _prior_of_scales(self) -> Any:
        jax = _jax()

        def value(scales: Any, places: Any, positions: Any) -> Any:
            return jax.vmap(self._prior)(places.at[:, positions].set(scales)).mean()

        def jet(places: Any, positions: Any, scales: Any) -> Any:
            both = jax.value_and_grad(value)(scales, places, positions)
            return *both, jax.hessian(value)(scales, places, positions)

        return jax.jit(jet)


def _blind(loads: Array, direction: Array) -> Bools:
    """Rows (n,) that see next to nothing of a direction that they might see."""
    parts = loads * direction
    seen, most = np.abs(parts.sum(axis=2)), np.abs(parts).sum(axis=2)
    return np.any(seen < BLIND * most, axis=1)


def _in_parts(
    kernel: Any, block: Block, fixed: tuple[Array, ...], *arrays: Array, size: int = 0
) -> list[Array]:
    """What a kernel of fixed numbers, arrays of rows and their fields says, some rows at a time."""
    size = size or (SIZE if len(block) < LARGE else LARGE_SIZE)
    parts: list[list[Array]] = []
    for first in range(0, len(block), size):
        part = slice(first, first + size)
        rows = {name: pad(values[part], size) for name, values in block.fields.items()}
        answer = _call(kernel, *fixed, *(pad(array[part], size) for array in arrays), rows)
        number = min(len(block) - first, size)
        parts.append([one[:number] for one in answer])
    return [np.concatenate(part) for part in zip(*parts, strict=True)]


def _jax() -> Any:
    return importlib.import_module("jax")


def _call(kernel: Any, *arguments: Any) -> Any:
    return _jax().tree_util.tree_map(np.asarray, call(kernel, *arguments))
