"""The columns that a formula makes of a table, once it has looked at one: all in plain data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corebayes.data.frames import check_names
from corebayes.formula import tree
from corebayes.formula.coding import Scoped, scope_terms
from corebayes.formula.columns import Categories, Numbers, as_categories, open_frame, read
from corebayes.formula.evaluate import Columns, evaluate, find_states
from corebayes.formula.functions import coding_of, transform_of
from corebayes.formula.parser import parse
from corebayes.formula.splines import BSpline
from corebayes.formula.transforms import Scale, State
from corebayes.formula.tree import Call, Column, Node, columns_of, label, show
from corebayes.types import Array

MAX_COLUMNS = 10_000


class Factor(NamedTuple):
    node: Node
    levels: tuple[Any, ...] | None = None
    """Of categories, in order; None for numbers."""


@dataclass(frozen=True)
class Design:
    """A formula with what it found in a table: levels, means, knots.

    `apply` computes the columns of any rows from it, all at once or block by block. `to_data` is
    plain JSON, and `design_from_data` takes nothing but that: no text in it is ever evaluated.
    """

    formula: str
    """For people to read."""
    target: Node
    factors: tuple[Factor, ...]
    terms: tuple[Scoped, ...]
    states: Mapping[str, State]

    @classmethod
    def fit(cls, formula: str, frame: Any) -> Design:
        """What the formula finds in a table."""
        return look(formula, frame)[0]

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(itertools.chain.from_iterable(self._names))

    @cached_property
    def _names(self) -> list[list[str]]:
        """The names of the columns of each term; a category of one level may make none."""
        labels = {
            part: self._labels(*part) for part in {part for term in self.terms for part in term}
        }
        names: list[list[str]] = []
        total = 0
        for term in self.terms:
            width = math.prod(len(labels[part]) for part in term)
            total += width
            if total > MAX_COLUMNS:
                raise ValueError(f"the formula makes more than {MAX_COLUMNS:,} columns")
            # The first factor varies fastest.
            parts = itertools.product(*(labels[part] for part in reversed(term))) if width else ()
            names.append([":".join(reversed(part)) or "Intercept" for part in parts])
        return names

    @property
    def target_name(self) -> str:
        return label(self.target)

    @property
    def needs(self) -> list[str]:
        """The columns of a table that the design is computed from."""
        nodes = [self.target, *(factor.node for factor in self.factors)]
        return list(dict.fromkeys(name for node in nodes for name in columns_of(node)))

    def apply(self, columns: Columns) -> Array:
        """The matrix X of these rows."""
        num_rows = _length(columns)
        X = np.empty((num_rows, len(self.column_names)))
        encoded: dict[tuple[int, bool], Array] = {}
        place = 0
        for term, names in zip(self.terms, self._names, strict=True):
            if not names:
                continue
            product = np.ones((num_rows, 1))
            for part in term:
                if part not in encoded:
                    encoded[part] = self._encode(*part, columns)
                wide = encoded[part][:, :, np.newaxis] * product[:, np.newaxis, :]
                product = wide.reshape(num_rows, -1)
            X[:, place : place + product.shape[1]] = product
            place += product.shape[1]
        return X

    def target_of(self, columns: Columns) -> Array:
        """The left side; True counts as 1."""
        if isinstance(self.target, Column) and _levels(self.target, columns) not in (
            None,
            (False, True),
        ):
            raise ValueError(f"the left side {self.target_name!r} must be one column of numbers")
        return evaluate(self.target, columns, self.states)

    def check(self) -> None:
        """Refuse a design that makes no columns, or two of the same name."""
        transform = transform_of(self.target)
        if is_coded(self.target) or not (transform is None or isinstance(transform, Scale)):
            raise ValueError(f"the left side {self.target_name[:60]} must be one column of numbers")
        if not self.column_names:
            raise ValueError("the formula makes no columns: X would be empty")
        check_names(self.column_names)

    def to_data(self) -> dict[str, Any]:
        return {
            "formula": self.formula,
            "target": tree.to_data(self.target),
            "factors": [
                [tree.to_data(node), None if levels is None else list(levels)]
                for node, levels in self.factors
            ],
            "terms": [[list(part) for part in term] for term in self.terms],
            "states": {name: list(state) for name, state in self.states.items()},
        }

    def _labels(self, number: int, reduced: bool) -> list[str]:
        """The names of the columns of a factor."""
        node, levels = self.factors[number]
        name = label(node)
        if levels is not None:
            coding = coding_of(node)
            if not reduced:
                return [f"{name}[{level}]" for level in levels]
            if coding.contrast:
                return [f"{name}[S.{level}]" for level in levels[:-1]]
            base = coding.base(levels)
            return [f"{name}[T.{level}]" for place, level in enumerate(levels) if place != base]
        transform = transform_of(node)
        places = None if transform is None else transform.labels(self.states[show(node)])
        if places is None:
            return [name]
        return [f"{name}[{place}]" for place in places][int(reduced) :]

    def _encode(self, number: int, reduced: bool, columns: Columns) -> Array:
        """The columns of a factor as (n, k)."""
        node, levels = self.factors[number]
        if levels is None:
            values = evaluate(node, columns, self.states)
            values = np.broadcast_to(values, (_length(columns), *values.shape[1:]))
            return values[:, np.newaxis] if values.ndim == 1 else values[:, int(reduced) :]
        name = columns_of(node)[0]
        codes = _codes(as_categories(columns[name]), levels, name)[:, np.newaxis]
        coding, kept = coding_of(node), np.arange(len(levels))
        if not reduced:
            return (codes == kept).astype(float)
        if coding.contrast:
            return (codes == kept[:-1]) - (codes == kept[-1]).astype(float)
        return (codes == np.delete(kept, coding.base(levels))).astype(float)


def look(formula: str, frame: Any, *, ignore: str | None = None) -> tuple[Design, Columns]:
    """The design of a formula, and the columns that were read for it; `.` leaves `ignore` out."""
    target, terms = parse(formula, open_frame(frame).names, ignore)
    nodes = {show(node): node for term in terms for node in term}
    everything = (target, *nodes.values())
    columns = read(frame, [name for node in everything for name in columns_of(node)])
    states: dict[str, State] = {}
    for node in everything:
        find_states(node, columns, states)
    factors = tuple(Factor(node, _levels(node, columns)) for node in nodes.values())
    places = {name: place for place, name in enumerate(nodes)}
    numbered = [[places[show(node)] for node in term] for term in terms]
    scoped = scope_terms(numbered, [spans_one(factor) for factor in factors])
    design = Design(formula, target, factors, tuple(scoped), states)
    design.check()
    return design, columns


def _length(columns: Columns) -> int:
    first = next(iter(columns.values()))
    return len(first.values if isinstance(first, Numbers) else first.codes)


def _levels(node: Node, columns: Columns) -> tuple[Any, ...] | None:
    """The levels of a factor that is categories, be it by C() or by what the column holds."""
    name = columns_of(node)[0]
    if not is_coded(node) and not (
        isinstance(node, Column) and isinstance(columns[name], Categories)
    ):
        return None
    found = as_categories(columns[name])
    levels = coding_of(node).levels or found.levels
    _codes(found, levels, name)
    return levels


def _codes(found: Categories, levels: tuple[Any, ...], name: str) -> NDArray[np.intp]:
    """The positions of the rows' values in `levels`."""
    places = {level: place for place, level in enumerate(levels)}
    lookup = np.array([places.get(level, -1) for level in found.levels], dtype=np.intp)
    codes = lookup[found.codes]
    unknown = np.flatnonzero(codes < 0)
    if unknown.size:
        row = int(unknown[0])
        some = ", ".join(map(repr, levels[:10])) + ", ..." * (len(levels) > 10)
        raise ValueError(
            f"row {row}, column {name!r}: {found.levels[found.codes[row]]!r} is none of the levels "
            f"{some} (rows are numbered from 0)"
        )
    return codes


def spans_one(factor: Factor) -> bool:
    """Whether the columns of a factor add up to one."""
    transform = transform_of(factor.node)
    return factor.levels is not None or (
        isinstance(transform, BSpline) and transform.include_intercept
    )


def is_coded(node: Node) -> bool:
    return isinstance(node, Call) and node.function == "C"
