"""The picture of "Architecture": the rooms of the package and what may import what, from the code.

    python docs/house.py

writes docs/images/house.svg; the same bytes every time. The order of the rooms is the one that
CONTRIBUTING.md draws, and tests/test_architecture.py checks every import against it.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "corebayes"


def modules(package: Path = PACKAGE) -> dict[str, Path]:
    """Every module's dotted name below the package, and its file."""
    found: dict[str, Path] = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(package: Path = PACKAGE) -> dict[str, set[str]]:
    """What every module imports of the package, in functions and for type checkers included."""
    known = modules(package)
    return {
        name: {
            target
            for node in ast.walk(ast.parse(path.read_text()))
            for target in _named(node, known)
        }
        - {name}
        for name, path in known.items()
    }


def _named(node: ast.AST, known: dict[str, Path]) -> list[str]:
    """The modules that one import statement names."""
    if isinstance(node, ast.Import):
        dotted = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module is not None:
        # `from package import name` is the module of that name if there is one.
        dotted = [f"{node.module}.{alias.name}" for alias in node.names]
        dotted = [name if _below(name) in known else node.module for name in dotted]
    else:
        return []
    return [_below(name) for name in dotted if name.split(".")[0] == "corebayes"]


def _below(dotted: str) -> str:
    return dotted.partition(".")[2]


def room_of(module: str) -> str:
    """The folder of a module, or the module itself where it stands loose; "" is the package."""
    return module.split(".")[0]


def floors() -> list[list[str]]:
    """The rooms from the ground up, those of one floor together, as CONTRIBUTING.md draws them."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    drawn = re.search(r"^    types, .*(?:\n    .*)*", text, re.MULTILINE)
    assert drawn is not None, "CONTRIBUTING.md draws the order of imports as `types, … ← …`"
    return [re.split(r",\s*", floor.strip()) for floor in " ".join(drawn[0].split()).split("←")]
