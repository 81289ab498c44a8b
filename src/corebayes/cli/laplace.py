"""The command `corebayes laplace`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from typer import Option

import corebayes as cb
from corebayes.cli.inputs import (
    MODELS,
    Columns,
    ModelOptions,
    make_executor,
    make_model,
    split,
    with_groups,
)
from corebayes.cli.options import (
    Counts,
    Features,
    Formula,
    Json,
    Memory,
    Missing,
    OnBad,
    Prior,
    PriorSd,
    RowsFile,
    Scheduler,
    Seed,
    Target,
    Tls,
    Workers,
    announce_target,
    read,
)
from corebayes.cli.priors import given_prior
from corebayes.cli.sample import hand_over, import_netcdf
from corebayes.files.outputs import probe_output

EXAMPLE = "Example: corebayes laplace rows.parquet --model logistic --target y --out posterior.nc"


def laplace(
    rows: RowsFile,
    model: Annotated[
        str, Option(help=f"One of {', '.join(MODELS)}.", autocompletion=lambda: list(MODELS))
    ],
    target: Target = None,
    features: Features = None,
    counts: Counts = None,
    formula: Formula = None,
    intercept: Annotated[bool, Option("--intercept", help="Append a column of ones.")] = False,
    prior: Prior = None,
    prior_sd: PriorSd = None,
    noise_sd: Annotated[float | None, Option(help="Of linear, gaussian, student-t.")] = None,
    df: Annotated[float | None, Option(help="Degrees of freedom of student-t.")] = None,
    dispersion: Annotated[float | None, Option(help="Of negative-binomial.")] = None,
    draws: Annotated[int, Option(help="Draws.")] = 1000,
    seed: Seed = 0,
    out: Annotated[Path | None, Option(help="Where to write the draws (.nc, for ArviZ).")] = None,
    on_bad: OnBad = "raise",
    missing: Missing = "refuse",
    workers: Workers = None,
    scheduler: Scheduler = None,
    tls: Tls = None,
    memory: Memory = None,
    as_json: Json = False,
) -> None:
    """Fit all rows once: draws around the mode, weighed with all rows.

    The cheapest way to one posterior that is nearly Gaussian; k̂ says whether it was.
    """
    if out is not None:
        probe_output(out, ".nc")
        import_netcdf()
    options = ModelOptions(given_prior(prior, prior_sd), intercept, noise_sd, df, dispersion, None)
    bayes = make_model(model, options, by_formula=formula is not None)
    if formula is not None and intercept:
        raise ValueError("--formula has its own intercept (write -1 to leave it out)")
    columns = Columns(target, split(features), counts, on_bad, formula, missing=missing)
    data = read(rows, columns)
    bayes = with_groups(bayes, data, options)
    announce_target(data)
    began = time.perf_counter()
    with make_executor(workers, scheduler, tls) as executor:
        found = cb.laplace(bayes, data, draws=draws, seed=seed, memory=memory, executor=executor)
    seconds = time.perf_counter() - began
    known = found.posterior.attrs
    # Whole chains: as many as were asked for, or a few more.
    number = found.posterior.sizes["chain"] * found.posterior.sizes["draw"]
    names = ("pareto_k", "effective_draws", "log_evidence", "log_evidence_se", "num_passes")
    hand_over(
        found,
        out,
        as_json,
        f"{known['effective_draws']:,.0f} effective draws of {number:,}, "
        f"k̂ {known['pareto_k']:.2f}, log evidence {known['log_evidence']:,.3f} ± "
        f"{known['log_evidence_se']:.2g} nats, {known['num_passes']} passes, {seconds:.1f} s",
        command="laplace",
        rows=rows,
        model=model,
        draws=number,
        seed=seed,
        seconds=seconds,
        **{name: known[name] for name in names},
    )
