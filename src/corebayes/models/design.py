"""What a regression checks of its rows once, in the first pass over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from corebayes.data.warn import warn
from corebayes.models.rank import describe_deficiency
from corebayes.types import Array, Block, Data, Indices

# More different numbers are no categories.
MOST_KINDS = 1000


class Regression(Protocol):
    """The part of a GLM that the check needs."""

    @property
    def dim(self) -> int: ...

    @property
    def parameter_names(self) -> tuple[str, ...]: ...

    def design(self, block: Block) -> Array: ...

    @property
    def kind(self) -> str:
        """What messages call it; with the names, what tells one check from another."""
        ...

    def check_target(self, y: Array, lowest: float) -> tuple[NDArray[np.bool_], str]: ...

    def check_columns(self, block: Block) -> list[tuple[str, Array, NDArray[np.bool_], str]]:
        """Of columns beside features and target: name, entries, which are bad, and the rule."""
        ...

    def survey_of(self, block: Block) -> Array:
        """Numbers of which the different ones of all rows are wanted."""
        ...


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


class Bad(NamedTuple):
    """A number that the model has no density for."""

    row: int
    value: float
    rule: str
    column: str = ""
    """Empty for the target."""


class Seen(NamedTuple):
    """What was seen of the targets and, to know the rank, of the features of some rows."""

    bad: Bad | None
    """The first row with an impossible number."""
    lowest: float
    targets: Array
    """The first three different targets."""
    numbers: Indices
    """The first rows that have them."""
    gram: Array
    kinds: Array
    """The different numbers of the survey, sorted."""


@dataclass(frozen=True)
class Targets:
    """Refuses the first row with an impossible target; warns once of dependent columns.

    Rows that count zero times are passed over. Cost: N·d² flops.
    """

    model: Regression
    rank: bool = True
    """Whether dependent columns are looked for."""
    block_rows: int = 4096
    found: list[Array] = field(default_factory=list[Array])
    """What the survey found, once it is over."""

    @property
    def key(self) -> Any:
        return type(self.model), self.model.kind, self.model.parameter_names

    def answer(self, block: Block, numbers: Indices) -> Seen:
        if block.counts is not None:
            counted = np.flatnonzero(block.counts > 0.0)
            block, numbers = block.take(counted), numbers[counted]
        design = self.model.design(block) if self.rank else np.empty((0, self.model.dim))
        # A feature too large to square says nothing about rank: see describe_deficiency.
        with np.errstate(over="ignore", invalid="ignore"):
            gram = design.T @ design
        targets, first = _first_different(block.y)
        bad = self._bad(block.y, numbers, np.inf) or self._bad_column(block, numbers)
        kinds = np.empty(0) if bad else _few(np.unique(self.model.survey_of(block)))
        return Seen(bad, float(block.y.min(initial=np.inf)), targets, numbers[first], gram, kinds)

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
        kinds = _few(np.union1d(first.kinds, second.kinds))
        return Seen(bad, min(first.lowest, second.lowest), targets, numbers, gram, kinds)

    def conclude(self, answer: Seen | None, target_name: str) -> None:
        if answer is None:
            return
        self.found.append(answer.kinds)
        if answer.bad is not None:
            row, value, rule, column = answer.bad
            if column:
                raise ValueError(f"row {row}, column {column!r}: {value!r} cannot be: {rule}")
            raise ValueError(
                f"row {row}, column {target_name!r}: {value!r} is not a target "
                f"of {self.model.kind}: {rule}"
            )
        problem = self.rank and describe_deficiency(answer.gram, self.model.parameter_names)
        if problem:
            warn(f"{problem}: the data cannot tell these coefficients apart, only the prior does")

    def _bad_column(self, block: Block, numbers: Indices) -> Bad | None:
        found = [
            Bad(int(numbers[np.argmax(bad)]), float(values[np.argmax(bad)]), rule, name)
            for name, values, bad, rule in self.model.check_columns(block)
            if np.any(bad)
        ]
        return min(found, default=None)

    def _bad(self, y: Array, numbers: Indices, lowest: float) -> Bad | None:
        bad, rule = self.model.check_target(y, lowest)
        if not np.any(bad):
            return None
        first = int(np.argmax(bad))
        return Bad(int(numbers[first]), float(y[first]), rule)


def _few(kinds: Array) -> Array:
    """So many that one can tell that they are too many."""
    return kinds[:MOST_KINDS]


def _first_different(y: Array) -> tuple[Array, Indices]:
    """The first three different values, and where they are first: enough to tell labels."""
    places: list[int] = []
    other = np.ones(y.size, dtype=bool)
    while len(places) < 3 and np.any(other):
        places.append(int(np.argmax(other)))
        other &= y != y[places[-1]]
    first = np.array(places, dtype=np.int64)
    return y[first], first
