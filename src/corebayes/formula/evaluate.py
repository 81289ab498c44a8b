"""The numbers of an expression: arithmetic on columns, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from corebayes.formula.columns import Categories, Values, unusable
from corebayes.formula.functions import ELEMENTWISE, plain, transform_of
from corebayes.formula.transforms import State
from corebayes.formula.tree import (
    Binary,
    Call,
    Column,
    Literal,
    Node,
    Unary,
    columns_of,
    show,
    walk,
)
from corebayes.types import Array

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "//": np.floor_divide,
    "%": np.remainder,
    "**": np.power,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}

Columns = Mapping[str, Values]


def transforms_in(node: Node) -> list[Call]:
    """The transforms of an expression, the inner ones first."""
    calls = [inner for inner in walk(node) if isinstance(inner, Call)]
    return [call for call in calls if transform_of(call) is not None]


def check_times(nodes: Sequence[Node], columns: Columns) -> None:
    """Refuse times and dates where they are more than names of groups."""
    for name in dict.fromkeys(name for node in nodes for name in columns_of(node)):
        values = columns[name]
        if isinstance(values, Categories) and values.times:
            raise unusable(name, values.times)


def find_state(call: Call, x: Array) -> State:
    """What a transform finds in all values of its argument."""
    transform, name = transform_of(call), show(call)
    assert transform is not None
    bad = np.flatnonzero(~np.isfinite(x))
    if bad.size:
        raise ValueError(f"{name}: the value {x[bad[0]]} in row {bad[0]} is not finite")
    try:
        state = transform.fit(x)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if not transform.accepts(state) or not np.isfinite(state).all():
        raise ValueError(f"{name}: the values are too large or too close to one another")
    return state


def evaluate(node: Node, columns: Columns, states: Mapping[str, State]) -> Array:
    """The values of an expression in every row, (n,), or (n, k) for several columns at once.

    What has no value (log 0) is not finite; the check of all rows finds it and names the row.
    """
    with np.errstate(all="ignore"):
        return _evaluate(node, columns, states)


def _evaluate(node: Node, columns: Columns, states: Mapping[str, State]) -> Any:
    match node:
        case Literal(str() as text):
            raise ValueError(f"the text {text[:60]!r} can only be compared, with == or !=")
        case Literal(value):
            # Not an integer of Python's, whose powers have no limit.
            return np.float64(value)  # pyright: ignore[reportArgumentType]
        case Column(name):
            return _numbers(columns[name], name)
        case Unary(sign, operand):
            value = _evaluate(operand, columns, states)
            return -value if sign == "-" else value
        case Binary("==" | "!=" as sign, Column(name), Literal(str() as text)) | Binary(
            "==" | "!=" as sign, Literal(str() as text), Column(name)
        ):
            return (_compare(columns[name], name, text) == (sign == "==")).astype(float)
        case Binary(sign, left, right):
            values = _evaluate(left, columns, states), _evaluate(right, columns, states)
            return np.asarray(OPERATORS[sign](*values), dtype=float)[()]
        case Call(function, arguments):
            x = _evaluate(arguments[0], columns, states)
            transform = transform_of(node)
            if transform is None:
                return ELEMENTWISE[plain(function)](x)
            try:
                return transform.apply(x, states[show(node)])
            except ValueError as error:
                raise ValueError(f"{show(node)}: {error}") from None


def _numbers(values: Values, name: str) -> Array:
    if not isinstance(values, Categories):
        return values.values
    if values.levels == (False, True):
        return values.codes.astype(float)
    raise ValueError(f"column {name!r} holds categories, where numbers are needed")


def _compare(values: Values, name: str, text: str) -> Any:
    if not isinstance(values, Categories):
        raise ValueError(f"column {name!r} holds numbers, which are not compared with a text")
    return np.array([level == text for level in values.levels])[values.codes]
