"""The words of a formula: numbers, names, texts and the symbols that are allowed."""

from __future__ import annotations

import re
from typing import NamedTuple

TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<name>[^\W\d](?:\.?\w)*)
    | `(?P<quoted>[^`]+)`
    | (?P<text>"[^"\\]*"|'[^'\\]*')
    | (?P<symbol>\*\*|//|\|\||==|!=|<=|>=|[-+*/%^:~|()\[\],=<>.])
    )""",
    re.VERBOSE,
)


class Token(NamedTuple):
    kind: str
    text: str
    place: int


def split(text: str) -> list[Token]:
    """The tokens of a text, with one for its end. Names stay as they are written."""
    tokens: list[Token] = []
    end, place = len(text.rstrip()), 0
    while place < end:
        found = TOKEN.match(text, place)
        if found is None:
            place = end - len(text[place:end].lstrip())
            raise ValueError(
                f"{text[place]!r} at character {place + 1} has no meaning in the formula "
                f"{shorten(text)}"
            )
        kind = str(found.lastgroup)
        # R writes powers with ^.
        words = "**" if (kind, found[kind]) == ("symbol", "^") else found[kind]
        tokens.append(Token(kind, words, found.start(kind)))
        place = found.end()
    return [*tokens, Token("end", "", end)]


def mentioned(text: str) -> set[str]:
    """The names in a text, of columns and of functions."""
    return {token.text for token in split(text) if token.kind in ("name", "quoted")}


def shorten(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
