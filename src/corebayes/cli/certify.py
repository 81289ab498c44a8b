"""The command `corebayes certify`."""

from __future__ import annotations

from typing import Annotated

from typer import Option

import corebayes as cb
from corebayes.cli.inputs import columns_of, make_executor
from corebayes.cli.options import (
    CoresetFile,
    Counts,
    Features,
    Formula,
    Json,
    Memory,
    RowsFile,
    Scheduler,
    Seed,
    Target,
    Tls,
    Workers,
    make_console,
    print_json,
    read,
)
from corebayes.watch.steps import show_steps

EXAMPLE = "Example: corebayes certify coreset.parquet rows.parquet"


def certify(
    coreset: CoresetFile,
    rows: RowsFile,
    target: Target = None,
    features: Features = None,
    counts: Counts = None,
    formula: Formula = None,
    draws: Annotated[int, Option(help="Fresh draws, at most.")] = 4000,
    tol: Annotated[float, Option(help="Largest KL, in nats, to certify.")] = 0.02,
    seed: Seed = 1,
    workers: Workers = None,
    scheduler: Scheduler = None,
    tls: Tls = None,
    memory: Memory = None,
    as_json: Json = False,
) -> int:
    """Measure how far the coreset posterior is from the full one. Exit code 1: not certified.

    The columns are those the coreset was built with unless others are named.
    """
    loaded = cb.load(coreset)
    data = read(rows, columns_of(loaded, target, features, counts, formula))
    with make_executor(workers, scheduler, tls) as executor, show_steps() as steps:
        steps.begin("certifying")
        if memory is None:
            executor = steps.watch(executor or data.executor)
        certificate = cb.certify(
            loaded, data, draws=draws, tol=tol, seed=seed, memory=memory, executor=executor
        )
    if as_json:
        print_json(command="certify", coreset=str(coreset), rows=rows, **certificate.to_dict())
    else:
        colour = "green" if certificate.certified else "yellow"
        verdict, _, details = str(certificate).partition("\n")
        console = make_console()
        console.print(verdict, style=f"bold {colour}", soft_wrap=True)
        console.print(details, soft_wrap=True)
    return 0 if certificate.certified else 1
