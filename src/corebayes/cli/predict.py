"""The command `corebayes predict`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

from rich.table import Table
from typer import Argument, Option

import corebayes as cb
from corebayes.cli.inputs import read_table
from corebayes.cli.options import Json, RowsFile, Seed, make_console, print_json
from corebayes.cli.sample import import_netcdf
from corebayes.files.outputs import ROOM, probe_output
from corebayes.predict.prediction import new_groups_said

EXAMPLE = "Example: corebayes predict coreset.parquet new.parquet --out predictions.parquet"

# Rows that are shown when no file was named.
SHOWN = 10


def predict(
    coreset: Annotated[
        Path, Argument(help="A coreset, or draws that `corebayes sample --out` wrote (.nc).")
    ],
    rows: RowsFile,
    out: Annotated[
        Path | None, Option(help="Where to write a line for each row (.parquet).")
    ] = None,
    posterior: Annotated[
        Path | None, Option(help="Draws of the coreset (.nc) to predict with.", show_default="new")
    ] = None,
    interval: Annotated[float, Option(help="The probability inside the intervals.")] = 0.9,
    draws: Annotated[int, Option(help="Draws of the posterior to use.")] = 1000,
    keep_draws: Annotated[
        bool, Option("--keep-draws", help="Write draws of the target, too.")
    ] = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Predict the target of new rows, which have the columns that the coreset was built with."""
    if out is not None:
        probe_output(out, ".parquet", num_bytes=ROOM)
    elif keep_draws:
        raise ValueError("--keep-draws needs a file to write them to: give --out")
    source: Any = _draws(coreset) if coreset.suffix == ".nc" else cb.load(coreset)
    given = None if posterior is None else _draws(posterior)
    if given is not None and coreset.suffix == ".nc":
        raise ValueError(f"{coreset} has draws already: leave out --posterior")
    began = time.perf_counter()
    found = cb.predict(
        source,
        read_table(rows),
        draws=given,
        interval=interval,
        num_draws=draws,
        keep_draws=keep_draws,
        out=out,
        seed=seed,
    )
    told = {
        "command": "predict",
        "rows": rows,
        "out": None if out is None else str(out),
        "num_rows": found.num_rows,
        "num_draws": found.num_draws,
        "interval": found.interval,
        "new_groups": {name: list(map(str, one)) for name, one in found.new_groups.items()},
        "seconds": time.perf_counter() - began,
    }
    if as_json:
        lines = {} if out else {"predictions": {k: v.tolist() for k, v in found.columns.items()}}
        print_json(**told, **lines)
        return
    console = make_console()
    if out is None:
        console.print(_table(found))
    else:
        console.print(f"Predictions of {found.num_rows:,} rows are in {out}", style="bold")
    if found.new_groups:
        console.print(new_groups_said(found.new_groups), soft_wrap=True)


def _draws(path: Path) -> Any:
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    import_netcdf()
    from corebayes.samplers.chain import import_quietly

    return import_quietly("arviz", "sample").from_netcdf(str(path))


def _table(found: cb.Prediction) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("row", justify="right")
    for name in found.columns:
        table.add_column(name, justify="right")
    for row in range(min(SHOWN, found.num_rows)):
        table.add_row(f"{row:,}", *(f"{column[row]:.4g}" for column in found.columns.values()))
    if found.num_rows > SHOWN:
        table.add_row("…", *[""] * len(found.columns))
    return table
