"""Models of one's own in JAX whose rows touch few parameters.

What rows say is a function of the touched parameters themselves: k predictors, each one a parameter
of all rows or one effect of the row's group. Derivatives of all rows come at once, in forward mode,
along k directions of θ: a shared parameter alone, or effect j of *every* group together, since a
row sees its own group's only.

A hierarchy that is written z_g ~ N(0, 1), b_g = τ z_g is taken in the coordinates b_g: there rows
do not touch log τ, as in the centred form. `scale_of` says which entries of θ are multiplied by
which scale (`Rescaling`).
"""

from __future__ import annotations

import importlib
from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from corebayes.models.compiling import call, pad
from corebayes.models.rescaling import Rescaling
from corebayes.models.structure import Structure, StructuredModel, Touch
from corebayes.types import Array, Block, Indices, Model

# Rows of one call: few shapes, since each is compiled.
SIZES = (128, 1024, 4096)


class Driver(NamedTuple):
    """The whole numbers in the data that say which group a row is in."""

    field: str
    column: int | None
    """Of a field with several columns."""
    first: int
    """The smallest of them, which is group 0."""
    last: int

    @property
    def name(self) -> str:
        return self.field if self.column is None else f"{self.field}[{self.column}]"

    def values(self, block: Block) -> Array:
        values = block[self.field]
        return values if self.column is None else values[:, self.column]


class RowStructure(NamedTuple):
    """The structure of a model, and what in the data decides on the groups."""

    structure: Structure
    drivers: tuple[Driver, ...]
    scale_of: Indices
    """(d,): which log scale multiplies a parameter; −1 for none."""
    untouched: Indices
    """Those of the shared parameters that no row touches: means of effects."""

    def groups(self, block: Block) -> Indices:
        """The row's group in each term, (n, terms)."""
        numbers = [driver.values(block) - driver.first for driver in self.drivers]
        return np.stack(numbers, axis=1).astype(np.int64)


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


class TouchingModel:
    """What a model with `row_terms` and `prior_term` in JAX gets from its `row_structure`."""

    row_structure: RowStructure | None = None

    @abstractmethod
    def row_terms(self, theta: Any, rows: Mapping[str, Any]) -> Any:
        """f_n(θ) of these rows, (n,)."""

    @abstractmethod
    def prior_term(self, theta: Any) -> Any:
        """log π_0(θ)."""

    @property
    def structure(self) -> Structure | None:
        """Which coordinates rows touch; None where they touch everything."""
        return None if self.row_structure is None else self.row_structure.structure

    @property
    def _known(self) -> RowStructure:
        assert self.row_structure is not None
        return self.row_structure

    @property
    def num_predictors(self) -> int:
        return len(self._columns)

    @cached_property
    def _columns(self) -> Indices:
        """Which of the touched parameters, in the order of `Touch.designs`, are predictors."""
        structure, untouched = self._known.structure, self._known.untouched
        shared = np.flatnonzero(~np.isin(structure.shared, untouched))
        effects = sum(term.num_effects for term in structure.terms)
        return np.append(shared, structure.shared.size + np.arange(effects))

    @cached_property
    def _directions(self) -> Array:
        """(k, d): where each predictor leads in the coordinates."""
        known = self._known
        shared = np.setdiff1d(known.structure.shared, known.untouched, assume_unique=True)
        places = [np.array([place]) for place in known.structure.shared if place in shared]
        for term in known.structure.terms:
            places += list(term.positions.T)
        directions = np.zeros((len(places), known.scale_of.size))
        for direction, place in zip(directions, places, strict=True):
            direction[place] = 1.0
        return directions

    def touch(self, block: Block) -> Touch:
        columns, structure = self._columns, self._known.structure
        width = structure.shared.size + sum(term.num_effects for term in structure.terms)
        chosen = np.zeros((columns.size, width))
        chosen[np.arange(columns.size), columns] = 1.0
        designs = np.broadcast_to(chosen, (len(block), *chosen.shape))
        return Touch(designs, self._known.groups(block))

    def row_means(self, places: Array, block: Block) -> RowMeans:
        """Averages over places (R, d) of rows' potentials, slopes and Hessians.

        Cost: R·k² potentials of every row.
        """
        parts: list[RowMeans] = []
        for first in range(0, len(block), SIZES[-1]):
            rows = {name: a[first : first + SIZES[-1]] for name, a in block.fields.items()}
            number = min(len(block) - first, SIZES[-1])
            size = next(size for size in SIZES if size >= number)
            filled = {name: pad(values, size) for name, values in rows.items()}
            answer = _call(self._compiled_means, places, filled)
            parts.append(RowMeans(*(part[:number] for part in answer)))
        return RowMeans(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    @cached_property
    def rescaling(self) -> Rescaling:
        """From the coordinates to θ, as the model has it."""
        return Rescaling(self._known.scale_of)

    def prior_mean(self, places: Array) -> float:
        """The average of log π_0 in the coordinates, over places (R, d)."""
        return float(_call(self._compiled_prior_mean, places))

    def prior_products(self, places: Array, probes: Array) -> tuple[Array, Array]:
        """Averages over places of the gradient (d,) and of the Hessian times probes (K, d)."""
        return _call(self._compiled_prior_products, places, probes)

    def prior_of_scales(self, places: Array, scales: Array) -> ScaleJet:
        """The average of log π_0 over places whose scales are all set to these."""
        return ScaleJet(*_call(self._compiled_prior_of_scales, places, scales))

    def _traced_prior(self, coordinates: Any) -> Any:
        volume = self.rescaling.traced_log_volume(coordinates)
        return self.prior_term(self.rescaling.traced(coordinates)) + volume

    @cached_property
    def _compiled_means(self) -> Any:
        jax, directions = _jax(), self._directions

        def at(place: Any, rows: Mapping[str, Any]) -> Any:
            def moved(steps: Any) -> Any:
                return self.row_terms(self.rescaling.traced(place + steps @ directions), rows)

            def slopes(steps: Any) -> Any:
                return jax.jacfwd(moved)(steps)

            zero = jax.numpy.zeros(len(directions))
            return moved(zero), slopes(zero), jax.jacfwd(slopes)(zero)

        def means(places: Any, rows: Mapping[str, Any]) -> Any:
            def add(total: Any, place: Any) -> Any:
                return jax.tree_util.tree_map(jax.numpy.add, total, at(place, rows)), None

            def empty(shape: Any) -> Any:
                return jax.numpy.zeros(shape.shape, shape.dtype)

            def mean(total: Any) -> Any:
                return total / len(places)

            zeros = jax.tree_util.tree_map(empty, jax.eval_shape(at, places[0], rows))
            total, _ = jax.lax.scan(add, zeros, places)
            return jax.tree_util.tree_map(mean, total)

        return jax.jit(means)

    @cached_property
    def _compiled_prior_mean(self) -> Any:
        jax = _jax()

        def mean(places: Any) -> Any:
            return jax.vmap(self._traced_prior)(places).mean()

        return jax.jit(mean)

    @cached_property
    def _compiled_prior_products(self) -> Any:
        jax = _jax()
        gradient = jax.grad(self._traced_prior)

        def products(place: Any, probes: Any) -> Any:
            def product(probe: Any) -> Any:
                return jax.jvp(gradient, (place,), (probe,))[1]

            return gradient(place), jax.vmap(product)(probes)

        def means(places: Any, probes: Any) -> Any:
            slopes, bends = jax.vmap(products, in_axes=(0, None))(places, probes)
            return slopes.mean(axis=0), bends.mean(axis=0)

        return jax.jit(means)

    @cached_property
    def _compiled_prior_of_scales(self) -> Any:
        jax, positions = _jax(), self._known.structure.scales

        def value(scales: Any, places: Any) -> Any:
            return jax.vmap(self._traced_prior)(places.at[:, positions].set(scales)).mean()

        def jet(places: Any, scales: Any) -> Any:
            both = jax.value_and_grad(value)(scales, places)
            return *both, jax.hessian(value)(scales, places)

        return jax.jit(jet)


class LocalModel(TouchingModel, StructuredModel):  # pyright: ignore[reportIncompatibleMethodOverride]
    """A structured model whose predictors are parameters; for types only."""


def is_touching(model: Model) -> TypeGuard[LocalModel]:
    """Whether what rows touch is known from derivatives."""
    return isinstance(model, TouchingModel) and model.row_structure is not None


def _jax() -> Any:
    return importlib.import_module("jax")


def _call(kernel: Any, *arguments: Any) -> Any:
    return _jax().tree_util.tree_map(np.asarray, call(kernel, *arguments))
