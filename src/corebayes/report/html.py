"""HTML text: whatever is a word of the user's is escaped here, once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

MISSING = "Not measured: this part needs the rows."


class Markup(str):
    """Text that is HTML already; any other text is not."""

    __slots__ = ()


def markup(content: object) -> str:
    return content if isinstance(content, Markup) else escape(str(content))


def element(tag: str, *content: object, css: str = "") -> Markup:
    kind = f' class="{css}"' if css else ""
    return Markup(f"<{tag}{kind}>{''.join(map(markup, content))}</{tag}>")


def section(name: str, title: str, *content: object) -> Markup:
    heading = Markup(f'<h2 id="{name}">{escape(title)}</h2>')
    body = "".join(map(markup, content))
    return Markup(f'<section aria-labelledby="{name}">{heading}{body}</section>')


def figure(drawing: str, *caption: object) -> Markup:
    return element("figure", Markup(drawing), element("figcaption", *caption))


def table(
    caption: str, header: Sequence[object], rows: Iterable[Sequence[object]], *, css: str = ""
) -> Markup:
    """A table that scrolls by itself when it is too wide; the first cell of a row names it."""
    head = "".join(f'<th scope="col">{markup(cell)}</th>' for cell in header)
    body = "".join(
        f'<tr><th scope="row">{markup(first)}</th>'
        + "".join(f"<td>{markup(cell)}</td>" for cell in rest)
        + "</tr>"
        for first, *rest in rows
    )
    kind = f' class="{css or "pairs"}"' if css or not header else ""
    head = f"<thead><tr>{head}</tr></thead>" if header else ""
    # A box that scrolls must be reachable by keyboard, and so has a name.
    return Markup(
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f"<table{kind}><caption>{escape(caption)}</caption>{head}<tbody>{body}</tbody></table></div>"
    )
