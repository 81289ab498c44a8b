"""Docstrings are written to be read in an editor; this makes of them what Sphinx reads.

An indented line that is an equation is set as one, and other indented paragraphs become blocks of
text as they stand; in text indexed letters are set (`typeset`). Bars are absolute values and norms,
not substitutions. A docstring that a class only has because Python made it up of the signature is
left out, and so are methods that a class has because its base asks for them: they are explained
there. Arrays in signatures have the names that the code gives them.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from typeset import is_equation, set_text, tex

ARRAYS = {
    kind: re.compile(
        rf"~?[\w.]*ndarray\[tuple\[~?[\w.]*Any, \.\.\.\], ~?[\w.]*dtype\[~?[\w.]*{dtype}\]\]"
    )
    for kind, dtype in (("Array", "float64"), ("Indices", "int64"))
}
MODULES = re.compile(r"~(?:\w+\.)*")
# What families say about themselves to the command line and to figures.
TOLD = {"command_line", "also", "style", "ranges", "can_start", "flags", "mean_link"}
BARS = re.compile(r"\|([^|`]+)\|")


def literal_blocks(lines: list[str]) -> list[str]:
    """The lines with a directive before each indented paragraph that follows an empty line."""
    result: list[str] = []
    inside, blank = False, True
    for place, line in enumerate(lines):
        indented = line.startswith("    ")
        if indented and blank and not inside:
            block = _paragraph(lines, place)
            inside = True
            if is_equation(block):
                result += [".. math::", "", f"    {tex(block[0].strip())}"]
                blank = False
                continue
            result += [".. code-block:: text", ""]
        elif line.strip() and not indented:
            if inside and not blank:
                result.append("")
            inside = False
        result.append(line if inside else set_text(BARS.sub(r"\\|\1\\|", line)))
        blank = not line.strip()
    return result


def _paragraph(lines: list[str], first: int) -> list[str]:
    """The indented lines from this one on, to the next that is not."""
    found: list[str] = []
    for line in lines[first:]:
        if line.strip() and not line.startswith("    "):
            break
        found.append(line)
    return [line for line in found if line.strip()]


def short_signature(text: str) -> str:
    """A signature without modules, and without the name of a default that is made when needed."""
    for name, array in ARRAYS.items():
        text = array.sub(name, text)
    return MODULES.sub("", text).replace("<factory>", "...")


def _sign(
    app: Any, what: str, name: str, obj: Any, options: Any, arguments: Any, returns: Any
) -> Any:
    return tuple(part and short_signature(part) for part in (arguments, returns))


def _process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    if what == "class" and lines and lines[0].startswith(f"{obj.__name__}("):
        lines.clear()
    lines[:] = literal_blocks(lines)


def asked_for(name: str, member: Any) -> bool:
    """Whether a base of the class that has this member has one of the same name."""
    function = getattr(member, "fget", member)
    module = sys.modules.get(str(getattr(function, "__module__", "")))
    owner: Any = getattr(
        module, str(getattr(function, "__qualname__", "")).rpartition(".")[0], None
    )
    return isinstance(owner, type) and any(name in vars(base) for base in owner.__mro__[1:])


def _skip(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    return True if name in TOLD or asked_for(name, obj) else None


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", _process)
    app.connect("autodoc-process-signature", _sign)
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
