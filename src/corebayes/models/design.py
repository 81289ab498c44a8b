"""What a regression checks of its rows once, in the first pass over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from corebayes.data.warn import warn
from corebayes.models.moments import Moments
from corebayes.models.rank import describe_deficiency
from corebayes.types import Array, Block, Data, Indices


class Regression(Protocol):
    """The part of a GLM that the check needs."""

    @property
    def dim(self) -> int: ...

    @property
    def parameter_names(self) -> tuple[str, ...]: ...

    def design(self, block: Block) -> Array: ...

    def target(self, block: Block) -> Array: ...

    def check_target(self, y: Array, lowest: float) -> tuple[NDArray[np.bool_], str]: ...


def coefficient_names(data: Data, *, intercept: bool) -> tuple[str, ...]:
    """Column names, or beta[0], beta[1], …; `intercept` comes last."""
    template = data.template
    for name, meaning in (("X", "features"), ("y", "a target")):
        if name not in template.fields:
            raise ValueError(
                f"a regression needs {meaning}: the data has no field {name!r} "
                f"(it has {', '.join(template.fields)}); pass (X, y), or name a target column"
            )
    if template.X.ndim != 2 or template.y.ndim != 1:
        raise ValueError(
            "X must have two axes and y one, but a row of X has shape "
            f"{template.X.shape[1:]} and a row of y {template.y.shape[1:]}"
        )
    names = data.column_names or tuple(f"beta[{k}]" for k in range(template.X.shape[1]))
    if not intercept:
        return names
    if "intercept" in names:
        raise ValueError(
            "a column is already called 'intercept': leave out intercept=True, or rename it"
        )
    return (*names, "intercept")


class Seen(NamedTuple):
    """What was seen of the targets and, to know the rank, of the features of some rows."""

    bad: tuple[int, float, str] | None
    """The first row with an impossible target, the target, and what it should be."""
    lowest: float
    targets: Array
    """The first three different targets."""
    numbers: Indices
    """The first rows that have them."""
    gram: Array
    """Of the columns and, last, the target without the offset."""
    moments: Moments


@dataclass(frozen=True)
class NamedColumns:
    """A regression that knows its columns and not yet its prior."""

    family: Any
    parameter_names: tuple[str, ...]

    @property
    def dim(self) -> int:
        return len(self.parameter_names)

    def design(self, block: Block) -> Array:
        return self.family.design(block)

    def target(self, block: Block) -> Array:
        return self.family.target(block)

    def check_target(self, y: Array, lowest: float) -> tuple[NDArray[np.bool_], str]:
        return self.family.check_target(y, lowest)


@dataclass(frozen=True)
class Targets:
    """Refuses the first row with an impossible target; warns once of dependent columns.

    What is learned are the moments of columns and target. Rows that count zero times are passed
    over. Cost: N·d² flops.
    """

    model: Regression
    rank: bool = True
    """Whether dependent columns are looked for."""
    block_rows: int = 4096

    @property
    def key(self) -> Any:
        return type(self._family), self.model.parameter_names

    @property
    def _family(self) -> Any:
        return getattr(self.model, "family", self.model)

    def answer(self, block: Block, numbers: Indices) -> Seen:
        if block.counts is not None:
            counted = np.flatnonzero(block.counts > 0.0)
            block, numbers = block.take(counted), numbers[counted]
        design, target = self.model.design(block), self.model.target(block)
        apart: Any = getattr(self.model, "offset", None)
        # A family has the name of its column there.
        offset: Any = apart(block) if callable(apart) else None
        # A feature too large to square says nothing about rank: see describe_deficiency.
        with np.errstate(over="ignore", invalid="ignore"):
            left = target if offset is None else target - offset
            both = np.column_stack([design, left]) if self.rank else np.zeros((0, 0))
            gram = both.T @ both
        targets, first = _first_different(block.y)
        bad = self._bad(block.y, numbers, np.inf)
        moments = Moments.of(design, target, offset, block.counts)
        lowest = float(block.y.min(initial=np.inf))
        return Seen(bad, lowest, targets, numbers[first], gram, moments)

    def merge(self, first: Seen, second: Seen) -> Seen:
        bad = first.bad
        if bad is None:
            # What the rows before say is held against the first row of every target.
            one = self._bad(second.targets, second.numbers, first.lowest)
            bad = min((each for each in (one, second.bad) if each is not None), default=None)
        targets, places = _first_different(np.append(first.targets, second.targets))
        numbers = np.append(first.numbers, second.numbers)[places]
        with np.errstate(over="ignore", invalid="ignore"):
            gram = first.gram + second.gram
        lowest, moments = min(first.lowest, second.lowest), first.moments.plus(second.moments)
        return Seen(bad, lowest, targets, numbers, gram, moments)

    def conclude(self, answer: Seen | None, target_name: str) -> Seen | None:
        if answer is None:
            return None
        if answer.bad is not None:
            row, value, rule = answer.bad
            raise ValueError(
                f"row {row}, column {target_name!r}: {value!r} is not a target "
                f"of {type(self._family).__name__}: {rule}"
            )
        if self.rank and (problem := self._dependent(answer.gram)):
            warn(f"{problem}: the data cannot tell these coefficients apart, only the prior does")
        return answer

    def _dependent(self, gram: Array) -> str | None:
        return describe_deficiency(gram[:-1, :-1], self.model.parameter_names)

    def _bad(self, y: Array, numbers: Indices, lowest: float) -> tuple[int, float, str] | None:
        bad, rule = self.model.check_target(y, lowest)
        if not np.any(bad):
            return None
        first = int(np.argmax(bad))
        return int(numbers[first]), float(y[first]), rule


def _first_different(y: Array) -> tuple[Array, Indices]:
    """The first three different values, and where they are first: enough to tell labels."""
    places: list[int] = []
    other = np.ones(y.size, dtype=bool)
    while len(places) < 3 and np.any(other):
        places.append(int(np.argmax(other)))
        other &= y != y[places[-1]]
    first = np.array(places, dtype=np.int64)
    return y[first], first
