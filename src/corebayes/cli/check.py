"""The command `corebayes check`."""

from __future__ import annotations

from typing import Annotated

from typer import Option

import corebayes as cb
from corebayes.cli.all_rows import RowsOfCoreset, of_all_rows
from corebayes.cli.options import Json, Seed, make_console, print_json

EXAMPLE = "Example: corebayes check coreset.parquet rows.parquet"


@of_all_rows
def check(
    given: RowsOfCoreset,
    draws: Annotated[int, Option(help="Replicates of the rows.")] = 200,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Compare all rows with rows that the model would make (posterior predictive checks)."""
    with given.opened() as (rows, reading):
        found = cb.check(given.coreset, rows, num_draws=draws, seed=seed, **reading)
    if as_json:
        print_json(**given.told("check"), **found.to_dict())
        return
    verdict, _, details = str(found).partition("\n")
    console = make_console()
    console.print(verdict, style="bold yellow" if found.suspicious else "bold green")
    console.print(details, soft_wrap=True)
