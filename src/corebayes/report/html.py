"""HTML text: whatever is a word of the user's is escaped here, once; and the page around it.

The page loads nothing and runs nothing: its Content-Security-Policy allows its own style sheet, by
its hash, and pictures that are part of it.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Sequence
from importlib.resources import files

MISSING = "Not measured: this part needs the rows."
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


def document(title: str, *body: Markup) -> str:
    """A whole page that loads nothing and runs no script."""
    style = files("corebayes.report").joinpath("style.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
        "form-action 'none'; base-uri 'none'"
    )
    # The policy holds for what comes after it, so it comes first.
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        # An empty icon, so that a browser does not ask for one.
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


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
