"""What a regression checks of its rows once, in the first pass over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from corebayes.data.warn import warn
from corebayes.models.priors.moments import ColumnMoments
from corebayes.models.rank import describe_deficiency
from corebayes.models.special import scratch
from corebayes.types import Array, Block, Data, Indices

# More different numbers are no categories.
MOST_KINDS = 1000
# Different targets that are kept: enough to tell labels, which are two.
MOST_DIFFERENT = 3
# Numbers of a block that stay in a core's cache, and rows beyond which calls cost nothing.
BLOCK_VALUES, MOST_ROWS = 72_000, 16_384


class Regression(Protocol):
    """The part of a GLM that the check needs."""

    @property
    def dim(self) -> int: ...

    @property
    def parameter_names(self) -> tuple[str, ...]: ...

    def design(self, block: Block) -> Array: ...

    def target(self, block: Block) -> Array: ...

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


class SeenRows(NamedTuple):
    """What was seen of the targets and, to know the rank, of the features of some rows."""

    bad: Bad | None
    """The first row with an impossible number."""
    lowest: float
    targets: Array
    """The first different targets."""
    numbers: Indices
    """The first rows that have them."""
    gram: Array
    """Of the columns and, last, the target without the offset."""
    moments: ColumnMoments
    kinds: Array
    """The different numbers of the survey, sorted."""


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

    @property
    def kind(self) -> str:
        return self.family.kind

    def check_target(self, y: Array, lowest: float) -> tuple[NDArray[np.bool_], str]:
        return self.family.check_target(y, lowest)

    def check_columns(self, block: Block) -> list[tuple[str, Array, NDArray[np.bool_], str]]:
        return self.family.check_columns(block)

    def survey_of(self, block: Block) -> Array:
        return self.family.survey_of(block)


@dataclass(frozen=True)
class Targets:
    """Refuses the first row with an impossible target; warns once of dependent columns.

    What is learned are the moments of columns and target. Rows that count zero times are passed
    over. Cost: N·d² flops.
    """

    model: Regression
    rank: bool = True
    """Whether dependent columns are looked for."""

    @property
    def block_rows(self) -> int:
        return min(max(BLOCK_VALUES // (len(self.model.parameter_names) + 2), 64), MOST_ROWS)

    @property
    def key(self) -> Any:
        return self.model.kind, self.model.parameter_names

    def answer(self, block: Block, numbers: Indices) -> SeenRows:
        if block.counts is not None:
            counted = np.flatnonzero(block.counts > 0.0)
            block, numbers = block.take(counted), numbers[counted]
        design, target = self.model.design(block), self.model.target(block)
        apart: Any = getattr(self.model, "offset", None)
        # A family has the name of its column there.
        offset: Any = apart(block) if callable(apart) else None
        # A column of the design is a row here: what is added up stands side by side.
        values = scratch("columns of a block", (design.shape[1] + 2, len(block)))
        values[:-2], values[-1] = design.T, 0.0 if offset is None else offset
        # A feature too large to square says nothing about rank: see describe_deficiency.
        with np.errstate(over="ignore", invalid="ignore"):
            values[-2] = target - values[-1]
            both = values[:-1] if self.rank else values[:0]
            # One column too many: a plain product of matrices is quicker here than a symmetric one.
            gram = (both @ values.T)[:, : len(both)]
        values[-2] = target
        targets, first = _first_different(block.y)
        # Of labels the different ones are looked at, each where it is first.
        few = targets.size < MOST_DIFFERENT
        these = (targets, numbers[first]) if few else (block.y, numbers)
        bad = self._bad(*these, np.inf) or self._bad_column(block, numbers)
        kinds = np.empty(0) if bad else _few(self.model.survey_of(block))
        moments = ColumnMoments.of(values, block.counts)
        lowest = float(block.y.min(initial=np.inf))
        return SeenRows(bad, lowest, targets, numbers[first], gram, moments, kinds)

    def merge(self, first: SeenRows, second: SeenRows) -> SeenRows:
        bad = first.bad
        known = first.targets.tolist()
        if bad is None and all(one in known for one in second.targets.tolist()):
            bad = second.bad
        elif bad is None:
            # What the rows before say is held against the first row of every target.
            one = self._bad(second.targets, second.numbers, first.lowest)
            bad = min((each for each in (one, second.bad) if each is not None), default=None)
        targets, places = _first_different(np.append(first.targets, second.targets))
        numbers = np.append(first.numbers, second.numbers)[places]
        with np.errstate(over="ignore", invalid="ignore"):
            gram = first.gram + second.gram
        kinds = _few(np.concatenate([first.kinds, second.kinds]))
        lowest, moments = min(first.lowest, second.lowest), first.moments.plus(second.moments)
        return SeenRows(bad, lowest, targets, numbers, gram, moments, kinds)

    def conclude(self, answer: SeenRows | None, target_name: str) -> SeenRows | None:
        if answer is None:
            return None
        if answer.bad is not None:
            row, value, rule, column = answer.bad
            if column:
                raise ValueError(f"row {row}, column {column!r}: {value!r} cannot be: {rule}")
            raise ValueError(
                f"row {row}, column {target_name!r}: {value!r} is not a target "
                f"of {self.model.kind}: {rule}"
            )
        if self.rank and (problem := self._dependent(answer.gram)):
            warn(f"{problem}: the data cannot tell these coefficients apart, only the prior does")
        return answer

    def _dependent(self, gram: Array) -> str | None:
        return describe_deficiency(gram[:-1, :-1], self.model.parameter_names)

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


def _few(values: Array) -> Array:
    """The different ones, so many that one can tell that they are too many."""
    return np.unique(values)[:MOST_KINDS] if values.size else values


def _first_different(y: Array) -> tuple[Array, Indices]:
    """The first different values, and where they are first."""
    places: list[int] = []
    other = np.ones(y.size, dtype=bool)
    while len(places) < MOST_DIFFERENT and y.size:
        place = int(other.argmax())
        if not other[place]:
            break
        places.append(place)
        other &= y != y[place]
    first = np.array(places, dtype=np.int64)
    return y[first], first
