"""The command `corebayes certify`."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from typer import Option

import corebayes as cb
from corebayes.cli.all_rows import RowsOfCoreset, of_all_rows
from corebayes.cli.options import Json, Seed, make_console, print_json
from corebayes.watch.progress import show_steps

EXAMPLE = "Example: corebayes certify coreset.parquet rows.parquet"


@partial(of_all_rows, or_none=True)
def certify(
    given: RowsOfCoreset,
    draws: Annotated[int, Option(help="Fresh draws, at most.")] = 4000,
    tol: Annotated[float, Option(help="Largest KL, in nats, to certify.")] = 0.02,
    seed: Seed = 1,
    note: Annotated[
        bool, Option("--note", help="Keep what is found in the coreset's file, for later sums.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Measure how far the coreset posterior is from the full one. Exit code 1: not certified.

    The columns are those the coreset was built with unless others are named. Without any rows the
    certified errors of updates and merges are added up.
    """
    measured = partial(_measured, given, draws, tol, seed)
    if given.named.rows:
        certificate = measured(given.coreset)
    elif note:
        raise ValueError("--note keeps what the rows say: name them")
    else:
        certificate = cb.certify(given.coreset, tol=tol)
    if note:
        finer = None if given.coreset.reserve is None else measured(given.coreset.finest)
        cb.with_certificate(given.coreset, certificate, finer).save(given.named.coreset)
    if as_json:
        print_json(**given.told("certify"), **certificate.to_dict())
    else:
        colour = "green" if certificate.certified else "yellow"
        verdict, _, details = str(certificate).partition("\n")
        console = make_console()
        console.print(verdict, style=f"bold {colour}", soft_wrap=True)
        console.print(details, soft_wrap=True)
    return 0 if certificate.certified else 1


def _measured(
    given: RowsOfCoreset, draws: int, tol: float, seed: int, coreset: cb.Coreset
) -> cb.Certificate:
    with given.opened() as (rows, reading), show_steps() as steps:
        steps.begin("certifying")
        if reading["memory"] is None:
            reading["executor"] = steps.watch(reading["executor"] or rows.executor)
        return cb.certify(coreset, rows, draws=draws, tol=tol, seed=seed, **reading)
