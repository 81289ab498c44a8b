"""Reading the words of a formula, and the arithmetic inside of its functions.

Expressions are + - * / // % ** and comparisons of columns, numbers and texts; functions are those
of a closed list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corebayes.data.columns import find
from corebayes.formula.functions import SUMS, TREATMENTS, check_function
from corebayes.formula.tokens import Token, shorten, split
from corebayes.formula.tree import (
    COMPARISON,
    MAX_DEPTH,
    PRECEDENCE,
    UNARY,
    Binary,
    Call,
    Column,
    Literal,
    Node,
    Unary,
    scalar,
)

# R's names for categories.
ALSO = {"factor": "C", "as.factor": "C"}
CONSTANTS: dict[str, bool | None] = {"True": True, "False": False, "None": None}
GROUP_TERMS = (
    "group terms such as (1 | g) are in parentheses of their own, between + signs and outside of "
    "functions"
)


class WordReader:
    """The tokens of a formula and how far they are read."""

    def __init__(self, text: str, names: tuple[str, ...]) -> None:
        self.text, self.names = text, names
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
        if token.text in ("|", "||") and token.kind == "symbol":
            return self.misplaced(token)
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

    def misplaced(self, bar: Token) -> ValueError:
        """The error for a group term where none can be."""
        return ValueError(
            f"the formula {shorten(self.text)} has {bar.text!r} at character {bar.place + 1}: "
            f"{GROUP_TERMS}"
        )

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
            text = ALSO.get(text, text)
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
