"""From the text of a formula to its terms: an own tokenizer and recursive descent.

    formula     left ~ sum                            see `left`
    sum         [+|-] part {+|- part}                 0 is -1
    part        product | (sum | groups) | offset(expression)      the last two only outermost
    groups      name {: name} {/ name {: name}}       a/b is a and a:b; || is the same as |
    product     interaction {*|/ interaction}         a*b = a + b + a:b, a/b = a + a:b
    interaction power {: power}
    power       atom [** whole number]                ^ is the same
    atom        (sum) | 1 | . | name | `name` | function(expression, option=value, …)

Whatever else is written is an error of one sentence that names it.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from corebayes.data.columns import find
from corebayes.formula.expressions import WordReader
from corebayes.formula.functions import check, check_number
from corebayes.formula.left import read_left
from corebayes.formula.tokens import Token, shorten
from corebayes.formula.tree import MAX_TEXT, Binary, Column, Literal, Node, columns_of, show

MAX_TERMS, MAX_FACTORS = 10_000, 8

Term = tuple[Node, ...]
# A term is told by its factors as they are written, whatever their order.
Terms = dict[frozenset[str], Term]
INTERCEPT: Terms = {frozenset(): ()}


class GroupPart(NamedTuple):
    """Effects that every group has of its own: (1 + x | g)."""

    columns: tuple[str, ...]
    """Whose values make the groups; several for a:b."""
    terms: list[Term]


class Formula(NamedTuple):
    target: Node
    terms: list[Term]
    """In the order of their columns: fewer factors first; the intercept has none."""
    groups: list[GroupPart]
    beside: dict[str, Node]
    """Columns that no coefficient belongs to, by what they mean: offset, trials, event."""

    @property
    def columns(self) -> list[str]:
        """All that it is computed from, each once."""
        written = [*self.terms, *(term for part in self.groups for term in part.terms)]
        nodes = [self.target, *self.beside.values(), *(node for term in written for node in term)]
        grouped = (name for part in self.groups for name in part.columns)
        return list(dict.fromkeys((*(n for node in nodes for n in columns_of(node)), *grouped)))


def parse(text: str, names: tuple[str, ...], ignore: str | None = None) -> Formula:
    """The formula's terms, of columns with these names; `.` is all but the target and `ignore`."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"a formula is a text such as 'y ~ x', not {type(text).__name__}")
    if len(text) > MAX_TEXT:
        raise ValueError(
            f"the formula has {len(text):,} characters; at most {MAX_TEXT:,} are allowed"
        )
    reader = _TermReader(text, names)
    if reader.symbols().count("~") != 1 or reader.symbols()[0] == "~":
        raise ValueError(
            f"the formula {shorten(text)} has no left side or several: write it as 'y ~ x1 + x2'"
        )
    target, beside = read_left(reader)
    left = (name for node in (target, *beside.values()) for name in columns_of(node))
    taken = {*left, ignore}
    reader.others = [name for name in names if name not in taken]
    start = reader.position
    terms = reader.right_side()
    named = {name for part in reader.groups for name in part.columns}
    named.update(name for node in reader.offsets for name in columns_of(node))
    if named and "." in reader.symbols()[start:]:
        # What rows are grouped by, or offset with, is none of the others that `.` stands for.
        reader.others = [name for name in reader.others if name not in named]
        reader.position = start
        terms = reader.right_side()
    if reader.offsets:
        beside["offset"] = functools.reduce(lambda a, b: Binary("+", a, b), reader.offsets)
    found = Formula(target, ordered(terms), reader.groups, beside)
    _check_sides(found)
    return found


def _check_sides(found: Formula) -> None:
    """What is explained does not explain itself; the difference of two columns may go with one."""
    target = columns_of(found.target)
    right = found._replace(target=Literal(0), beside={}).columns
    if len(target) == 1 and target[0] in right:
        raise ValueError(
            f"the formula has {target[0]!r} on both sides: leave it out of the terms and groups on "
            "the right"
        )


def ordered(terms: Terms) -> list[Term]:
    return sorted(terms.values(), key=len)


class _TermReader(WordReader):
    """The terms of a formula."""

    def __init__(self, text: str, names: tuple[str, ...]) -> None:
        super().__init__(text, names)
        self.others: list[str] = []
        self.groups: list[GroupPart] = []
        self.offsets: list[Node] = []

    def right_side(self) -> Terms:
        self.groups, self.offsets = [], []
        terms = self.sum(INTERCEPT)
        if self.peek():
            raise self.unexpected()
        return terms

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
            elif bar := self.bar():
                if minus or self.depth:
                    raise self.misplaced(bar)
                self.group_term()
                part = Terms()
            elif self.tokens[self.position].text == "offset" and self.peek(1) == "(":
                self.offset(misplaced=minus or self.depth > 0)
                part = Terms()
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
        if not self.accept("**"):
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

    def offset(self, *, misplaced: bool) -> None:
        """offset(expression): what is added to the predictor as it is."""
        self.take()
        self.expect("(")
        node = self.nested(self.expression)
        self.expect(")")
        check_number(node)
        if misplaced or self.peek() not in ("+", "-", ""):
            raise ValueError(
                f"offset() is added as it is in the formula {shorten(self.text)}: write it between "
                "+ signs, outside of parentheses"
            )
        self.offsets.append(node)

    # Groups

    def bar(self) -> Token | None:
        """The | of the group term that begins here, if one does."""
        depth = 0
        for token in self.tokens[self.position :]:
            if token.kind == "symbol":
                depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
                if depth == 1 and token.text in ("|", "||"):
                    return token
            if depth < 1:
                return None
        return None

    def group_term(self) -> None:
        self.expect("(")
        if self.peek() in ("|", "||"):
            raise ValueError(
                f"a group term of the formula {shorten(self.text)} has nothing before the "
                f"{self.peek()}: write (1 | g), or (1 + x | g) for slopes as well"
            )
        terms = self.nested(lambda: self.sum(INTERCEPT))
        if not self.accept("|", "||"):
            raise self.unexpected(", where '|' should be")
        if not terms:
            raise ValueError(
                f"a group term of the formula {shorten(self.text)} has no effects before the |: "
                "write (1 | g), or (0 + x | g) for slopes alone"
            )
        columns: tuple[str, ...] = ()
        while True:
            columns = (*columns, *(name for name in self.group() if name not in columns))
            self.groups.append(GroupPart(columns, ordered(terms)))
            if not self.accept("/"):
                break
        self.expect(")")

    def group(self) -> list[str]:
        """Columns with : between them."""
        names: list[str] = []
        while not names or self.accept(":"):
            kind, text, _ = self.tokens[self.position]
            if kind not in ("name", "quoted"):
                raise self.unexpected(", where the column of a group should be")
            self.take()
            if self.peek() == "(":
                raise ValueError(
                    f"the groups of a group term are the values of a column, not of {text[:60]}(): "
                    "make a column of it first, and write (1 | g); groups need no C()"
                )
            find(text, self.names, f"formula {shorten(self.text)}")
            names.append(text)
        return names


def _new(terms: Terms, known: Terms) -> Terms:
    return {key: term for key, term in terms.items() if key not in known}
