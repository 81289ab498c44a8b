"""The commands `corebayes update`, `corebayes merge` and `corebayes refit`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

import corebayes as cb
from corebayes.cli.built import as_typed
from corebayes.cli.inputs import columns_of, make_executor, split
from corebayes.cli.options import (
    Around,
    CoresetFile,
    Counts,
    DataFiles,
    Features,
    Json,
    Memory,
    OnBad,
    Prior,
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
from corebayes.cli.priors import given_prior
from corebayes.compose.update import unchanged
from corebayes.data.empty import NoRowsError
from corebayes.files.outputs import probe_output, write_or_keep
from corebayes.models import NormalPriorModel
from corebayes.report.summary import summarise

Out = Annotated[Path, Option(help="Where to write the coreset (.parquet).")]
Size = Annotated[int | None, Option(help="How many rows to keep.", show_default="as before")]
Tol = Annotated[float | None, Option(help="Grow until KL to the union is certified below this.")]
Reserve = Annotated[
    int | None,
    Option(
        help="Rows to keep beside them for the next time.",
        show_default="three times the size, six times for merge",
    ),
]
Certify = Annotated[bool, Option("--certify", help="Measure what this step misses, and keep it.")]
Checkpoint = Annotated[
    Path | None, Option(help="Folder that keeps the work; the same command goes on from there.")
]


def update(
    context: typer.Context,
    coreset: CoresetFile,
    rows: RowsFile,
    out: Out,
    target: Target = None,
    features: Features = None,
    counts: Counts = None,
    on_bad: OnBad = "raise",
    name: Annotated[str | None, Option(help="What the new rows are called.")] = None,
    size: Size = None,
    tol: Tol = None,
    reserve: Reserve = None,
    certify: Certify = False,
    seed: Seed = 0,
    max_time: Annotated[float | None, Option(help="Stop after so many seconds.")] = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    tls: Tls = None,
    checkpoint: Checkpoint = None,
    memory: Memory = None,
    as_json: Json = False,
) -> None:
    """The coreset of all rows so far and of new ones, without the old rows.

    The columns are those the coreset was built with unless others are named.
    """
    probe_output(out, ".parquet")
    loaded = cb.load(coreset)
    columns = columns_of(loaded, target, features, counts)._replace(on_bad=on_bad)
    try:
        data = read(rows, columns)
    except NoRowsError as error:
        _write(context, "update", unchanged(loaded, error), out, checkpoint, as_json=as_json)
        return
    with make_executor(workers, scheduler, tls) as executor:
        grown = cb.update(
            loaded,
            data,
            size=size,
            tol=tol,
            reserve=reserve,
            name=name,
            seed=seed,
            certify=certify,
            max_time=max_time,
            checkpoint=checkpoint,
            memory=memory,
            executor=executor,
        )
    _write(context, "update", grown, out, checkpoint, as_json=as_json)


def merge(
    context: typer.Context,
    coresets: Annotated[list[Path], Argument(help="Coresets that `corebayes build` wrote.")],
    out: Out,
    names: Annotated[
        str | None, Option(help="What their data is called, as a,b,c.", show_default="the files")
    ] = None,
    size: Size = None,
    tol: Tol = None,
    reserve: Reserve = None,
    around: Around = None,
    certify: Certify = False,
    seed: Seed = 0,
    checkpoint: Checkpoint = None,
    as_json: Json = False,
) -> None:
    """The coreset of several data sets, from the coresets of each. No rows are read."""
    probe_output(out, ".parquet")
    merged = cb.merge(
        [cb.load(path) for path in coresets],
        size=size,
        tol=tol,
        reserve=reserve,
        around=None if around is None else cb.load(around),
        names=split(names) or [path.stem for path in coresets],
        seed=seed,
        certify=certify,
        checkpoint=checkpoint,
    )
    _write(context, "merge", merged, out, checkpoint, as_json=as_json)


def _with_prior(model: Any, given: Any) -> Any:
    """The coreset's model with another prior of its coefficients."""
    if isinstance(model, cb.MixedRegression):
        return replace(model, family=replace(model.family, prior=given), bound=None)
    if not isinstance(model, NormalPriorModel):
        raise ValueError(f"another prior means nothing to a {type(model).__name__}")
    return replace(model, prior=given, bound=None)


def refit(
    coreset: CoresetFile,
    data: DataFiles = None,
    prior: Prior = None,
    prior_mean: Annotated[float, Option(help="Prior: N(mean, sd²) on every coefficient.")] = 0.0,
    prior_sd: Annotated[float | None, Option(help="The same.", show_default="as built")] = None,
    features: Features = None,
    draws: Annotated[int, Option(help="Draws of each chain.")] = 1000,
    chains: Annotated[int, Option(help="Chains.")] = 4,
    tol: Annotated[float, Option(help="Largest KL, in nats, to certify.")] = 0.02,
    seed: Seed = 0,
    as_json: Json = False,
) -> int:
    """Draws under another prior or with fewer columns. Exit code 1: not certified."""
    loaded = cb.load(coreset)
    model: Any = loaded.model
    if prior_mean and prior_sd is None:
        raise ValueError("--prior-mean goes with --prior-sd: give both")
    if prior_sd is not None or prior:
        given = given_prior(prior, prior_sd)
        if prior_sd is not None:
            given = cb.Normal(prior_mean, prior_sd)
        model = _with_prior(model, given)
    rows = None if not data else read(data, columns_of(loaded, None, None, None))
    found = cb.refit(
        loaded,
        model,
        rows,
        features=split(features),
        draws=draws,
        chains=chains,
        seed=seed,
        tol=tol,
    )
    parameters = summarise(found.posterior)
    certified = found.certificate is not None and found.certificate.certified
    if as_json:
        judged = None if found.certificate is None else found.certificate.to_dict()
        print_json(
            command="refit",
            coreset=str(coreset),
            certified=certified,
            verdict=found.verdict,
            distance=found.distance,
            certificate=judged,
            parameters=parameters,
        )
    else:
        from corebayes.cli.sample import summary_table

        console = make_console()
        console.print(found.verdict, style="bold green" if certified else "yellow", soft_wrap=True)
        console.print(summary_table(parameters))
    return 0 if certified else 1


COMMANDS = {
    update: "Example: corebayes update coreset.parquet tonight.parquet --out coreset.parquet",
    merge: "Example: corebayes merge north.parquet south.parquet --size 100 --out all.parquet",
    refit: "Example: corebayes refit coreset.parquet --prior-sd 2.5 --data rows.parquet",
}


def _write(
    context: typer.Context,
    command: str,
    coreset: cb.Coreset,
    out: Path,
    checkpoint: Path | None,
    *,
    as_json: bool,
) -> None:
    provenance = {**coreset.provenance, "command": as_typed(context.obj)}
    coreset = replace(coreset, provenance=provenance)
    write_or_keep(coreset.save, out, f"the coreset of {coreset.size} rows", beside=checkpoint)
    # Of a coreset that no rows were added to yet there is none.
    step = next(reversed(coreset.provenance.get("steps") or ()), None)
    kept = 0 if coreset.reserve is None else coreset.reserve.size
    if as_json:
        print_json(
            command=command,
            out=str(out),
            size=coreset.size,
            reserve=kept,
            num_rows=coreset.num_rows,
            total_count=coreset.total_count,
            sources=[source.name for source in coreset.sources],
            reason=coreset.reason,
            step=step,
        )
        return
    console, noun = make_console(), coreset.noun
    console.print(f"{coreset.size:,} of {coreset.num_counted:,} {noun} are in {out}", style="bold")
    console.print(f"  sources  {len(coreset.sources)}, the last {coreset.sources[-1].name!r}")
    console.print(f"  reserve  {kept:,} {noun} for the next time")
    console.print(f"  stopped  {coreset.reason}", soft_wrap=True)
    if step is not None and step["kl"] is not None:
        console.print(f"  missed   {step['kl']:.2g} ± {step['kl_se']:.1g} nats in this step")
    console.print(f"  time     {coreset.provenance['seconds']:.2f} s")
