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
from corebayes.files.reading import printable
from corebayes.report.summary import summarise
from corebayes.watch.progress import show_steps

EXAMPLE = "Example: corebayes sample coreset.parquet --draws 1000 --chains 4 --out posterior.nc"

# Attributes of the draws that say what they are worth.
WORTH = ("sampler", "acceptance", "max_rhat", "min_ess_bulk", "min_ess_tail")


def sample(
    coreset: CoresetFile,
    draws: Annotated[int, Option(help="Draws of each chain.")] = 1000,
    chains: Annotated[int, Option(help="Chains.")] = 4,
    seed: Seed = 0,
    sampler: Annotated[
        str | None,
        Option(
            help='Insist on "exact", "independence" or "nuts". [default: the cheapest exact way]'
        ),
    ] = None,
    tune: Annotated[int, Option(help="Steps of tuning of each chain of NUTS.")] = 500,
    out: Annotated[Path | None, Option(help="Where to write the draws (.nc, for ArviZ).")] = None,
    as_json: Json = False,
) -> None:
    """Draw from the coreset posterior by the cheapest exact way and summarise it."""
    loaded = cb.load(coreset)
    if out is not None:
        # Eight bytes for every number of a draw, of which seven say how it went.
        probe_output(out, ".nc", num_bytes=ROOM + 8 * draws * chains * (loaded.model.dim + 7))
        import_netcdf()
    began = time.perf_counter()
    with show_steps() as steps:
        steps.begin("sampling the coreset posterior")
        draw_data = cb.sample(
            loaded,
            draws=draws,
            chains=chains,
            tune=tune,
            seed=seed,
            sampler=sampler,
            progress=False,
        )
    seconds = time.perf_counter() - began
    divergences = int(draw_data.sample_stats["diverging"].sum())
    worth = {name: draw_data.attrs[name] for name in WORTH}
    hand_over(
        draw_data,
        out,
        as_json,
        f"{worth['sampler']} of {draws:,} draws: {_in_words(worth, divergences, seconds)}",
        command="sample",
        coreset=str(coreset),
        draws=draws,
        chains=chains,
        seed=seed,
        seconds=seconds,
        divergences=divergences,
        **{name: _or_none(value) for name, value in worth.items()},
    )


def hand_over(draws: Any, out: Path | None, as_json: bool, words: str, /, **told: Any) -> None:
    """The draws into a file, and what is told of them as a table with words or as JSON."""
    if out is not None:
        write_or_keep(partial(write_netcdf, draws), out, "the file of draws")
    parameters = summarise(draws.posterior)
    if as_json:
        print_json(**told, out=None if out is None else str(out), parameters=parameters)
        return
    console = make_console()
    console.print(summary_table(parameters))
    console.print(words, soft_wrap=True)
    if out is not None:
        console.print(f"Draws are in {out}")


def _in_words(worth: dict[str, Any], divergences: int, seconds: float) -> str:
    accepted = f"{worth['acceptance']:.0%} accepted, " if worth["acceptance"] < 1.0 else ""
    sizes = f"ESS at least {worth['min_ess_bulk']:,.0f} (tails {worth['min_ess_tail']:,.0f})"
    agreement = f"R̂ at most {worth['max_rhat']:.3f}"
    return f"{accepted}{agreement}, {sizes}, {divergences} divergences, {seconds:.1f} s"


def _or_none(value: Any) -> Any:
    """JSON has no NaN."""
    return None if value != value else value


def summary_table(parameters: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("parameter")
    for name in list(parameters[0])[1:]:
        table.add_column(name, justify="right")
    for entry in parameters:
        name, mean, sd, low, high, ess, rhat = entry.values()
        cells = [f"{value:.4g}" for value in (mean, sd, low, high)]
        table.add_row(printable(name), *cells, f"{ess:,.0f}", f"{rhat:.3f}")
    return table


def import_netcdf() -> None:
    """Before there are draws to write."""
    try:
        importlib.import_module("h5netcdf")
    except ImportError as error:
        error.add_note('writing draws needs h5netcdf: pip install "corebayes[sample]"')
        raise


def write_netcdf(draw_data: Any, out: Path) -> None:
    with replacing(out) as path:
        draw_data.to_netcdf(str(path))
