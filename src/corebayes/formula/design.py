"""The columns that a formula makes of a table, once it has looked at one: all in plain data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from corebayes.data.frames import check_names
from corebayes.formula import tree
from corebayes.formula.coding import Scoped, scope_terms
from corebayes.formula.columns import (
    as_categories,
    complete,
    open_frame,
    read,
)
from corebayes.formula.evaluate import Columns, check_times, evaluate
from corebayes.formula.factors import Factor, codes_in, is_coded, length, levels_of, spans_one
from corebayes.formula.functions import coding_of, transform_of
from corebayes.formula.groups import Group, NewLevels, codes_of
from corebayes.formula.left import as_numbers, check_status
from corebayes.formula.parser import Formula, GroupPart, Term, parse
from corebayes.formula.seen import Held, Seen
from corebayes.formula.transforms import Scale, State
from corebayes.formula.tree import (
    Binary,
    Column,
    Literal,
    Node,
    columns_of,
    label,
    show,
)
from corebayes.types import Array

MAX_COLUMNS = 10_000
MISSING = ("refuse", "drop")


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
    groups: tuple[Group, ...] = ()
    """What (1 | g) and its like name, each once."""
    beside: Mapping[str, Node] = field(default_factory=dict[str, Node])
    """Columns of X that no coefficient belongs to, by what they mean: offset, trials, event."""
    drops: bool = False
    """Whether rows with missing values are left out."""
    order: tuple[tuple[str, int], ...] = ()
    """The names of X and which of the columns they are, where another library orders them."""

    @classmethod
    def fit(cls, formula: str, frame: Any) -> Design:
        """What the formula finds in a table."""
        return look(formula, frame)[0]

    @property
    def column_names(self) -> tuple[str, ...]:
        """Of X: the columns of the terms, those that only groups have slopes of, group codes, and
        what stands beside the predictor."""
        return tuple(name for name, _ in self.order) or self.made_names

    @cached_property
    def made_names(self) -> tuple[str, ...]:
        """Of all columns, in the order in which they are made."""
        beside = self.beside_names.values()
        return (*self.fixed_names, *self.slope_names, *self._group_columns, *beside)

    @property
    def beside_names(self) -> dict[str, str]:
        """The columns of X that are offsets, trials or events: offset(log(t))."""
        return {role: f"{role}({show(node)})" for role, node in self.beside.items()}

    @cached_property
    def fixed_names(self) -> tuple[str, ...]:
        return tuple(itertools.chain.from_iterable(self._names_of(self.terms)))

    @cached_property
    def slope_names(self) -> tuple[str, ...]:
        """Columns that groups have slopes of and the formula no term."""
        effects = dict.fromkeys(itertools.chain.from_iterable(self.effects))
        return tuple(name for name in effects if name not in ("1", *self.fixed_names))

    @cached_property
    def group_names(self) -> tuple[str, ...]:
        """Columns of codes, as X has them."""
        if not self.order:
            return self._group_columns
        called = {place: name for name, place in self.order}
        return tuple(called[self.made_names.index(name)] for name in self._group_columns)

    @cached_property
    def _group_columns(self) -> tuple[str, ...]:
        """A column that is also a term, as in x + (1 | x), has its name."""
        others = {*self.fixed_names, *self.slope_names}
        return tuple(f"{group.name}{' group' * (group.name in others)}" for group in self.groups)

    @cached_property
    def effects(self) -> tuple[tuple[str, ...], ...]:
        """The effects of each group: 1 for the constant, else names of columns."""
        named = [self._names_of(group.terms) for group in self.groups]
        return tuple(
            tuple(
                dict.fromkeys(
                    name if term else "1"
                    for term, names in zip(group.terms, columns, strict=True)
                    for name in names
                )
            )
            for group, columns in zip(self.groups, named, strict=True)
        )

    def _names_of(self, terms: tuple[Scoped, ...]) -> list[list[str]]:
        """The names of the columns of each term; a category of one level may make none."""
        labels = {part: self._labels(*part) for part in {part for term in terms for part in term}}
        names: list[list[str]] = []
        total = 0
        for term in terms:
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
        """`late == 'yes'` says which level is 1."""
        node = self.target
        return columns_of(node)[0] if is_coded(node) else label(node)

    @property
    def needs(self) -> list[str]:
        """The columns of a table that the design is computed from."""
        return list(dict.fromkeys((*columns_of(self.target), *self.needs_of_rows, *self._events)))

    @property
    def needs_of_rows(self) -> list[str]:
        """Those that X is computed from for rows to come: all but the target's and events."""
        beside = [node for role, node in self.beside.items() if role != "event"]
        nodes = [*(factor.node for factor in self.factors), *beside]
        grouped = (name for group in self.groups for name in group.columns)
        return list(dict.fromkeys((*(n for node in nodes for n in columns_of(node)), *grouped)))

    @property
    def _events(self) -> list[str]:
        return columns_of(self.beside["event"]) if "event" in self.beside else []

    def apply(self, columns: Columns, new: Mapping[str, NewLevels] | None = None) -> Array:
        """The matrix X of these rows; groups that the design has not are an error, or `new`."""
        num_rows, places = length(columns), {n: k for k, n in enumerate(self.made_names)}
        X = np.empty((num_rows, len(places)))
        called = zip(self._group_columns, self.group_names, self.groups, strict=True)
        for name, own, group in called:
            X[:, places.pop(name)] = codes_of(group, columns, (new or {}).get(own))
        for role, name in self.beside_names.items():
            X[:, places.pop(name)] = self._beside(role, columns)
        encoded: dict[tuple[int, bool], Array] = {}
        terms = (*self.terms, *(term for group in self.groups for term in group.terms if term))
        for term, names in zip(terms, self._names_of(terms), strict=True):
            # A column that two terms make is the same in both.
            if not any(name in places for name in names):
                continue
            product = np.ones((num_rows, 1))
            for part in term:
                if part not in encoded:
                    encoded[part] = self._encode(*part, columns)
                wide = encoded[part][:, :, np.newaxis] * product[:, np.newaxis, :]
                product = wide.reshape(num_rows, -1)
            for name, values in zip(names, product.T, strict=True):
                if name in places:
                    X[:, places.pop(name)] = values
        return X[:, [place for _, place in self.order]] if self.order else X

    def target_of(self, columns: Columns) -> Array:
        """The left side; True counts as 1, levels as 0, 1, …"""
        if is_coded(self.target):
            name = columns_of(self.target)[0]
            levels = coding_of(self.target).levels
            return codes_in(as_categories(columns[name]), levels, name).astype(float)
        values = evaluate(self.target, columns, self.states)
        return np.broadcast_to(values, length(columns)).copy()

    @property
    def target_levels(self) -> tuple[Any, ...] | None:
        """What 0, 1, … of the target stand for, if it is categories."""
        return coding_of(self.target).levels if is_coded(self.target) else None

    def _beside(self, role: str, columns: Columns) -> Array:
        node = self.beside[role]
        if role == "event" and any(name not in columns for name in self._events):
            # Of rows to come nobody knows.
            return np.ones(length(columns))
        match node:
            case Binary("==", Column(name), Literal("none")) if role == "event":
                check_status(Column(name), columns[name])
            case _:
                pass
        return evaluate(node, columns, self.states)

    def check(self) -> None:
        """Refuse a design that makes no columns, or two of the same name."""
        transform = transform_of(self.target)
        coded = is_coded(self.target) and not coding_of(self.target).levels
        if coded or not (transform is None or isinstance(transform, Scale)):
            raise ValueError(f"the left side {self.target_name[:60]} must be one column of numbers")
        if not (self.fixed_names or self.groups):
            raise ValueError("the formula makes no columns: X would be empty")
        check_names(self.column_names)

    def to_data(self) -> dict[str, Any]:
        """Plain JSON; one without groups is as it was before there were any."""
        grouped = [
            {
                "columns": list(group.columns),
                "levels": [list(values) for values in zip(*group.levels, strict=True)],
                "terms": [[list(part) for part in term] for term in group.terms],
            }
            for group in self.groups
        ]
        beside = {role: tree.to_data(node) for role, node in self.beside.items()}
        return {
            **({"groups": grouped} if grouped else {}),
            **({"beside": beside} if beside else {}),
            **({"missing": "drop"} if self.drops else {}),
            **({"order": [list(entry) for entry in self.order]} if self.order else {}),
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
            values = np.broadcast_to(values, (length(columns), *values.shape[1:]))
            return values[:, np.newaxis] if values.ndim == 1 else values[:, int(reduced) :]
        name = columns_of(node)[0]
        codes = codes_in(as_categories(columns[name]), levels, name)[:, np.newaxis]
        coding, kept = coding_of(node), np.arange(len(levels))
        if not reduced:
            return (codes == kept).astype(float)
        if coding.contrast:
            return (codes == kept[:-1]) - (codes == kept[-1]).astype(float)
        return (codes == np.delete(kept, coding.base(levels))).astype(float)


def look(
    formula: str, frame: Any, *, ignore: str | None = None, missing: str = "refuse"
) -> tuple[Design, Columns]:
    """The design of a formula, and the columns that were read for it; `.` leaves `ignore` out."""
    drops = check_way(missing)
    parsed = parse(formula, open_frame(frame).names, ignore)
    columns = read(frame, parsed.columns)
    seen = Held(complete(columns, drops=drops)[0])
    return designed(formula, parsed, seen, drops=drops), columns


def check_way(missing: str) -> bool:
    """Whether rows with missing values are dropped."""
    if missing not in MISSING:
        raise ValueError(f'missing must be "refuse" or "drop", got {str(missing)[:60]!r}')
    return missing == "drop"


def designed(formula: str, parsed: Formula, seen: Seen, *, drops: bool) -> Design:
    """What a formula finds in a table of which this was seen."""
    target, terms, parts, beside = parsed
    nodes = factors_in(parsed)
    check_times([target, *beside.values(), *nodes.values()], seen.columns)
    target = as_numbers(target, seen.columns)
    states = seen.states([target, *beside.values(), *nodes.values()])
    factors = tuple(Factor(node, levels_of(node, seen.columns)) for node in nodes.values())
    places = {name: place for place, name in enumerate(nodes)}

    def scoped(terms: list[Term]) -> list[Scoped]:
        numbered = [[places[show(node)] for node in term] for term in terms]
        return scope_terms(numbered, [spans_one(factor) for factor in factors])

    groups = tuple(
        Group(names, seen.levels(names), tuple(dict.fromkeys(effects)))
        for names, effects in _joined(parts, scoped).items()
    )
    design = Design(formula, target, factors, tuple(scoped(terms)), states, groups, beside, drops)
    design.check()
    return design


def factors_in(parsed: Formula) -> dict[str, Node]:
    """The factors of all terms, those of groups too, as they are written."""
    _, terms, parts, _ = parsed
    written = [*terms, *(term for part in parts for term in part.terms)]
    return {show(node): node for term in written for node in term}


def _joined(
    parts: list[GroupPart], scoped: Callable[[list[Term]], list[Scoped]]
) -> dict[tuple[str, ...], list[Scoped]]:
    """(1 | g) + (0 + x | g) is (1 + x | g), since effects are independent; b:a is a:b."""
    joined: dict[frozenset[str], tuple[tuple[str, ...], list[Scoped]]] = {}
    for names, terms in parts:
        # Each part is coded on its own: (0 + C(s) | g) has all the levels of s.
        joined.setdefault(frozenset(names), (names, []))[1].extend(scoped(terms))
    return dict(joined.values())
