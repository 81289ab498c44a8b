"""The page of a report, around text that is escaped in `corebayes.files.markup`.

The page loads nothing and runs nothing: its Content-Security-Policy allows its own style sheet, by
its hash, and pictures that are part of it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from importlib.resources import files

from corebayes.files.markup import Markup as Markup
from corebayes.files.markup import element as element
from corebayes.files.markup import escape as escape
from corebayes.files.markup import markup as markup

MISSING = "Not measured: this part needs the rows."


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
