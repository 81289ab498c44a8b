"""A model whose rows are units of several rows: F_u(θ) = Σ_{n ∈ u} c_n f_n(θ).

For models whose rows are independent too: a patient's visits then enter a coreset together or not
at all, with one weight. The tangent space is that of draws, whatever the model within.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from corebayes.data.units import COUNT, ROW
from corebayes.types import Array, Block, Data, Indices, Model


class RowsOfUnits(NamedTuple):
    """The rows of some units, how often each counts, its unit, and where units begin."""

    rows: Block
    counts: Array
    units: Indices
    starts: Indices

    def weights(self, weights: Array | None) -> Array:
        return self.counts if weights is None else self.counts * weights[self.units]


def flat(block: Block) -> RowsOfUnits:
    """The rows of a block of units, unit after unit, without empty places."""
    counts = block[COUNT]
    kept = np.flatnonzero(counts.ravel() > 0.0)
    fields = {
        name: values.reshape(-1, *values.shape[2:])[kept]
        for name, values in block.fields.items()
        if name not in (COUNT, ROW)
    }
    units = kept // max(counts.shape[1], 1)
    starts = np.searchsorted(units, np.arange(len(block)))
    return RowsOfUnits(Block(fields), counts.ravel()[kept], units, starts)


@dataclass(frozen=True, eq=False)
class Units:
    """A model of rows, on units of rows."""

    model: Any

    @property
    def dim(self) -> int:
        return self.model.dim

    @property
    def title(self) -> str:
        """What people call the model within."""
        return str(getattr(self.model, "title", type(self.model).__name__))

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return self.model.parameter_names

    @property
    def log_concave(self) -> bool:
        return self.model.log_concave

    def bind(self, data: Data) -> Units:
        rows: Any = data
        return Units(self.model.bind(rows.flat))

    def row_check(self) -> Any:
        own: Any = getattr(self.model, "row_check", None)
        return None if own is None else UnitCheck(own())

    def potentials(self, draws: Array, block: Block, out: Array | None = None) -> Array:
        rows = flat(block)
        values = self.model.potentials(draws, rows.rows) * rows.counts[:, None]
        result = np.empty((len(block), len(draws))) if out is None else out
        if len(block):
            np.add.reduceat(values, rows.starts, axis=0, out=result)
        return result

    def sum_potentials(self, draws: Array, block: Block, weights: Array | None = None) -> Array:
        rows = flat(block)
        return self.model.sum_potentials(draws, rows.rows, rows.weights(weights))

    def gradient(self, theta: Array, block: Block, weights: Array) -> Array:
        rows = flat(block)
        return self.model.gradient(theta, rows.rows, rows.weights(weights))

    def gradient_and_hessian(
        self, theta: Array, block: Block, weights: Array
    ) -> tuple[Array, Array]:
        rows = flat(block)
        return self.model.gradient_and_hessian(theta, rows.rows, rows.weights(weights))

    def log_base(self, block: Block) -> Array:
        rows = flat(block)
        if len(block) == 0:
            return np.empty(0)
        return np.add.reduceat(rows.counts * self.model.log_base(rows.rows), rows.starts)

    def log_prior(self, draws: Array) -> Array:
        return self.model.log_prior(draws)

    def log_prior_gradient(self, theta: Array) -> Array:
        return self.model.log_prior_gradient(theta)

    def log_prior_hessian(self, theta: Array) -> Array:
        return self.model.log_prior_hessian(theta)

    def config(self) -> dict[str, Any] | None:
        """What is within, where that can be described."""
        own: Any = getattr(self.model, "config", None)
        if own is None:
            return None
        names = list(self.parameter_names)
        return {"model": type(self.model).__name__, "config": own(), "names": names}

    def __repr__(self) -> str:
        return f"Units({self.model!r})"

    def __getattr__(self, name: str) -> Any:
        # What the model says of itself holds for units of its rows.
        if name in ("statement", "priors"):
            return getattr(self.model, name)
        raise AttributeError(name)


@dataclass(frozen=True)
class UnitCheck:
    """A model's question to every row, asked of the rows of units; it names the unit."""

    question: Any
    block_rows: int = 1024

    @property
    def key(self) -> Any:
        return "units", self.question.key

    def answer(self, block: Block, numbers: Indices) -> Any:
        rows = flat(block)
        return self.question.answer(rows.rows, numbers[rows.units])

    def merge(self, first: Any, second: Any) -> Any:
        return self.question.merge(first, second)

    def conclude(self, answer: Any, target_name: str) -> Any:
        return self.question.conclude(answer, target_name)


def as_units(model: Any, template: Block) -> Model:
    """The model for rows that are units, if they are."""
    has_units = COUNT in template.fields and not isinstance(model, Units)
    return Units(model) if has_units else model


def units_from_config(config: Mapping[str, Any], inner: Any) -> Units:
    if inner.dim != len(config["names"]):
        raise ValueError("the model of the units does not have the parameters that they have")
    return Units(inner)
