"""The command `corebayes check`."""

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

EXAMPLE = "Example: corebayes check coreset.parquet rows.parquet"


def check(
    coreset: CoresetFile,
    rows: RowsFile,
    target: Target = None,
    features: Features = None,
    counts: Counts = None,
    formula: Formula = None,
    draws: Annotated[int, Option(help="Replicates of the rows.")] = 200,
    seed: Seed = 0,
    workers: Workers = None,
    scheduler: Scheduler = None,
    tls: Tls = None,
    memory: Memory = None,
    as_json: Json = False,
) -> None:
    """Compare all rows with rows that the model would make (posterior predictive checks)."""
    loaded = cb.load(coreset)
    data = read(rows, columns_of(loaded, target, features, counts, formula))
    with make_executor(workers, scheduler, tls) as executor:
        found = cb.check(loaded, data, num_draws=draws, seed=seed, memory=memory, executor=executor)
    if as_json:
        print_json(command="check", coreset=str(coreset), rows=rows, **found.to_dict())
        return
    verdict, _, details = str(found).partition("\n")
    console = make_console()
    console.print(verdict, style="bold yellow" if found.suspicious else "bold green")
    console.print(details, soft_wrap=True)
