"""The left side of a formula: a target, one of its levels, or a target with what stands beside it.

y ~              a column or a function of one
late[yes] ~      1 where `late` is yes, 0 elsewhere
p(wins, games) ~ successes of trials, as Bambi writes them (prop, proportion); R's
cbind(wins, losses) ~
censored(time, status) ~   Bambi's: the status is none where the event was seen, or right
Surv(time, event) ~        R's: 1 where the event was seen, 0 where it was not
"""

from __future__ import annotations

import difflib
from typing import Any, NamedTuple, cast

from corebayes.formula.columns import Categories, Values
from corebayes.formula.evaluate import Columns
from corebayes.formula.expressions import WordReader
from corebayes.formula.factors import is_coded
from corebayes.formula.functions import check, check_number, coding_of
from corebayes.formula.tokens import shorten
from corebayes.formula.tree import Binary, Call, Column, Literal, Node, show

TRIALS = ("p", "prop", "proportion")
PAIRS = (*TRIALS, "cbind", "censored", "Surv")
SEEN, CENSORED = "none", "right"


class Left(NamedTuple):
    target: Node
    beside: dict[str, Node]
    """Columns that no coefficient belongs to, by what they mean: trials, event."""


def read_left(reader: WordReader) -> Left:
    """The left side, up to the ~."""
    kind, name, _ = reader.tokens[reader.position]
    if kind == "name" and name in PAIRS and reader.peek(1) == "(":
        left = _pair(reader, name)
    else:
        node = reader.operand()
        check(node)
        if isinstance(node, Column) and reader.accept("["):
            node = Binary("==", node, Literal(_level(reader)))
        left = Left(node, {})
    if reader.peek() != "~":
        raise ValueError(
            f"the left side of the formula {shorten(reader.text)} must be one column of numbers, "
            f"one level of a column such as late[yes], or one of {', '.join(PAIRS)} of two columns"
        )
    reader.expect("~")
    return left


def check_status(node: Node, column: Values) -> None:
    """Refuse a status that is neither seen nor censored on the right."""
    known = isinstance(column, Categories) and set(_occurring(column)) <= {SEEN, CENSORED}
    if not known:
        raise ValueError(
            f"the status {show(node)} of censored() must be {SEEN!r} where the event was seen and "
            f"{CENSORED!r} where it was not; where it is 1 and 0, write Surv(time, event)"
        )


def as_numbers(target: Node, columns: Columns) -> Node:
    """The target as numbers: of two levels the second is 1, of more they are 0, 1, 2, …"""
    if is_coded(target) and not coding_of(target).levels:
        target = cast("Call", target).arguments[0]
    match target:
        case Binary("==", Column(name), Literal(level)):
            _check_occurs(name, level, columns[name])
        case _:
            pass
    if not isinstance(target, Column):
        return target
    column = columns[target.name]
    if not isinstance(column, Categories) or column.levels == (False, True):
        return target
    levels = _occurring(column)
    if len(levels) < 2:
        raise ValueError(
            f"the left side {target.name!r} is {str(*levels)!r} in every row: nothing is to learn"
        )
    if len(levels) == 2:
        return Binary("==", target, Literal(levels[1]))
    return Call("C", (target,), (("levels", Literal(levels)),))


def _check_occurs(name: str, level: Any, column: Values) -> None:
    """Refuse late[yse], which would be 0 in every row."""
    if not isinstance(column, Categories) or level in (levels := _occurring(column)):
        return
    near = difflib.get_close_matches(str(level), map(str, levels), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    some = ", ".join(map(repr, levels[:10])) + ", …" * (len(levels) > 10)
    raise ValueError(f"no row of {name!r} is {level!r}{hint} Its levels are {some}")


def _occurring(column: Categories) -> tuple[Any, ...]:
    present = set(column.codes.tolist())
    return tuple(level for place, level in enumerate(column.levels) if place in present)


def _pair(reader: WordReader, name: str) -> Left:
    reader.take()
    reader.expect("(")
    first = reader.nested(reader.expression)
    reader.expect(",")
    second = reader.nested(reader.expression)
    reader.expect(")")
    check_number(first)
    number = isinstance(second, Literal) and type(second.value) in (int, float)
    if not (number and name in TRIALS):
        check_number(second)
    if name == "Surv":
        return Left(first, {"event": second})
    if name == "censored":
        if not isinstance(second, Column):
            raise ValueError(
                "censored() takes a column of times and a column of 'none' and 'right'"
            )
        return Left(first, {"event": Binary("==", second, Literal(SEEN))})
    return Left(first, {"trials": second if name in TRIALS else Binary("+", first, second)})


def _level(reader: WordReader) -> str | int | float | bool | None:
    """A level in brackets: a text, a number, or a word without quotes."""
    kind, text, _ = reader.tokens[reader.position]
    if kind in ("name", "quoted") and text not in ("True", "False"):
        reader.take()
        level: str | int | float | bool | None = text
    else:
        level = reader.literal()
    reader.expect("]")
    return level
