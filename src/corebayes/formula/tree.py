"""What a factor of a formula computes: a tree of five kinds of nodes, as text and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# A tree is walked by recursion, so it must not be deep.
MAX_DEPTH = 100
MAX_TEXT = 10_000
MAX_LIST = 10_000

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Column:
    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    value: Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Unary:
    operator: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple[Node, ...]
    options: tuple[tuple[str, Node], ...] = ()


Node = Column | Literal | Unary | Binary | Call

COMPARISON, UNARY, POWER = 1, 4, 5
PRECEDENCE = {
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), COMPARISON),
    **dict.fromkeys(("+", "-"), 2),
    **dict.fromkeys(("*", "/", "//", "%"), 3),
    "**": POWER,
}


def label(node: Node) -> str:
    """What a factor is called: the plain name of a column, else its expression."""
    return node.name if isinstance(node, Column) else show(node)


def show(node: Node, least: int = 0) -> str:
    """The expression as Python writes it, in parentheses where it binds less than `least`."""
    match node:
        case Column(name):
            return name if name.replace(".", "_").isidentifier() else f"`{name}`"
        case Literal(tuple() as values):
            return f"[{', '.join(map(repr, values))}]"
        case Literal(value):
            return repr(value)
        case Unary(operator, operand):
            text, binds = f"{operator}{show(operand, UNARY)}", UNARY
        case Binary(operator, left, right):
            binds = PRECEDENCE[operator]
            tight_left = binds + (binds in (COMPARISON, POWER))
            tight_right = binds + (binds != POWER)
            text = f"{show(left, tight_left)} {operator} {show(right, tight_right)}"
        case Call(function, arguments, options):
            shown = [show(argument) for argument in arguments]
            shown += [f"{name}={show(value)}" for name, value in options]
            return f"{function}({', '.join(shown)})"
    return f"({text})" if binds < least else text


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Unary(_, operand):
            return (operand,)
        case Binary(_, left, right):
            return (left, right)
        case Call(_, arguments):
            # All arguments but the first are options, which are never computed.
            return arguments[:1]
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, those below first: in the order in which they are computed."""
    for child in children(node):
        yield from walk(child)
    yield node


def columns_of(node: Node) -> list[str]:
    return [below.name for below in walk(node) if isinstance(below, Column)]


def to_data(node: Node) -> list[Any]:
    match node:
        case Column(name):
            return ["column", name]
        case Literal(value):
            return ["literal", list(value) if isinstance(value, tuple) else value]
        case Unary(operator, operand):
            return ["unary", operator, to_data(operand)]
        case Binary(operator, left, right):
            return ["binary", operator, to_data(left), to_data(right)]
        case Call(function, arguments, options):
            named = {name: to_data(value) for name, value in options}
            return ["call", function, [to_data(argument) for argument in arguments], named]


def from_data(data: Any, depth: int = 0) -> Node:
    """The node that this is the JSON form of; anything else is refused."""
    if depth > MAX_DEPTH:
        raise ValueError(f"an expression is nested more than {MAX_DEPTH} deep")
    match data:
        case ["column", str(name)] if 0 < len(name) <= MAX_TEXT:
            return Column(name)
        case ["literal", [*values]] if len(values) <= MAX_LIST:
            return Literal(tuple(map(scalar, values)))
        case ["literal", value]:
            return Literal(scalar(value))
        case ["unary", "-" | "+" as operator, operand]:
            return Unary(operator, from_data(operand, depth + 1))
        case ["binary", str(operator), left, right] if operator in PRECEDENCE:
            return Binary(operator, from_data(left, depth + 1), from_data(right, depth + 1))
        case ["call", str(function), [*arguments], {**options}]:
            positional = tuple(from_data(argument, depth + 1) for argument in arguments)
            named = [(str(name), from_data(value, depth + 1)) for name, value in options.items()]
            return Call(function, positional, tuple(named))
        case _:
            raise ValueError(f"{str(data)[:60]!r} is no expression")


def scalar(value: Any) -> Scalar:
    """A text, a finite number, True, False or None."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and len(value) <= MAX_TEXT:
        return value
    if isinstance(value, int) and abs(value) < 10**18:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise ValueError(f"{str(value)[:60]!r} is no text or finite number")
