"""The command that shows all of it on generated data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.console import Console
from typer import Option

from corebayes.cli.options import Json, Seed, make_console, print_json

EXAMPLE = "Example: corebayes demo --rows 100000 --out demo/"


def demo(
    rows: Annotated[int, Option(help="Rows to generate.")] = 1_000_000,
    size: Annotated[int, Option(help="Rows to keep.")] = 66,
    seed: Seed = 0,
    out: Annotated[Path, Option(help="Folder for the figure.")] = Path("demo"),
    quick: Annotated[bool, Option("--quick", help="10,000 rows.")] = False,
    as_json: Json = False,
) -> None:
    """Compress generated data, sample, certify and compare with all rows."""
    from corebayes.cli.demo import run_demo

    if rows < 1000:
        raise ValueError(f"--rows must be at least 1000 to show anything, got {rows}")
    console = Console(stderr=True, highlight=False, markup=False) if as_json else make_console()
    report = run_demo(
        num_rows=10_000 if quick else rows,
        size=size,
        seed=seed,
        out=out,
        say=lambda text: console.print(text, soft_wrap=True),
    )
    if as_json:
        print_json(command="demo", **report)
