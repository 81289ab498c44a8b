"""A design from the JSON that a file holds: a stranger's, so every part of it is checked."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

from corebayes.formula import tree
from corebayes.formula.coding import Scoped
from corebayes.formula.design import MAX_COLUMNS, Design
from corebayes.formula.factors import Factor, is_coded, spans_one
from corebayes.formula.functions import check, coding_of, transform_of
from corebayes.formula.groups import Group
from corebayes.formula.parser import MAX_FACTORS
from corebayes.formula.transforms import State
from corebayes.formula.tree import Column, Literal, Node, label, show, walk

# More groups than any coreset has rows for.
MAX_LEVELS = 10_000_000
PARTS = {"formula", "target", "factors", "terms", "states"}
OPTIONAL = {"groups", "beside", "missing", "order"}
ROLES = ("offset", "trials", "event")


def read_design(data: Any) -> Design:
    """The design, or an error that says what is wrong with it."""
    parts = _checked(data, dict, "the design")
    if set(parts) - OPTIONAL != PARTS:
        raise ValueError(f"it must have {', '.join(sorted(PARTS))}, and no more")
    target = _node(parts["target"])
    factors = tuple(_factor(entry) for entry in _checked(parts["factors"], list, "factors"))
    terms = tuple(_term(term, factors) for term in _checked(parts["terms"], list, "terms"))
    beside = _beside(parts.get("beside", {}))
    nodes = [target, *beside.values(), *(factor.node for factor in factors)]
    states = _states(parts["states"], nodes)
    if parts.get("missing", "drop") != "drop":
        raise ValueError("missing values are refused, or 'drop'")
    groups = _groups(parts.get("groups", []), factors)
    text = _checked(parts["formula"], str, "formula")
    drops = "missing" in parts
    design = Design(text, target, factors, terms, states, groups, beside, drops)
    design.check()
    if "order" not in parts:
        return design
    design = replace(design, order=_order(parts["order"], design))
    design.check()
    return design


def _checked(value: Any, kind: type, name: str, most: int = MAX_COLUMNS) -> Any:
    if not isinstance(value, kind) or len(value) > most:
        raise ValueError(f"{name} must be a {kind.__name__} of at most {most:,} entries")
    return value


def _node(data: Any) -> Node:
    node = tree.from_data(data)
    check(node)
    return node


def _beside(data: Any) -> dict[str, Node]:
    entries: dict[str, Any] = _checked(data, dict, "beside")
    if any(role not in ROLES for role in entries):
        raise ValueError(f"beside the predictor there are {', '.join(ROLES)}, and no more")
    found: dict[str, Node] = {}
    for role, entry in entries.items():
        node = tree.from_data(entry)
        # So many trials in every row.
        if not (
            role == "trials" and isinstance(node, Literal) and type(node.value) in (int, float)
        ):
            check(node)
        found[role] = node
    return found


def _factor(entry: Any) -> Factor:
    data, levels = _checked(entry, list, "a factor", 2)
    node = _node(data)
    if levels is None and not is_coded(node):
        return Factor(node)
    if not (is_coded(node) or isinstance(node, Column)):
        raise ValueError(f"{label(node)[:60]} has no levels to be coded")
    known = tuple(map(tree.scalar, _checked(levels, list, "levels")))
    if not known or None in known or len(set(known)) < len(known):
        raise ValueError("levels must be there and differ")
    coding_of(node).base(known)
    return Factor(node, known)


def _term(entry: Any, factors: tuple[Factor, ...]) -> Scoped:
    term: list[tuple[int, bool]] = []
    for part in _checked(entry, list, "a term", MAX_FACTORS):
        number, reduced = _checked(part, list, "a part of a term", 2)
        if type(number) is not int or not 0 <= number < len(factors) or type(reduced) is not bool:
            raise ValueError(f"{str(number)[:60]!r} is none of the factors")
        if reduced and not spans_one(factors[number]):
            raise ValueError("only categories are coded with a level less")
        term.append((number, reduced))
    return tuple(term)


def _groups(data: Any, factors: tuple[Factor, ...]) -> tuple[Group, ...]:
    groups: list[Group] = []
    for entry in _checked(data, list, "groups"):
        parts = _checked(entry, dict, "a group")
        if set(parts) != {"columns", "levels", "terms"}:
            raise ValueError("a group must have columns, levels and terms, and no more")
        names = _checked(parts["columns"], list, "the columns of a group", MAX_FACTORS)
        if not names or not all(isinstance(name, str) and name for name in names):
            raise ValueError("the columns of a group must be names")
        terms = tuple(_term(term, factors) for term in _checked(parts["terms"], list, "effects"))
        # One list for each column, since a file may have many groups but not many lists.
        values = [
            tuple(map(tree.scalar, _checked(column, list, "levels of groups", MAX_LEVELS)))
            for column in _checked(parts["levels"], list, "levels", MAX_FACTORS)
        ]
        levels = tuple(zip(*values, strict=True))
        complete = len(values) == len(names) and not any(None in column for column in values)
        if not levels or not terms or not complete or len(set(levels)) < len(levels):
            raise ValueError("groups must have effects, and levels that differ")
        groups.append(Group(tuple(names), levels, terms))
    if len({frozenset(group.columns) for group in groups}) < len(groups):
        raise ValueError("there are two groups of the same columns")
    return tuple(groups)


def _order(data: Any, design: Design) -> tuple[tuple[str, int], ...]:
    """Names and numbers of columns; every column of groups is among them."""
    order: list[tuple[str, int]] = []
    for entry in _checked(data, list, "the order of columns"):
        name, place = _checked(entry, list, "a column and its place", 2)
        known = type(place) is int and 0 <= place < len(design.made_names)
        if not isinstance(name, str) or not known:
            raise ValueError("the order of columns must have names and numbers of columns")
        order.append((name, place))
    places = [place for _, place in order]
    grouped = {design.made_names.index(name) for name in design.group_names}
    if not order or any(places.count(place) != 1 for place in grouped):
        raise ValueError("the order of columns must name those of groups, each once")
    return tuple(order)


def _states(data: Any, nodes: list[Node]) -> dict[str, State]:
    """The state of every transform, and of nothing else."""
    entries: dict[str, Any] = _checked(data, dict, "states")
    states: dict[str, State] = {}
    for node in itertools.chain.from_iterable(map(walk, nodes)):
        transform, name = transform_of(node), show(node)
        if transform is None:
            continue
        state = _checked(entries.get(name), list, f"the state of {name[:60]}")
        if any(type(number) not in (int, float) for number in map(tree.scalar, state)):
            raise ValueError(f"the state of {name[:60]} must be numbers")
        states[name] = tuple(map(float, state))
        if not transform.accepts(states[name]):
            raise ValueError(f"the state of {name[:60]} does not fit it")
    if states.keys() != entries.keys():
        raise ValueError("there are states of transforms that are not in the design")
    return states


def design_from_data(data: Any) -> Design:
    """The design that this is the JSON form of; anything else is one sentence."""
    try:
        return read_design(data)
    except (ValueError, TypeError) as error:
        raise ValueError(f"the stored design cannot be used: {error}") from None
