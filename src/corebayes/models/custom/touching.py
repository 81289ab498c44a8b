"""Models of one's own whose rows touch few parameters, or see them through few predictors.

The touched parameters are those of all rows and the effects of the row's groups, m together. Rows
see them through k predictors: the slope of f_n in the parameters of one of them has the same
direction A_n at every θ, so that f_n is a function of A_n·θ. A_n is known from one such slope, and
has unit length; a predictor of one parameter is this parameter. By JAX (`touching_traced`) rows of
few parameters have derivatives at predictors of their own, as those of built-in models have, and
those of many at places that are the same for all; by differences (`touching_differences`) each
parameter is a predictor.

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
from numpy.typing import NDArray

from corebayes.models.custom.rescaling import Rescaling
from corebayes.models.custom.touching_differences import Differences
from corebayes.models.custom.touching_traced import RowMeans, ScaleJet, Traced
from corebayes.models.structure import Jets, Structure, StructuredModel, Touch, is_structured
from corebayes.types import Array, Block, Indices, Model

# Parameters up to which each row may have a θ of its own.
MOST_WRITTEN = 64


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
    predictor_of: Indices
    """(m,): which predictor a touched parameter is part of; shared ones first, then each term's."""
    places: Array
    """(J, m): touched parameters at which slopes of rows show how they see their predictors, each
    on the scale that it has in rows, and none zero."""

    @property
    def num_predictors(self) -> int:
        return int(self.predictor_of.max(initial=-1)) + 1

    @property
    def members(self) -> NDArray[np.bool_]:
        """(k, m): which touched parameters a predictor is made of."""
        return np.arange(self.num_predictors)[:, None] == self.predictor_of

    @property
    def columns(self) -> Indices:
        """(m,): where the touched parameters are in `Touch.designs`."""
        shared = np.flatnonzero(~np.isin(self.structure.shared, self.untouched))
        effects = sum(term.num_effects for term in self.structure.terms)
        return np.append(shared, self.structure.shared.size + np.arange(effects))

    @property
    def column_of(self) -> Indices:
        """(d,): which of the touched parameters each entry of the coordinates is to the rows that
        see it; m where none does."""
        structure, number = self.structure, self.predictor_of.size
        touched = structure.shared[~np.isin(structure.shared, self.untouched)]
        column_of = np.full(self.scale_of.size, number, dtype=np.int64)
        column_of[touched], column = np.arange(touched.size), touched.size
        for term in structure.terms:
            column_of[term.positions] = column + np.arange(term.num_effects)
            column += term.num_effects
        return column_of

    def groups(self, block: Block) -> Indices:
        """The row's group in each term, (n, terms)."""
        numbers = [driver.values(block) - driver.first for driver in self.drivers]
        return np.array(numbers, dtype=np.int64).reshape(-1, len(block)).T


class TouchingModel:
    """What a model with `row_terms` and `prior_term`, or plain functions, gets from its
    `row_structure`."""

    row_structure: RowStructure | None = None
    # Swapped as a whole, so that any thread may use it.
    _compiled_loads: tuple[Block, Array] | None = None

    @abstractmethod
    def row_terms(self, theta: Any, rows: Mapping[str, Any]) -> Any:
        """f_n(θ) of these rows, (n,)."""

    @abstractmethod
    def prior_term(self, theta: Any) -> Any:
        """log π_0(θ)."""

    @property
    def structure(self) -> Structure | None:
        """Which coordinates rows touch; None where they touch everything."""
        known = self.row_structure
        if known is None:
            return None
        found = known.num_predictors if self.is_traced else None
        return known.structure._replace(num_predictors=found)

    @property
    def _known(self) -> RowStructure:
        assert self.row_structure is not None
        return self.row_structure

    @property
    def num_predictors(self) -> int:
        return self._known.num_predictors

    def touch(self, block: Block) -> Touch:
        """Cost: a gradient of every row, where a predictor has several parameters."""
        known = self._known
        width = known.structure.shared.size + sum(t.num_effects for t in known.structure.terms)
        designs = np.zeros((len(block), known.num_predictors, width))
        designs[:, :, known.columns] = self.loads(block)
        return Touch(designs, known.groups(block))

    def loads(self, block: Block) -> Array:
        """(n, k, m): how rows see their predictors in the touched parameters. Those of the last
        block are kept: whoever asks for designs asks for derivatives next."""
        last = self._compiled_loads
        if last is not None and last[0] is block:
            return last[1]
        kernels, members = self._compiled_kernels, self._known.members
        if isinstance(kernels, Traced) and len(members) < members.shape[1] and len(block):
            loads = kernels.loads(block)
        else:
            loads = np.broadcast_to(members.astype(np.float64), (len(block), *members.shape))
        self._compiled_loads = (block, loads)
        return loads

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
        known = self._known
        column_of = known.column_of
        if not self.is_traced:
            model: Any = self
            columns = np.arange(known.predictor_of.size)
            return Differences(model, (columns[:, None] == column_of).astype(np.float64))
        return Traced(
            self.row_terms,
            self.prior_term,
            column_of,
            known.members,
            known.places,
            self.rescaling,
        )

    @property
    def precision(self) -> float:
        """What derivatives are right to, relative to the largest."""
        return self._compiled_kernels.precision

    def touched_slopes(self, touched: Array, block: Block) -> Array:
        """(n, m): slopes of rows in what they touch, where that is these (m,)."""
        kernels = self._compiled_kernels
        assert isinstance(kernels, Traced)
        return kernels.slopes(touched, block)

    @property
    def has_jets(self) -> bool:
        """Whether rows have derivatives at predictors of their own."""
        return self.is_traced and self._known.scale_of.size <= MOST_WRITTEN

    def jets(self, predictors: Array, block: Block) -> Jets:
        """At predictors (n, k, R). Cost: R·k² potentials of every row."""
        kernels, (num_rows, k, places) = self._compiled_kernels, predictors.shape
        assert isinstance(kernels, Traced)
        if num_rows == 0:
            return Jets(*(np.empty((0, *(k,) * order, places)) for order in range(3)))
        return kernels.jets(predictors, self.loads(block), block)

    def row_means(self, places: Array, block: Block) -> RowMeans:
        """Averages over coordinates (R, d) of rows' potentials, slopes and Hessians.

        Cost: R·k² potentials of every row.
        """
        kernels = self._compiled_kernels
        if isinstance(kernels, Differences):
            return kernels.row_means(places, block)
        return kernels.row_means(places, self.loads(block), block)

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


def may_have_modes(model: Model) -> bool:
    """Whether other modes are to be looked for: nothing is known of the shape of somebody else's
    model, and thousands of effects have no modes to search."""
    if model.log_concave or not is_structured(model):
        return not model.log_concave
    return isinstance(model, TouchingModel) and not model.structure.terms


def is_touching(model: Model) -> TypeGuard[LocalModel]:
    """Whether what rows touch is known from derivatives."""
    return isinstance(model, TouchingModel) and model.row_structure is not None
