"""What the commands share: their options, and how they read and print."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from typer import Argument, Option

from corebayes.cli.inputs import Columns, read_rows
from corebayes.formula.rows import describe_target
from corebayes.formula.stored import design_from_data
from corebayes.rows import Rows, open_rows
from corebayes.watch.logs import FORMS
from corebayes.watch.progress import show_steps

RowsFile = Annotated[
    str,
    Argument(
        help="Rows: .parquet (a file, a folder, 'rows/*.parquet' or an address such as "
        "s3://bucket/rows), .csv, .npz (arrays X and y) or .npy (a matrix)."
    ),
]
AllRowsFiles = Annotated[
    list[str],
    Argument(
        help="The rows it was built from, as in `build`; of updates and merges every source, in "
        "the order in which they came."
    ),
]
DataFiles = Annotated[
    list[str] | None,
    Option(
        help="The rows it was built from; of updates and merges once for every source.",
        show_default="none",
    ),
]
CoresetFile = Annotated[Path, Argument(help="A coreset that `corebayes build` wrote.")]
Target = Annotated[str | None, Option(help="Column to predict (a number for .npy).")]
Features = Annotated[
    str | None, Option(help="Columns to predict from, as a,b,c.", show_default="all others")
]
Counts = Annotated[str | None, Option(help="Column that says how often a row counts.")]
Duplicates = Annotated[
    str | None, Option(help="`count`: repeated rows become counts, if the distinct ones fit.")
]
Trials = Annotated[str | None, Option(help="Of binomial: the column with the trials.")]
Offset = Annotated[str | None, Option(help="Column that is added to the predictor as it is.")]
Exposure = Annotated[str | None, Option(help="Of counts: the column whose log is added.")]
Event = Annotated[str | None, Option(help="Of survival: 1 where the end was seen, 0 censored.")]
Formula = Annotated[str | None, Option(help="Instead of these: 'y ~ x1 + log(x2) + C(g)'.")]
OnBad = Annotated[str, Option(help="Rows with missing values: raise (an error) or drop.")]
Prior = Annotated[
    list[str] | None,
    Option(
        help="As carat=normal(0,10), Intercept=student_t(3,0,10), noise_sd=half_normal(1); "
        "normal(0,1) for all. Repeat it for others.",
        show_default="weakly informative",
    ),
]
PriorSd = Annotated[
    float | None, Option(help="N(0, sd²) on every coefficient.", show_default="--prior")
]
Missing = Annotated[
    str, Option(help="Rows where a column of --formula is missing: refuse (an error) or drop.")
]
Start = Annotated[
    Path | None, Option(help="A coreset of the same rows to go on from.", show_default="none")
]
Around = Annotated[
    Path | None,
    Option(help="A rough coreset of all shards, to be merged with them.", show_default="none"),
]
Seed = Annotated[int, Option(help="The same seed gives the same result.")]
Workers = Annotated[int | None, Option(help="Worker processes.", show_default="threads")]
Scheduler = Annotated[
    str | None, Option("--dask", help="Address of a Dask scheduler, as tcp://host:8786.")
]
Memory = Annotated[
    str | None,
    Option(help="What the process may take in all, as 500MB.", show_default="a few blocks of rows"),
]
Log = Annotated[
    str | None,
    Option(
        help=f"One line a step on standard error: {' or '.join(FORMS)}.",
        envvar="COREBAYES_LOG",
        show_default="none",
    ),
]
Json = Annotated[bool, Option("--json", help="Print one JSON object and nothing else.")]
Tls = Annotated[
    Path | None,
    Option(help="Folder with ca.pem, cert.pem and key.pem, for --dask tls://host:8786."),
]


def read(rows: str | Sequence[str], columns: Columns) -> Rows:
    """The rows of one source, or of several, one below the other."""
    sources = [rows] if isinstance(rows, str) else rows
    with show_steps() as steps:
        steps.begin("reading the rows")
        each = [read_rows(source, columns) for source in sources]
        return each[0] if len(each) == 1 else open_rows(each)


def told(sources: Sequence[str] | None) -> str | Sequence[str] | None:
    """The files of rows as JSON has them."""
    return sources[0] if sources and len(sources) == 1 else sources or None


def announce_target(data: Rows) -> None:
    """Which level of a target counts as 1, where that is not plain."""
    if data.design is not None:
        design = design_from_data(data.design)
        if design.target_name not in design.needs or design.target_levels is not None:
            print(f"corebayes: {describe_target(design)}", file=sys.stderr)


def make_console() -> Console:
    return Console(highlight=False, markup=False)


def print_json(**content: Any) -> None:
    print(json.dumps(content, allow_nan=False))
