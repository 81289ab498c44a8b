"""From the text of a formula to its terms: an own tokenizer and recursive descent.

    formula     operand ~ sum
    sum         [+|-] product {+|- product}           0 is -1
    product     interaction {*|/ interaction}         a*b = a + b + a:b, a/b = a + a:b
    interaction power {: power}
    power       atom [** whole number]                ^ is the same
    atom        (sum) | 1 | . | name | `name` | function(expression, option=value, …)

Expressions, inside of functions, are arithmetic: + - * / // % ** and comparisons. Whatever else is
written is an error of one sentence that names it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from corebayes.data.columns import find
from corebayes.formula.functions import SUMS, TREATMENTS, check, check_function
from corebayes.formula.tokens import Token, shorten, split
from corebayes.formula.tree import (
    COMPARISON,
    MAX_DEPTH,
    MAX_TEXT,
    PRECEDENCE,
    UNARY,
    Binary,
    Call,
    Column,
    Literal,
    Node,
    Unary,
    columns_of,
    scalar,
    show,
)

MAX_TERMS, MAX_FACTORS = 10_000, 8
CONSTANTS: dict[str, bool | None] = {"True": True, "False": False, "None": None}

Term = tuple[Node, ...]
# A term is told by its factors as they are written, whatever their order.
Terms = dict[frozenset[str], Term]
INTERCEPT: Terms = {frozenset(): ()}


class Formula(NamedTuple):
    target: Node
    terms: list[Term]
    """In the order of their columns: fewer factors first; the intercept has none."""


def parse(text: str, names: tuple[str, ...], ignore: str | None = None) -> Formula:
    """The formula's terms, of columns with these names; `.` is all but the target and `ignore`."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"a formula is a text such as 'y ~ x', not {type(text).__name__}")
    if len(text) > MAX_TEXT:
        raise ValueError(
            f"the formula has {len(text):,} characters; at most {MAX_TEXT:,} are allowed"
        )
    reader = _Reader(text, names)
    if reader.symbols().count("~") != 1 or reader.symbols()[0] == "~":
        raise ValueError(
            f"the formula {shorten(text)} has no left side or several: write it as 'y ~ x1 + x2'"
        )
    target = reader.operand()
    check(target)
    if reader.peek() != "~":
        raise ValueError(
            f"the left side of the formula {shorten(text)} must be one column of numbers"
        )
    reader.expect("~")
    taken = {*columns_of(target), ignore}
    reader.others = [name for name in names if name not in taken]
    terms = reader.sum(INTERCEPT)
    if reader.peek():
        raise reader.unexpected()
    return Formula(target, sorted(terms.values(), key=len))


class _Reader:
    """The tokens of a formula and how far they are read."""

    def __init__(self, text: str, names: tuple[str, ...]) -> None:
        self.text, self.names = text, names
        self.others: list[str] = []
        self.tokens = split(text)
        self.position = self.depth = 0

    def symbols(self) -> list[str]:
        return [token.text if token.kind == "symbol" else "" for token in self.tokens]

    def peek(self, ahead: int = 0) -> str:
        """The text of a token that is a symbol; a blank for others, nothing at the end."""
        token = self.tokens[min(self.position + ahead, len(self.tokens) - 1)]
        return token.text if token.kind in ("symbol", "end") else " "

    def take(self) -> Token:
        self.position += 1
        return self.tokens[self.position - 1]

    def accept(self, *symbols: str) -> str:
        return self.take().text if self.peek() in symbols else ""

    def expect(self, symbol: str) -> None:
        if not self.accept(symbol):
            raise self.unexpected(f", where {symbol!r} should be")

    def unexpected(self, where: str = "") -> ValueError:
        token = self.tokens[self.position]
        found = repr(token.text[:60]) if token.text else "the end"
        return ValueError(
            f"the formula {shorten(self.text)} has {found} at character {token.place + 1}{where}"
        )

    def nested(self, read: Callable[[], Any]) -> Any:
        """What is read one level deeper."""
        self.depth += 1
        if self.depth > MAX_DEPTH // 2:
            raise ValueError(f"the formula is nested more than {MAX_DEPTH // 2} deep")
        result = read()
        self.depth -= 1
        return result

    # Terms

    def sum(self, start: Terms) -> Terms:
        terms = dict(start)
        while True:
            minus = False
            while sign := self.accept("+", "-"):
                minus ^= sign == "-"
            if self.tokens[self.position][:2] == ("number", "0"):
                minus = not minus
                self.take()
                part = INTERCEPT
            else:
                part = self.product()
            if minus and part.keys() == INTERCEPT.keys() and not start:
                raise ValueError(
                    "-1 and 0 have no effect inside of parentheses: write them outside"
                )
            if minus:
                terms = {key: term for key, term in terms.items() if key not in part}
            else:
                terms = self.few({**terms, **{k: t for k, t in part.items() if k not in terms}})
            if self.peek() not in ("+", "-"):
                return terms

    def product(self) -> Terms:
        terms = self.interaction()
        while operator := self.accept("*", "/"):
            right = self.interaction()
            if operator == "*":
                crossed = self.cross(terms, right)
                terms = self.few(
                    {**terms, **_new(right, terms), **_new(crossed, {**terms, **right})}
                )
            else:
                common = INTERCEPT
                for key, term in terms.items():
                    common = self.cross(common, {key: term})
                terms = self.few({**terms, **_new(self.cross(common, right), terms)})
        return terms

    def interaction(self) -> Terms:
        terms = self.power()
        while self.accept(":"):
            terms = self.cross(terms, self.power())
        return terms

    def power(self) -> Terms:
        base = self.atom()
        if not self.accept("**", "^"):
            return base
        kind, text, _ = self.take()
        if kind != "number" or not text.isdecimal() or not 1 <= len(text) <= 3:
            raise ValueError("the power of terms must be a whole number such as (a + b)**2")
        if not 1 <= int(text) <= MAX_FACTORS:
            raise ValueError(f"the power of terms must be from 1 to {MAX_FACTORS}, got {text}")
        terms = base
        for _ in range(int(text) - 1):
            terms = self.cross(terms, base)
        return terms

    def cross(self, left: Terms, right: Terms) -> Terms:
        """Every term of the left with every term of the right."""
        crossed: Terms = {}
        for key, term in left.items():
            for other, factors in right.items():
                both = key | other
                if both in crossed:
                    continue
                if len(both) > MAX_FACTORS:
                    raise ValueError(f"a term of the formula has more than {MAX_FACTORS} factors")
                crossed[both] = term + tuple(f for f in factors if show(f) not in key)
            self.few(crossed)
        return crossed

    def few(self, terms: Terms) -> Terms:
        if len(terms) > MAX_TERMS:
            raise ValueError(f"the formula has more than {MAX_TERMS:,} terms")
        return terms

    def atom(self) -> Terms:
        if self.accept("("):
            terms = self.nested(lambda: self.sum({}))
            if self.peek() == "|":
                raise ValueError("group terms such as (1 | g) are not supported yet")
            self.expect(")")
            return terms
        if self.accept("."):
            return {frozenset((show(Column(name)),)): (Column(name),) for name in self.others}
        kind, text, _ = self.tokens[self.position]
        if kind == "number":
            if text != "1":
                raise ValueError(f"{text[:60]} is no term of a formula: write I({text[:60]} * x)")
            self.take()
            return INTERCEPT
        if kind not in ("name", "quoted"):
            raise self.unexpected(", where a term should be")
        node = self.operand()
        check(node)
        return {frozenset((show(node),)): (node,)}

    # Expressions

    def expression(self, least: int = 0) -> Node:
        if sign := self.accept("-", "+"):
            node: Node = Unary(sign, self.nested(lambda: self.expression(UNARY)))
        else:
            node = self.operand()
        while PRECEDENCE.get(self.peek(), -1) >= least:
            operator = self.take().text
            binds = PRECEDENCE[operator]
            right = UNARY if operator == "**" else binds + 1
            node = Binary(operator, node, self.nested(lambda least=right: self.expression(least)))
            if binds == COMPARISON and PRECEDENCE.get(self.peek()) == COMPARISON:
                raise self.unexpected(": comparisons do not follow one another")
        return node

    def operand(self) -> Node:
        if self.accept("("):
            node = self.nested(self.expression)
            self.expect(")")
            return node
        if self.accept("["):
            return self.items()
        kind, text, _ = self.tokens[self.position]
        if kind in ("number", "text"):
            return Literal(self.literal())
        if kind not in ("name", "quoted"):
            raise self.unexpected()
        self.take()
        if self.peek() == "(" and kind == "name":
            check_function(text)
            return self.nested(lambda: self.call(text))
        if kind == "name" and text in CONSTANTS and text not in self.names:
            return Literal(CONSTANTS[text])
        if "." in text and kind == "name" and text not in self.names:
            raise ValueError(
                f"{text[:60]!r} would be an attribute, which formulas do not have; "
                "a column of that name is written in backquotes"
            )
        find(text, self.names, f"formula {shorten(self.text)}")
        return Column(text)

    def call(self, function: str) -> Node:
        self.expect("(")
        arguments: list[Node] = []
        options: dict[str, Node] = {}
        while not self.accept(")"):
            if arguments or options:
                self.expect(",")
                if self.accept(")"):
                    break
            token = self.tokens[self.position]
            if token.kind == "name" and self.peek(1) == "=":
                self.position += 2
                if token.text in options:
                    raise ValueError(f"{function}(): {token.text!r} is given twice")
                options[token.text] = self.value(function)
            elif options:
                raise self.unexpected(": an argument without a name after one with a name")
            else:
                arguments.append(self.value(function) if arguments else self.expression())
        return Call(function, tuple(arguments), tuple(options.items()))

    def value(self, function: str) -> Node:
        """An option; that of C() may be the name of a coding."""
        token = self.tokens[self.position]
        if function == "C" and token.text in (*SUMS, *TREATMENTS) and self.peek(1) != "(":
            return Column(self.take().text)
        return self.expression()

    def items(self) -> Literal:
        values: list[Any] = []
        while not self.accept("]"):
            if values:
                self.expect(",")
                if self.accept("]"):
                    break
            values.append(self.literal())
        return Literal(tuple(values))

    def literal(self) -> Any:
        minus = bool(self.accept("-"))
        kind, text, _ = self.tokens[self.position]
        if kind == "name" and text in CONSTANTS:
            self.take()
            return CONSTANTS[text]
        if kind not in ("number", "text") or (minus and kind == "text"):
            raise self.unexpected(", where a number or a text should be")
        self.take()
        if kind == "text":
            return text[1:-1]
        value = scalar(int(text) if text.isdecimal() and len(text) < 19 else float(text))
        return -value if minus and isinstance(value, int | float) else value


def _new(terms: Terms, known: Terms) -> Terms:
    return {key: term for key, term in terms.items() if key not in known}
