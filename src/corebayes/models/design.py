"""What a regression checks of its rows once, when it is bound to them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from corebayes.data.streams import parts_of
from corebayes.deadline import check_time
from corebayes.models.rank import describe_deficiency
from corebayes.types import Array, Block, Data

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


def check_rows(model: Regression, data: Data) -> None:
    """Refuse the first row with an impossible target; warn once of dependent columns.

    Rows that count zero times are passed over. Cost: one pass, N·d² flops.
    """
    lowest = np.inf
    dim = len(model.parameter_names)
    gram = np.zeros((dim, dim))
    for numbers, block in _counted_rows(data):
        check_time()
        lowest = min(lowest, _check_targets(model, data, numbers, block, lowest))
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


def _counted_rows(data: Data) -> Iterator[tuple[NDArray[np.int64], Block]]:
    """Row numbers and rows that count, a few thousand at a time."""
    for start, stop in data.shards:
        for numbers, rows in parts_of(data, start, stop):
            for first in range(0, len(rows), ROWS_AT_ONCE):
                these = slice(first, first + ROWS_AT_ONCE)
                block, block_numbers = rows.take(these), numbers[these]
                if block.counts is not None:
                    counted = np.flatnonzero(block.counts > 0.0)
                    block, block_numbers = block.take(counted), block_numbers[counted]
                if len(block):
                    yield block_numbers, block


def _check_targets(
    model: Regression, data: Data, numbers: NDArray[np.int64], block: Block, lowest: float
) -> float:
    """The smallest target of these rows."""
    bad, rule = model.check_target(block.y, lowest)
    if np.any(bad):
        first = int(np.argmax(bad))
        value = float(block.y[first])
        raise ValueError(
            f"row {numbers[first]}, column {data.target_name!r}: {value!r} is not a target "
            f"of {type(model).__name__}: {rule}"
        )
    return float(block.y.min(initial=np.inf))
