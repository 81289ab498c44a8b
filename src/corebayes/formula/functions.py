"""The closed list of functions of a formula, and the check that a tree has no others."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from corebayes.formula.splines import BSpline, NaturalSpline
from corebayes.formula.transforms import Poly, Scale, Transform, is_list
from corebayes.formula.tree import (
    MAX_DEPTH,
    Binary,
    Call,
    Column,
    Literal,
    Node,
    Unary,
    children,
    columns_of,
    show,
)


def _center() -> Scale:
    return Scale(scale=False)


def _standardize(center: Any = True, rescale: Any = True, ddof: Any = 0) -> Scale:
    return Scale(center, rescale, ddof)


@dataclass(frozen=True)
class Coding:
    """Of categories: each level against a reference, or (Sum) against the mean of all."""

    contrast: Any = None
    levels: Any = None
    reference: Any = None

    def __post_init__(self) -> None:
        if self.levels is not None and not (is_list(self.levels) and self.levels):
            raise ValueError('levels must be a list such as ["a", "b"]')

    def base(self, levels: tuple[Any, ...]) -> int:
        """The position of the reference level."""
        if self.reference is None:
            return 0
        if self.reference not in levels:
            raise ValueError(f"the reference {str(self.reference)[:60]!r} is none of the levels")
        return levels.index(self.reference)


ELEMENTWISE: dict[str, Callable[[Any], Any]] = {
    "I": np.positive,
    **{
        name: getattr(np, name)
        for name in (
            *("log", "log2", "log10", "log1p", "exp", "exp2", "expm1", "sqrt", "abs"),
            *("sin", "cos", "tan", "tanh", "floor", "ceil"),
        )
    },
}
TRANSFORMS: dict[str, Callable[..., Transform]] = {
    **dict.fromkeys(("center", "centre"), _center),
    "scale": Scale,
    **dict.fromkeys(("standardize", "standardise"), _standardize),
    "poly": Poly,
    "bs": BSpline,
    **dict.fromkeys(("cr", "cs", "ns"), NaturalSpline),
}
SUMS, TREATMENTS = ("Sum", "contr.sum"), ("Treatment", "contr.treatment")
NAMES = [*ELEMENTWISE, *TRANSFORMS, "C"]


def plain(function: str) -> str:
    """The function of the closed list that is meant: np.log is log, as people write it."""
    return function.removeprefix("numpy.").removeprefix("np.")


def check_function(function: str) -> None:
    name = plain(function)
    of_numpy = name == function or (name in ELEMENTWISE and name != "I")
    if (name in NAMES and of_numpy) or function in (*SUMS, *TREATMENTS):
        return
    if name == "offset":
        raise ValueError("offset() is a term of its own: write it between + signs")
    if name == "exposure":
        raise ValueError(
            "there is no function 'exposure' in a formula: write offset(log(x)) of the time or the "
            "population x, between + signs"
        )
    near = difflib.get_close_matches(name[:60], NAMES, n=1)
    hint = f"did you mean {near[0]!r}? There are " if near else "there are "
    raise ValueError(
        f"there is no function {function[:60]!r} in a formula; {hint}{', '.join(NAMES)}"
    )


def check(node: Node, depth: int = 0) -> None:
    """Refuse whatever cannot be computed: a function not listed, wrong arguments, too deep a tree.

    Several columns at once (C, poly, splines) are a factor of their own, not part of another.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"an expression is nested more than {MAX_DEPTH} deep")
    if isinstance(node, Literal) and (isinstance(node.value, tuple) or node.value is None):
        raise ValueError(f"{show(node)[:60]} is no number")
    if isinstance(node, Call):
        check_function(node.function)
        made = _make(node)
        if depth and (isinstance(made, Coding) or _is_wide(made)):
            raise ValueError(f"{node.function}() is a term of its own, not part of an expression")
    for child in children(node):
        check(child, depth + 1)
    needs = not depth or (isinstance(node, Call) and plain(node.function) in TRANSFORMS)
    if needs and not columns_of(node):
        raise ValueError(f"{show(node)[:60]} has no column in it")


def check_number(node: Node) -> None:
    """The same for what must be one number a row: no categories, polynomials or splines."""
    check(node)
    check(node, 1)


def transform_of(node: Node) -> Transform | None:
    """The transform that a node calls, if it does."""
    made = _make(node) if isinstance(node, Call) and plain(node.function) in TRANSFORMS else None
    return None if isinstance(made, Coding) else made


def coding_of(node: Node) -> Coding:
    """How the categories of a factor are coded."""
    made = _make(node) if isinstance(node, Call) else None
    return made if isinstance(made, Coding) else Coding()


def _make(node: Call) -> Transform | Coding | None:
    """The transform with its options, once they are checked; None for a function of NumPy."""
    name = plain(node.function)
    if not node.arguments or name in (*SUMS, *TREATMENTS):
        raise ValueError(f"{node.function}() needs a column in its first place")
    try:
        if name == "C":
            return _coding(node)
        factory = TRANSFORMS.get(name, _no_options)
        options = {key: _value(entry) for key, entry in node.options}
        bound = inspect.signature(factory).bind(*map(_value, node.arguments[1:]), **options)
        return factory(*bound.args, **bound.kwargs)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{node.function}(): {error}") from None


def _no_options() -> None:
    """What functions of single values take."""


def _coding(node: Call) -> Coding:
    if not isinstance(node.arguments[0], Column):
        raise ValueError("categories are those of a column")
    options = {
        "reference" if key in ("ref", "base") else key: _value(entry)
        for key, entry in node.options
        if key != "contrast"
    }
    match [*node.arguments[1:], *(entry for key, entry in node.options if key == "contrast")]:
        case []:
            pass
        case [Column(name)] if name in SUMS:
            options["contrast"] = "sum"
        case [Column(name)] if name in TREATMENTS:
            pass
        case [Call(name, arguments, named)] if name in TREATMENTS and len(arguments + named) == 1:
            if any(key not in ("reference", "base") for key, _ in named):
                raise ValueError(f"{name}() takes reference=")
            options["reference"] = _value(arguments[0] if arguments else named[0][1])
        case _:
            raise ValueError("the coding is Treatment, Treatment('level') or Sum")
    bound = inspect.signature(Coding).bind(**options)
    return Coding(*bound.args, **bound.kwargs)


def _is_wide(made: Transform | None) -> bool:
    return isinstance(made, Poly | BSpline | NaturalSpline)


def _value(node: Node) -> Any:
    """The value of an option, which is never computed."""
    if isinstance(node, Literal):
        return node.value
    if isinstance(node, Unary) and isinstance(node.operand, Literal):
        value = node.operand.value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return -value if node.operator == "-" else value
    kind = "column" if isinstance(node, Column) else "expression"
    kind = "operation" if isinstance(node, Binary) else kind
    raise ValueError(f"an option must be a number, a text or a list, not a {kind}")
