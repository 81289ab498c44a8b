"""Docstrings are written to be read in an editor; this makes of them what Sphinx reads.

An indented paragraph is an equation or a table: it becomes a block of text as it stands. Bars are
absolute values and norms, not substitutions. A docstring that a class only has because Python made
it up of the signature is left out.
"""

from __future__ import annotations

import re
from typing import Any

BARS = re.compile(r"\|([^|`]+)\|")


def literal_blocks(lines: list[str]) -> list[str]:
    """The lines with a directive before each indented paragraph that follows an empty line."""
    result: list[str] = []
    inside, blank = False, True
    for line in lines:
        indented = line.startswith("    ")
        if indented and blank and not inside:
            result += [".. code-block:: text", ""]
            inside = True
        elif line.strip() and not indented:
            if inside and not blank:
                result.append("")
            inside = False
        result.append(line if inside else BARS.sub(r"\\|\1\\|", line))
        blank = not line.strip()
    return result


def _process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    if what == "class" and lines and lines[0].startswith(f"{obj.__name__}("):
        lines.clear()
    lines[:] = literal_blocks(lines)


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", _process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
