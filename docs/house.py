"""The pictures of "Architecture": the rooms of the package and the walk of the data, from the code.

    python docs/house.py

writes docs/images/house.svg and walk.svg; the same bytes every time. The order of the rooms is the
one that CONTRIBUTING.md draws, and tests/test_architecture.py checks every import against it. The
walk is what a small build, a certificate and a report really decoded, as the rows counted it.
"""

from __future__ import annotations

import ast
import re
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from matplotlib.patches import Rectangle
from pyarrow import parquet

import corebayes as cb
from corebayes.figures.plots import save_figure

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "corebayes"
IMAGES = ROOT / "docs" / "images"
# Rows of the build whose walk is drawn.
NUM_ROWS = 200_000


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


def words_of(room: str) -> str:
    """The first sentence of a room's docstring."""
    found = modules()
    path = PACKAGE / "__init__.py" if room == "corebayes" else found[room]
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return (
        text.split("\n\n")[0].split(". ")[0].removesuffix(".").replace("\n", " ").replace("`", "")
    )


def lines_of(room: str) -> int:
    """Lines of code in all modules of a room."""
    own = [path for name, path in modules().items() if (room_of(name) or "corebayes") == room]
    return sum(len(path.read_text().splitlines()) for path in own)


def draw_house(figure: Any) -> None:
    """One floor a line, the ground at the bottom, with the lines of code of every room."""
    axis = figure.subplots()
    axis.set_axis_off()
    levels = floors()
    axis.set(xlim=(0.0, 1.0), ylim=(-0.05, len(levels)))
    for height, rooms in enumerate(levels):
        for place, room in enumerate(rooms):
            left, width = place / len(rooms), 1.0 / len(rooms)
            box = {"facecolor": "#EAF2FA", "edgecolor": "#0072B2", "lw": 0.8}
            axis.add_patch(Rectangle((left + 0.004, height + 0.06), width - 0.008, 0.86, **box))
            middle = left + width / 2
            title = f"{room}  {lines_of(room):,}"
            axis.text(middle, height + 0.66, title, ha="center", va="center", weight="bold")
            wrapped = textwrap.fill(words_of(room), int(165 * width), max_lines=2, placeholder=" …")
            axis.text(middle, height + 0.28, wrapped, ha="center", va="center", fontsize=7)


def measured_walk() -> list[tuple[str, int]]:
    """The stages of a build, a certificate and the rows that each decoded, in units of N."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(NUM_ROWS, 4))
    y = (rng.random(NUM_ROWS) < 1 / (1 + np.exp(-X @ [1.0, -0.5, 0.3, 0.2]))).astype(float)
    with tempfile.TemporaryDirectory() as folder:
        columns = {f"x{k}": X[:, k] for k in range(4)}
        table = pyarrow.table({**columns, "y": y})
        parquet.write_table(table, f"{folder}/rows.parquet", row_group_size=10_000)
        # With a budget nothing stays in memory, so that every pass is seen.
        rows = cb.open(f"{folder}/rows.parquet", target="y", memory="1GB")
        coreset = cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, size=20, seed=0)
        built = rows.meter.rows_decoded
        cb.certify(coreset, rows, draws=200)
        stages = coreset.provenance["stages"]
        walk = [(name, int(stage["rows_decoded"])) for name, stage in stages.items()]
        return [*walk, ("certify", rows.meter.rows_decoded - built)]


def draw_walk(figure: Any) -> None:
    """Source to result, and under every stage the rows that it decoded."""
    axis = figure.subplots()
    axis.set_axis_off()
    stages = [(name, number) for name, number in measured_walk() if number]
    steps = ["cb.open", *(name for name, _ in stages)]
    notes = ["headers only", *(f"{number / NUM_ROWS:.1f} N rows" for _, number in stages)]
    axis.set(xlim=(0.0, len(steps)), ylim=(0.0, 1.0))
    for place, (step, told) in enumerate(zip(steps, notes, strict=True)):
        box = {"facecolor": "#EAF2FA", "edgecolor": "#0072B2", "lw": 0.8}
        axis.add_patch(Rectangle((place + 0.06, 0.3), 0.78, 0.45, **box))
        axis.text(place + 0.45, 0.58, step, ha="center", va="center", weight="bold")
        axis.text(place + 0.45, 0.42, told, ha="center", va="center", fontsize=8)
        if place:
            arrow = {"arrowstyle": "->", "color": "#0072B2"}
            axis.annotate("", (place + 0.06, 0.52), (place - 0.16, 0.52), arrowprops=arrow)


def main() -> None:
    save_figure((IMAGES / "house.svg",), (11.0, 8.4), draw_house)
    save_figure((IMAGES / "walk.svg",), (8.4, 1.6), draw_walk)


if __name__ == "__main__":
    main()
