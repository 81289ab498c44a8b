"""The command `corebayes report`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from rich.console import Console
from typer import Option

from corebayes.cli.inputs import columns_of, make_executor
from corebayes.cli.options import (
    CoresetFile,
    Counts,
    DataFiles,
    Memory,
    Scheduler,
    Seed,
    Tls,
    Workers,
    read,
    told,
)
from corebayes.coreset import load
from corebayes.files.outputs import probe_output
from corebayes.report import report as write_report

EXAMPLE = "Example: corebayes report coreset.parquet --data rows.parquet --out report.html"


def report(
    coreset: CoresetFile,
    data: DataFiles = None,
    out: Annotated[Path, Option(help="Where to write the page (.html).")] = Path("report.html"),
    title: Annotated[str, Option(help="The heading of the page.")] = "Coreset report",
    target: Annotated[str | None, Option(help="Column to predict, if not as built.")] = None,
    features: Annotated[str | None, Option(help="Columns to predict from, as a,b,c.")] = None,
    counts: Counts = None,
    formula: Annotated[
        str | None, Option(help="Instead of these, if not as built: 'y ~ x1 + C(g)'.")
    ] = None,
    draws: Annotated[int, Option(help="Draws to measure on.")] = 1000,
    tol: Annotated[float, Option(help="Largest KL, in nats, to certify.")] = 0.02,
    seed: Seed = 1,
    workers: Workers = None,
    scheduler: Scheduler = None,
    tls: Tls = None,
    memory: Memory = None,
    as_json: Annotated[
        bool, Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """Write a page that shows what a coreset is worth.

    Verdict, posterior, rows, cost and how to reproduce it, in one file that fetches nothing. The
    columns are those the coreset was built with unless others are named.
    """
    probe_output(out, ".html", ".htm")
    loaded, rows = load(coreset), None
    if data:
        rows = read(data, columns_of(loaded, target, features, counts, formula))
    with make_executor(workers, scheduler, tls) as executor:
        written = write_report(
            loaded,
            rows,
            out=out,
            title=title,
            draws=draws,
            tol=tol,
            seed=seed,
            memory=memory,
            executor=executor,
        )
    measured = written.findings.measured
    certificate = None if measured is None else measured.certificate
    if as_json:
        found = {
            "command": "report",
            "coreset": str(coreset),
            "data": told(data),
            "out": str(out),
            "certificate": None if certificate is None else certificate.to_dict(),
        }
        print(json.dumps(found, allow_nan=False))
        return
    console = Console(highlight=False, markup=False)
    if certificate is None:
        console.print("Without --data the page has no verdict.", style="yellow", soft_wrap=True)
    else:
        colour = "green" if certificate.certified else "yellow"
        console.print(certificate.verdict, style=f"bold {colour}", soft_wrap=True)
    console.print(f"The page is {out}", soft_wrap=True)
