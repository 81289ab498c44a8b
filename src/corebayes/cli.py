"""The command line: `corebayes build | sample | certify | demo`."""

from __future__ import annotations

import json
import math
import os
import sys
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from typer import Argument, Option

import corebayes as cb
from corebayes.inputs import (
    METHODS,
    MODELS,
    Columns,
    ModelOptions,
    make_method,
    make_model,
    read_rows,
)
from corebayes.types import Coreset

# Boxes and colours are for people: help in a pipe is plain text.
app = typer.Typer(
    name="corebayes",
    help="Small weighted data sets with the same Bayesian posterior as the large one.",
    epilog="Start with: corebayes demo",
    add_completion=False,
    rich_markup_mode="rich" if sys.stdout.isatty() else None,
)

# What a shell expects of a program that Ctrl-C ended.
INTERRUPTED = 130

RowsFile = Annotated[
    Path, Argument(help="Rows: .parquet, .csv, .npz (arrays X and y) or .npy (a matrix).")
]
CoresetFile = Annotated[Path, Argument(help="A coreset that `corebayes build` wrote.")]
Target = Annotated[str | None, Option(help="Column to predict (a number for .npy).")]
Features = Annotated[
    str | None, Option(help="Columns to predict from, as a,b,c.", show_default="all others")
]
Counts = Annotated[str | None, Option(help="Column that says how often a row counts.")]
OnBad = Annotated[str, Option(help="Rows with missing values: raise (an error) or drop.")]
Seed = Annotated[int, Option(help="The same seed gives the same result.")]
Json = Annotated[bool, Option("--json", help="Print one JSON object and nothing else.")]


def run(arguments: list[str]) -> NoReturn:
    """Run a command line and exit: 0 done, 1 not certified, 2 an error told in one sentence."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _show_warning
        try:
            code = app(args=arguments or ["--help"], prog_name="corebayes", standalone_mode=False)
        except Exception as error:
            if os.environ.get("COREBAYES_TRACEBACK"):
                raise
            print(f"corebayes: {_sentence(error)}", file=sys.stderr)
            code = 2
    if code == INTERRUPTED:
        print("corebayes: interrupted, nothing was written", file=sys.stderr)
    sys.exit(code or 0)


@app.command(
    epilog="Example: corebayes build rows.parquet --model logistic --target y --size 200 "
    "--out coreset.parquet"
)
def build(
    rows: RowsFile,
    model: Annotated[str, Option(help=f"One of {', '.join(MODELS)}.")],
    out: Annotated[Path, Option(help="Where to write the coreset (.parquet).")],
    target: Target = None,
    features: Features = None,
    counts: Counts = None,
    intercept: Annotated[bool, Option("--intercept", help="Append a column of ones.")] = False,
    size: Annotated[int | None, Option(help="How many rows to keep.")] = None,
    tol: Annotated[float | None, Option(help="Grow until KL is certified below this.")] = None,
    method: Annotated[str, Option(help=f"One of {', '.join(METHODS)}.")] = "annealed-sparse-vi",
    prior_sd: Annotated[float, Option(help="Prior: N(0, sd²) on every coefficient.")] = 1.0,
    noise_sd: Annotated[
        float | None, Option(help="Of linear, gaussian, student-t.", show_default="1.0")
    ] = None,
    df: Annotated[
        float | None, Option(help="Degrees of freedom of student-t.", show_default="4.0")
    ] = None,
    dispersion: Annotated[
        float | None, Option(help="Of negative-binomial.", show_default="1.0")
    ] = None,
    seed: Seed = 0,
    max_time: Annotated[float | None, Option(help="Stop after so many seconds.")] = None,
    on_bad: OnBad = "raise",
    as_json: Json = False,
) -> None:
    """Choose a few weighted rows whose posterior is that of all rows."""
    if size is None and tol is None:
        raise ValueError("give --size (how many rows to keep) or --tol (how small KL must be)")
    _check_output(out, ".parquet")
    options = ModelOptions(prior_sd, intercept, noise_sd, df, dispersion)
    bayes, construction = make_model(model, options), make_method(method)
    columns = Columns(target, _split(features), counts, on_bad)
    data = read_rows(rows, columns)
    coreset = cb.build(
        bayes, data, size=size, tol=tol, method=construction, seed=seed, max_time=max_time
    )
    # So that `certify` need not be told the columns again.
    provenance = {**coreset.provenance, "columns": columns._asdict()}
    coreset = replace(coreset, provenance=provenance)
    coreset.save(str(out))
    _print_build(_described(coreset, out), as_json=as_json)


@app.command(
    epilog="Example: corebayes sample coreset.parquet --draws 1000 --chains 4 --out posterior.nc"
)
def sample(
    coreset: CoresetFile,
    draws: Annotated[int, Option(help="Draws of each chain.")] = 1000,
    chains: Annotated[int, Option(help="Chains.")] = 4,
    seed: Seed = 0,
    out: Annotated[Path | None, Option(help="Where to write the draws (.nc, for ArviZ).")] = None,
    as_json: Json = False,
) -> None:
    """Draw from the coreset posterior with NUTS and summarise it."""
    if out is not None:
        _check_output(out, ".nc")
    loaded = cb.load(coreset)
    began = time.perf_counter()
    draw_data = cb.sample(loaded, draws=draws, chains=chains, seed=seed, progress=False)
    seconds = time.perf_counter() - began
    if out is not None:
        _write_netcdf(draw_data, out)
    from corebayes.summary import summarise

    parameters = summarise(draw_data.posterior)
    divergences = int(draw_data.sample_stats["diverging"].sum())
    if as_json:
        _print_json(
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
    console = _console()
    console.print(_summary_table(parameters))
    console.print(f"{chains} chains of {draws:,} draws, {divergences} divergences, {seconds:.1f} s")
    if out is not None:
        console.print(f"Draws are in {out}")


@app.command(epilog="Example: corebayes certify coreset.parquet rows.parquet")
def certify(
    coreset: CoresetFile,
    rows: RowsFile,
    target: Target = None,
    features: Features = None,
    counts: Counts = None,
    draws: Annotated[int, Option(help="Fresh draws to measure on.")] = 1000,
    tol: Annotated[float, Option(help="Largest KL, in nats, to certify.")] = 0.02,
    seed: Seed = 1,
    as_json: Json = False,
) -> int:
    """Measure how far the coreset posterior is from the full one. Exit code 1: not certified.

    The columns are those the coreset was built with unless others are named.
    """
    loaded = cb.load(coreset)
    columns = Columns(**loaded.provenance.get("columns", {}))
    given = {"target": target, "features": _split(features), "counts": counts}
    columns = columns._replace(**{name: value for name, value in given.items() if value})
    certificate = cb.certify(loaded, read_rows(rows, columns), draws=draws, tol=tol, seed=seed)
    if as_json:
        _print_json(
            command="certify", coreset=str(coreset), rows=str(rows), **certificate.to_dict()
        )
    else:
        colour = "green" if certificate.certified else "yellow"
        verdict, _, details = str(certificate).partition("\n")
        console = _console()
        console.print(verdict, style=f"bold {colour}", soft_wrap=True)
        console.print(details, soft_wrap=True)
    return 0 if certificate.certified else 1


@app.command(epilog="Example: corebayes demo --rows 100000 --out demo/")
def demo(
    rows: Annotated[int, Option(help="Rows to generate.")] = 100_000,
    size: Annotated[int, Option(help="Rows to keep.")] = 66,
    seed: Seed = 0,
    out: Annotated[Path, Option(help="Folder for the figure.")] = Path("demo"),
    quick: Annotated[bool, Option("--quick", help="10,000 rows.")] = False,
    as_json: Json = False,
) -> None:
    """Compress generated logistic data, sample, certify, compare with the full posterior."""
    from corebayes.demo import run_demo

    if rows < 1000:
        raise ValueError(f"--rows must be at least 1000 to show anything, got {rows}")
    console = Console(stderr=True, highlight=False, markup=False) if as_json else _console()
    report = run_demo(
        num_rows=10_000 if quick else rows,
        size=size,
        seed=seed,
        out=out,
        say=lambda text: console.print(text, soft_wrap=True),
    )
    if as_json:
        _print_json(command="demo", **report)


def _described(coreset: Coreset, out: Path) -> dict[str, Any]:
    last = coreset.trace[-1] if coreset.trace else {}
    kl = last.get("kl")
    if kl is not None and not math.isfinite(kl):
        # JSON has no infinity.
        kl = None
    return {
        "command": "build",
        "out": str(out),
        "size": coreset.size,
        "num_rows": coreset.num_rows,
        "total_count": coreset.total_count,
        "model": type(coreset.model).__name__,
        "parameters": list(coreset.model.parameter_names),
        "reason": coreset.reason,
        "kl": kl,
        "kl_se": None if kl is None else last.get("kl_se"),
        "seed": coreset.provenance.get("seed"),
        "seconds": coreset.provenance.get("seconds"),
        "passes": coreset.provenance.get("passes"),
    }


def _print_build(description: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        _print_json(**description)
        return
    console = _console()
    size, num_rows = description["size"], description["num_rows"]
    console.print(f"{size:,} of {num_rows:,} rows are in {description['out']}", style="bold")
    console.print(f"  model    {description['model']}, {len(description['parameters'])} parameters")
    console.print(f"  stopped  {description['reason']}", soft_wrap=True)
    if description["kl"] is not None:
        console.print(
            f"  left     {description['kl']:.2g} nats to fit in the tangent space; "
            "`corebayes certify` measures KL",
            soft_wrap=True,
        )
    console.print(f"  time     {description['seconds']:.2f} s")


def _summary_table(parameters: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("parameter")
    for name in list(parameters[0])[1:]:
        table.add_column(name, justify="right")
    for entry in parameters:
        name, mean, sd, low, high, ess, rhat = entry.values()
        cells = [f"{value:.4g}" for value in (mean, sd, low, high)]
        table.add_row(name, *cells, f"{ess:,.0f}", f"{rhat:.3f}")
    return table


def _write_netcdf(draw_data: Any, out: Path) -> None:
    """Whole or not at all."""
    unfinished = out.with_name(f".{out.name}.unfinished")
    try:
        draw_data.to_netcdf(str(unfinished))
        unfinished.replace(out)
    finally:
        unfinished.unlink(missing_ok=True)


def _check_output(path: Path, suffix: str) -> None:
    """Before the work, not after it."""
    if path.suffix != suffix:
        raise ValueError(f"--out must end in {suffix}, got {path}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: the folder {path.parent} is not there")


def _split(names: str | None) -> list[str] | None:
    return None if names is None else [name.strip() for name in names.split(",")]


def _console() -> Console:
    return Console(highlight=False, markup=False)


def _print_json(**content: Any) -> None:
    print(json.dumps(content, allow_nan=False))


def _show_warning(message: Warning | str, category: type[Warning], *_: Any) -> None:
    print(f"corebayes: warning: {_one_line(str(message))}", file=sys.stderr)


def _sentence(error: Exception) -> str:
    """What went wrong and what to do, on one line."""
    notes = " ".join(getattr(error, "__notes__", []))
    if hasattr(error, "format_message"):
        return _one_line(error.format_message())  # pyright: ignore
    if isinstance(error, MemoryError):
        return _one_line(f"not enough memory: {error}; use fewer rows or columns")
    if isinstance(error, ImportError):
        return _one_line(notes or str(error))
    if isinstance(error, ValueError | TypeError | OSError):
        return _one_line(f"{error} {notes}")
    return _one_line(
        f"unexpected {type(error).__name__}: {error} (COREBAYES_TRACEBACK=1 says where)"
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())
