"""The commands `corebayes correct`, `corebayes evidence` and `corebayes loo`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from typer import Option

import corebayes as cb
from corebayes.cli.all_rows import RowsOfCoreset, of_all_rows
from corebayes.cli.options import Json, Seed, make_console, print_json
from corebayes.cli.sample import hand_over, import_netcdf
from corebayes.files.outputs import ROOM, probe_output


@of_all_rows
def correct(
    given: RowsOfCoreset,
    draws: Annotated[int, Option(help="Draws of each chain.")] = 1000,
    chains: Annotated[int, Option(help="Chains.")] = 4,
    method: Annotated[
        str, Option(help="surrogate (exact) or psis (weighted draws of the coreset).")
    ] = "surrogate",
    seed: Seed = 0,
    out: Annotated[Path | None, Option(help="Where to write the draws (.nc, for ArviZ).")] = None,
    as_json: Json = False,
) -> None:
    """Draw from the posterior of all rows, by moves that are made on the coreset.

    The columns are those the coreset was built with unless others are named.
    """
    if out is not None:
        probe_output(
            out, ".nc", num_bytes=ROOM + 8 * draws * chains * (given.coreset.model.dim + 4)
        )
        import_netcdf()
    with given.opened() as (rows, reading):
        began = time.perf_counter()
        found = cb.correct(
            given.coreset, rows, draws=draws, chains=chains, seed=seed, method=method, **reading
        )
        seconds = time.perf_counter() - began
    known = found.posterior.attrs
    told = {
        name: known[name]
        for name in ("sampler", "num_passes", "pareto_k", "acceptance")
        if name in known
    }
    accepted = f", {told['acceptance']:.1%} accepted" if "acceptance" in told else ""
    passes = f"{told['num_passes']} pass{'es' * (told['num_passes'] != 1)} over the rows"
    hand_over(
        found,
        out,
        as_json,
        f"{told['sampler']}{accepted}, {passes}, {seconds:.1f} s",
        **given.told("correct"),
        draws=draws,
        chains=chains,
        seed=seed,
        seconds=seconds,
        **told,
    )


@of_all_rows
def evidence(
    given: RowsOfCoreset,
    draws: Annotated[int, Option(help="Draws to measure on.")] = 4000,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Measure the log marginal likelihood of all rows."""
    with given.opened() as (rows, reading):
        value, error = cb.log_evidence(given.coreset, rows, draws=draws, seed=seed, **reading)
    if as_json:
        print_json(**given.told("evidence"), log_evidence=value, standard_error=error)
        return
    digits = 4 if error == 0.0 else 3
    make_console().print(
        f"log evidence of {given.coreset.num_rows:,} rows: {value:,.{digits}f} ± {error:.2g} nats",
        style="bold",
    )


@of_all_rows
def loo(
    given: RowsOfCoreset,
    draws: Annotated[int, Option(help="Draws of each chain.")] = 250,
    chains: Annotated[int, Option(help="Chains.")] = 4,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Cross-validate by leaving out every row once (PSIS-LOO)."""
    with given.opened() as (rows, reading):
        found = cb.loo(
            given.coreset,
            rows,
            draws=draws,
            chains=chains,
            seed=seed,
            pointwise=False,
            **reading,
        )
    if as_json:
        print_json(**given.told("loo"), **_plain(found))
    else:
        make_console().print(str(found))


def _plain(found: Any) -> dict[str, Any]:
    """The numbers of an `ELPDData`, whichever version of ArviZ it is of."""
    return {
        "elpd_loo": float(getattr(found, "elpd_loo", getattr(found, "elpd", None))),  # pyright: ignore
        "se": float(found.se),
        "p_loo": float(getattr(found, "p_loo", getattr(found, "p", None))),  # pyright: ignore
        "n_data_points": int(found.n_data_points),
        "n_samples": int(found.n_samples),
        "warning": bool(found.warning),
    }


COMMANDS: dict[str, Callable[..., None]] = {
    "Example: corebayes correct coreset.parquet rows.parquet --out posterior.nc": correct,
    "Example: corebayes evidence coreset.parquet rows.parquet": evidence,
    "Example: corebayes loo coreset.parquet rows.parquet": loo,
}
