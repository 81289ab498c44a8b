"""Models of one's own whose rows touch few parameters.

What rows say is a function of the touched parameters themselves: k predictors, each one a parameter
of all rows or one effect of the row's group. Derivatives of all rows come at once, along k
directions of θ: a shared parameter alone, or effect j of *every* group together, since a row sees
its own group's only; by JAX (`touching_traced`), or by differences (`touching_differences`).

A hierarchy that is written z_g ~ N(0, 1), b_g = τ z_g is taken in the coordinates b_g: there rows
do not touch log τ, as in the centred form. `scale_of` says which entries of θ are multiplied by
which scale (`Rescaling`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from corebayes.models.rescaling import Rescaling
from corebayes.models.structure import Structure, StructuredModel, Touch
from corebayes.models.touching_differences import Differences
from corebayes.models.touching_traced import RowMeans, ScaleJet, Traced
from corebayes.types import Array, Block, Indices, Model


class Driver(NamedTuple):
    """The whole numbers in the data that say which group a row is in."""

    field: str
    column: int | None
    """Of a field with several columns."""
    first: int
    """The smallest of them, which is group 0."""
    last: int
    label: str = ""
    """What the column is called, where it has a name."""

    @property
    def name(self) -> str:
        return self.label or (self.field if self.column is None else f"{self.field}[{self.column}]")

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


class TouchingModel:
    """What a model with `row_terms` and `prior_term`, or plain functions, gets from its
    `row_structure`."""

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

    @property
    def is_traced(self) -> bool:
        """Whether JAX can follow `row_terms` and `prior_term`."""
        return True

    @cached_property
    def rescaling(self) -> Rescaling:
        """From the coordinates to θ, as the model has it."""
        return Rescaling(self._known.scale_of)

    @cached_property
    def _compiled_kernels(self) -> Traced | Differences:
        directions: Array = self._directions
        if not self.is_traced:
            model: Any = self
            return Differences(model, directions)
        return Traced(self.row_terms, self.prior_term, directions, self.rescaling)

    @property
    def precision(self) -> float:
        """What derivatives are right to, relative to the largest."""
        return self._compiled_kernels.precision

    def row_means(self, places: Array, block: Block) -> RowMeans:
        """Averages over places (R, d) of rows' potentials, slopes and Hessians.

        Cost: R·k² potentials of every row.
        """
        return self._compiled_kernels.row_means(places, block)

    def touched_gradient(self, theta: Array, block: Block, weights: Array) -> Array:
        """∇ Σ_n w_n f_n where only differences are to be had. Cost: 4·k potentials of every row."""
        kernels, known = self._compiled_kernels, self._known
        assert isinstance(kernels, Differences)
        slopes = weights[:, None] * kernels.row_slopes(theta, block)
        gradient, groups = np.zeros(theta.size), known.groups(block)
        shared = known.structure.shared[~np.isin(known.structure.shared, known.untouched)]
        gradient[shared], column = slopes[:, : shared.size].sum(axis=0), shared.size
        for number, term in zip(groups.T, known.structure.terms, strict=True):
            own = slopes[:, column : column + term.num_effects]
            np.add.at(gradient, term.positions[number], own)
            column += term.num_effects
        return gradient

    def prior_mean(self, places: Array) -> float:
        """The average of log π_0 in the coordinates, over places (R, d)."""
        return self._compiled_kernels.prior_mean(places)

    def prior_products(self, places: Array, probes: Array) -> tuple[Array, Array]:
        """Averages over places of the gradient (d,) and of the Hessian times probes (K, d)."""
        return self._compiled_kernels.prior_products(places, probes)

    def prior_of_scales(self, places: Array, scales: Array) -> ScaleJet:
        """The average of log π_0 over places whose scales are all set to these."""
        positions = self._known.structure.scales
        return self._compiled_kernels.prior_of_scales(places, positions, scales)


class LocalModel(TouchingModel, StructuredModel):  # pyright: ignore[reportIncompatibleMethodOverride]
    """A structured model whose predictors are parameters; for types only."""


def is_touching(model: Model) -> TypeGuard[LocalModel]:
    """Whether what rows touch is known from derivatives."""
    return isinstance(model, TouchingModel) and model.row_structure is not None
