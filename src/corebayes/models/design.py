"""What a regression checks of its rows once, when it is bound to them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from corebayes.data.streams import parts_of
from corebayes.deadline import check_time
from corebayes.models.rank import describe_deficiency
from corebayes.types import Array, Block, Data, Indices

ROWS_AT_ONCE = 4096


class Regression(Protocol):
    """The part of a GLM that the check needs."""

    @property
    def parameter_names(self) -> tuple[str, ...]: ...

    def design(self, block: Block) -> Array: ...

    def check_target(self, y: Array, lowest: float) -> tuple[NDArray[np.bool_], str]: ...


def coefficient_names(data: Data, *, intercept: bool) -> tuple[str, ...]:
    """Column names, or beta[0], beta[1], …; `intercept` comes last."""
    if data.num_rows == 0:
        raise ValueError("the data has no rows")
    first = data.read(0, 1)
    for name, meaning in (("X", "features"), ("y", "a target")):
        if name not in first.fields:
            raise ValueError(
                f"a regression needs {meaning}: the data has no field {name!r} "
                f"(it has {', '.join(first.fields)}); pass (X, y), or name a target column"
            )
    if first.X.ndim != 2 or first.y.ndim != 1:
        raise ValueError(
            "X must have two axes and y one, but a row of X has shape "
            f"{first.X.shape[1:]} and a row of y {first.y.shape[1:]}"
        )
    names = data.column_names or tuple(f"beta[{k}]" for k in range(first.X.shape[1]))
    if not intercept:
        return names
    if "intercept" in names:
        raise ValueError(
            "a column is already called 'intercept': leave out intercept=True, or rename it"
        )
    return (*names, "intercept")


class Lowest(NamedTuple):
    """The smallest target of some rows and the first row that has it; infinite without rows."""

    target: float
    row: int


@dataclass(frozen=True)
class TargetCheck:
    """Whether the targets are the model's, as a question that any pass over the rows can ask.

    Rows that count zero times are passed over.
    """

    model: Regression
    target_name: str

    def answer(self, block: Block, numbers: Indices, lowest: float = np.inf) -> Lowest:
        """`lowest` is the smallest target of earlier rows, where it is known."""
        block, numbers = _counted(block, numbers)
        if len(block) == 0:
            return Lowest(np.inf, -1)
        self._refuse(block.y, numbers, lowest)
        first = int(np.argmin(block.y))
        return Lowest(float(block.y[first]), int(numbers[first]))

    def merge(self, first: Lowest, second: Lowest) -> Lowest:
        """Whether later rows say the same thing in the same way as earlier ones."""
        if second.row >= 0:
            self._refuse(np.array([second.target]), np.array([second.row]), first.target)
        return first if first.target <= second.target else second

    def _refuse(self, y: Array, numbers: Indices, lowest: float) -> None:
        bad, rule = self.model.check_target(y, lowest)
        if np.any(bad):
            first = int(np.argmax(bad))
            raise ValueError(
                f"row {numbers[first]}, column {self.target_name!r}: {float(y[first])!r} is not a "
                f"target of {type(self.model).__name__}: {rule}"
            )


def check_rows(model: Regression, data: Data) -> None:
    """Refuse the first row with an impossible target; warn once of dependent columns.

    Cost: one pass, N·d² flops.
    """
    check, lowest = TargetCheck(model, data.target_name), np.inf
    dim = len(model.parameter_names)
    gram = np.zeros((dim, dim))
    for numbers, block in _blocks(data):
        check_time()
        lowest = min(lowest, check.answer(block, numbers, lowest).target)
        design = model.design(block)
        # A feature too large to square says nothing about rank: see describe_deficiency.
        with np.errstate(over="ignore", invalid="ignore"):
            gram += design.T @ design
    problem = describe_deficiency(gram, model.parameter_names)
    if problem:
        warnings.warn(
            f"{problem}: the data cannot tell these coefficients apart, only the prior does",
            UserWarning,
            stacklevel=3,
        )


def _blocks(data: Data) -> Iterator[tuple[Indices, Block]]:
    """Row numbers and rows that count, a few thousand at a time."""
    for start, stop in data.shards:
        for numbers, rows in parts_of(data, start, stop):
            for first in range(0, len(rows), ROWS_AT_ONCE):
                these = slice(first, first + ROWS_AT_ONCE)
                block, block_numbers = _counted(rows.take(these), numbers[these])
                if len(block):
                    yield block_numbers, block


def _counted(block: Block, numbers: Indices) -> tuple[Block, Indices]:
    if block.counts is None or block.counts.min(initial=1.0) > 0.0:
        return block, numbers
    counted = np.flatnonzero(block.counts > 0.0)
    return block.take(counted), numbers[counted]
