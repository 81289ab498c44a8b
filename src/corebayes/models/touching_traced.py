"""Derivatives of a model whose rows touch few parameters, by JAX.

Those of all rows come at once, in forward mode, along k directions of θ.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from corebayes.models.compiling import call, pad
from corebayes.models.rescaling import Rescaling
from corebayes.types import Array, Block, Indices

# Rows of one call, and of blocks from which on there are so many: to compile the second derivatives
# of a likelihood for another number of rows takes seconds, and a call of few rows next to nothing.
SIZE, LARGE_SIZE, LARGE = 512, 4096, 16_384


class RowMeans(NamedTuple):
    """Potentials and their derivatives in the k predictors, on average over some places."""

    value: Array
    """(n,)."""
    first: Array
    """(n, k)."""
    second: Array
    """(n, k, k)."""


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
    directions: Array
    """(k, d): where each predictor leads."""
    rescaling: Rescaling

    precision = 1e-8

    def row_means(self, places: Array, block: Block) -> RowMeans:
        size = SIZE if len(block) < LARGE else LARGE_SIZE
        parts: list[RowMeans] = []
        for first in range(0, len(block), size):
            rows = {name: a[first : first + size] for name, a in block.fields.items()}
            filled = {name: pad(values, size) for name, values in rows.items()}
            total = [part.copy() for part in _call(self._jet, places[0], filled)]
            for place in places[1:]:
                for part, more in zip(total, _call(self._jet, place, filled), strict=True):
                    part += more
            number = min(len(block) - first, size)
            parts.append(RowMeans(*(part[:number] / len(places) for part in total)))
        return RowMeans(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def prior_mean(self, places: Array) -> float:
        return float(_call(self._prior_mean, places))

    def prior_products(self, places: Array, probes: Array) -> tuple[Array, Array]:
        return _call(self._prior_products, places, probes)

    def prior_of_scales(self, places: Array, positions: Indices, scales: Array) -> ScaleJet:
        return ScaleJet(*_call(self._prior_of_scales, places, positions, scales))

    def _prior(self, coordinates: Any) -> Any:
        volume = self.rescaling.traced_log_volume(coordinates)
        return self.prior_term(self.rescaling.traced(coordinates)) + volume

    @cached_property
    def _jet(self) -> Any:
        jax, directions = _jax(), self.directions

        def jet(place: Any, rows: Mapping[str, Any]) -> Any:
            def moved(steps: Any) -> Any:
                return self.row_terms(self.rescaling.traced(place + steps @ directions), rows)

            def slopes(steps: Any) -> Any:
                return jax.jacfwd(moved)(steps)

            zero = jax.numpy.zeros(len(directions))
            return moved(zero), slopes(zero), jax.jacfwd(slopes)(zero)

        return jax.jit(jet)

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


def _jax() -> Any:
    return importlib.import_module("jax")


def _call(kernel: Any, *arguments: Any) -> Any:
    return _jax().tree_util.tree_map(np.asarray, call(kernel, *arguments))
