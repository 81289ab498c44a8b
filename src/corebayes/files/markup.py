"""Text as HTML: whatever is a word of the user's is escaped here, once."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

# Lines of a notebook's table of priors.
MOST_PRIORS = 24

# Characters that change the order or the look of what is beside them are written out: a command
# must read as what it is.
_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROLS = (*range(9), 11, 12, *range(14, 32), *range(127, 160))
_VISIBLE = {code: f"\\u{code:04x}" for code in (*_CONTROLS, *_DIRECTIONS)}


class Markup(str):
    """Text that is HTML already; any other text is not."""

    __slots__ = ()


def escape(words: object) -> str:
    """Any text as the same text in HTML, between tags or in an attribute."""
    return html.escape(str(words).translate(_VISIBLE))


def markup(content: object) -> str:
    return content if isinstance(content, Markup) else escape(content)


def element(tag: str, *content: object, css: str = "") -> Markup:
    kind = f' class="{css}"' if css else ""
    return Markup(f"<{tag}{kind}>{''.join(map(markup, content))}</{tag}>")


def notebook(title: str, *parts: Markup) -> str:
    """What a notebook shows of an object: a heading and tables, without a style or a script."""
    return element("div", element("p", element("b", title)), *parts)


def plain_table(header: Sequence[object], rows: Iterable[Sequence[object]]) -> Markup:
    """A table as notebooks draw that of a frame."""
    head = element("thead", element("tr", *(element("th", cell) for cell in header)))
    lines = [element("tr", *(element("td", cell) for cell in row)) for row in rows]
    return element("table", *([head] if header else []), element("tbody", *lines))


def model_html(model: Any) -> str:
    """What a notebook shows of a model: a table of its priors where it has one, else its repr."""
    try:
        rows: Any = model.priors()
    except (AttributeError, ValueError):
        return notebook(type(model).__name__, element("pre", repr(model)))
    likelihood, bound = getattr(model, "likelihood", None), getattr(model, "bound", None)
    target = getattr(bound, "target", "y")
    told = [] if likelihood is None else [element("p", f"{target} ~ {likelihood}")]
    table = plain_table(("parameter", "prior", "from where"), rows[:MOST_PRIORS])
    left = len(rows) - MOST_PRIORS
    more = [element("p", f"{left:,} more parameters")] if left > 0 else []
    return notebook(type(model).__name__, *told, table, *more)
