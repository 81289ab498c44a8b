"""The command `corebayes sample`."""

from __future__ import annotations

import importlib
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from rich.table import Table
from typer import Option

import corebayes as cb
from corebayes.cli.options import CoresetFile, Json, Seed, make_console, print_json
from corebayes.files.atomic import replacing
from corebayes.files.outputs import ROOM, probe_output, write_or_keep
from corebayes.report.summary import summarise
from corebayes.watch.steps import show_steps

EXAMPLE = "Example: corebayes sample coreset.parquet --draws 1000 --chains 4 --out posterior.nc"


def sample(
    coreset: CoresetFile,
    draws: Annotated[int, Option(help="Draws of each chain.")] = 1000,
    chains: Annotated[int, Option(help="Chains.")] = 4,
    seed: Seed = 0,
    out: Annotated[Path | None, Option(help="Where to write the draws (.nc, for ArviZ).")] = None,
    as_json: Json = False,
) -> None:
    """Draw from the coreset posterior with NUTS and summarise it."""
    loaded = cb.load(coreset)
    if out is not None:
        # Eight bytes for every number of a draw, of which seven say how it went.
        probe_output(out, ".nc", num_bytes=ROOM + 8 * draws * chains * (loaded.model.dim + 7))
        _import_netcdf()
    began = time.perf_counter()
    with show_steps() as steps:
        steps.begin("sampling the coreset posterior")
        draw_data = cb.sample(loaded, draws=draws, chains=chains, seed=seed, progress=False)
    seconds = time.perf_counter() - began
    if out is not None:
        write_or_keep(partial(_write_netcdf, draw_data), out, "the file of draws")
    parameters = summarise(draw_data.posterior)
    divergences = int(draw_data.sample_stats["diverging"].sum())
    if as_json:
        print_json(
            command="sample",
            coreset=str(coreset),
            out=None if out is None else str(out),
            draws=draws,
            chains=chains,
            seed=seed,
            seconds=seconds,
            divergences=divergences,
            parameters=parameters,
        )
        return
    console = make_console()
    console.print(summary_table(parameters))
    console.print(f"{chains} chains of {draws:,} draws, {divergences} divergences, {seconds:.1f} s")
    if out is not None:
        console.print(f"Draws are in {out}")


def summary_table(parameters: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("parameter")
    for name in list(parameters[0])[1:]:
        table.add_column(name, justify="right")
    for entry in parameters:
        name, mean, sd, low, high, ess, rhat = entry.values()
        cells = [f"{value:.4g}" for value in (mean, sd, low, high)]
        table.add_row(name, *cells, f"{ess:,.0f}", f"{rhat:.3f}")
    return table


def _import_netcdf() -> None:
    """Before there are draws to write."""
    try:
        importlib.import_module("h5netcdf")
    except ImportError as error:
        error.add_note('writing draws needs h5netcdf: pip install "corebayes[sample]"')
        raise


def _write_netcdf(draw_data: Any, out: Path) -> None:
    with replacing(out) as path:
        draw_data.to_netcdf(str(path))
