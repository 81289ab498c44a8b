"""The command line: `corebayes build | update | merge | refit | sample | certify | …`."""

from __future__ import annotations

import math
import os
import re
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer import Option

import corebayes as cb
from corebayes.checkpoint import check_folder
from corebayes.cli import certify as certificates
from corebayes.cli import check as checks
from corebayes.cli import compose, exact
from corebayes.cli import demo as demonstration
from corebayes.cli import laplace as laplaces
from corebayes.cli import predict as predictions
from corebayes.cli import report as reports
from corebayes.cli import reproduce as experiments
from corebayes.cli import sample as samples
from corebayes.cli.built import as_typed, described, print_build
from corebayes.cli.inputs import (
    METHODS,
    MODELS,
    Columns,
    ModelOptions,
    make_executor,
    make_method,
    make_model,
    split,
    with_groups,
)
from corebayes.cli.options import (
    Around,
    Counts,
    Duplicates,
    Event,
    Exposure,
    Features,
    Formula,
    Json,
    Log,
    Memory,
    Missing,
    Offset,
    OnBad,
    Prior,
    PriorSd,
    RowsFile,
    Scheduler,
    Seed,
    Start,
    Target,
    Tls,
    Trials,
    Workers,
    announce_target,
    read,
)
from corebayes.cli.priors import given_prior
from corebayes.constructions import default_construction
from corebayes.data.frames import import_pyarrow
from corebayes.files.outputs import probe_output, write_or_keep
from corebayes.files.reading import printable
from corebayes.formula.beside import with_beside
from corebayes.rows import Rows
from corebayes.watch.interrupts import exit_code, is_interrupt
from corebayes.watch.logs import JsonLines, logger, write_lines

# A paragraph is a line of help.
START = """Start with: corebayes demo

Then, with rows of your own:

corebayes build rows.csv --model logistic --target y --tol 0.01 --out c.parquet

corebayes certify c.parquet rows.csv

corebayes report c.parquet --data rows.csv --out report.html"""

# Boxes and colours are for people: help in a pipe is plain text.
app = typer.Typer(
    name="corebayes",
    help="Small weighted data sets with the same Bayesian posterior as the large one.",
    epilog=START,
    rich_markup_mode="rich" if sys.stdout.isatty() else None,
)

# What Typer makes of a KeyboardInterrupt.
INTERRUPTED = 130
NOTHING = "interrupted, nothing was written"
# From so many rows on a build says first what it will cost.
MANY_ROWS = 1_000_000


def run(arguments: list[str]) -> NoReturn:
    """Run a command line and exit: 0 done, 1 not certified, 2 an error told in one sentence, 130 or
    143 interrupted."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _show_warning
        try:
            code = app(
                args=arguments or ["--help"],
                prog_name="corebayes",
                standalone_mode=False,
                obj=arguments,
            )
            if code == INTERRUPTED:
                raise KeyboardInterrupt
        except (Exception, KeyboardInterrupt) as error:
            if is_interrupt(error) or isinstance(error, _Interrupted):
                told = error if isinstance(error, _Interrupted) else NOTHING
                print(f"corebayes: {told}", file=sys.stderr)
                sys.exit(exit_code())
            if os.environ.get("COREBAYES_TRACEBACK"):
                raise
            print(f"corebayes: {_sentence(error)}", file=sys.stderr)
            code = 2
    sys.exit(code or 0)


class _Interrupted(Exception):  # noqa: N818 - it ends the command, and is no error
    """A signal ended the command; the message says what is there."""


@app.command(
    epilog="Example: corebayes build rows.parquet --model logistic --target y --size 200 "
    "--out coreset.parquet"
)
def build(
    context: typer.Context,
    rows: RowsFile,
    model: Annotated[
        str, Option(help=f"One of {', '.join(MODELS)}.", autocompletion=lambda: list(MODELS))
    ],
    out: Annotated[Path, Option(help="Where to write the coreset (.parquet).")],
    target: Target = None,
    features: Features = None,
    counts: Counts = None,
    duplicates: Duplicates = None,
    trials: Trials = None,
    offset: Offset = None,
    exposure: Exposure = None,
    event: Event = None,
    formula: Formula = None,
    intercept: Annotated[bool, Option("--intercept", help="Append a column of ones.")] = False,
    size: Annotated[int | None, Option(help="How many rows to keep.")] = None,
    tol: Annotated[float | None, Option(help="Grow until KL is certified below this.")] = None,
    reserve: Annotated[
        int | None,
        Option(
            help="Rows to keep beside them for update and merge; 0 for none.",
            show_default="three times the size where that is cheap",
        ),
    ] = None,
    rows_per_group: Annotated[
        int | None, Option(help="Of mixed models: the size in rows of every group.")
    ] = None,
    unit: Annotated[
        str | None, Option(help='A column whose rows enter together; "group" of a mixed model.')
    ] = None,
    method: Annotated[
        str | None,
        Option(
            help=f"One of {', '.join(METHODS)}.",
            autocompletion=lambda: list(METHODS),
            show_default="the best one for the model",
        ),
    ] = None,
    prior: Prior = None,
    prior_sd: PriorSd = None,
    noise_sd: Annotated[
        float | None, Option(help="Of linear, gaussian, student-t.", show_default="learned")
    ] = None,
    df: Annotated[
        float | None, Option(help="Degrees of freedom of student-t.", show_default="learned")
    ] = None,
    dispersion: Annotated[
        float | None, Option(help="Of negative-binomial.", show_default="learned")
    ] = None,
    group_sd: Annotated[
        float | None,
        Option(help="Prior of sds of groups: half-normal of this.", show_default="1.0"),
    ] = None,
    seed: Seed = 0,
    max_time: Annotated[float | None, Option(help="Stop after so many seconds.")] = None,
    start: Start = None,
    around: Around = None,
    on_bad: OnBad = "raise",
    missing: Missing = "refuse",
    workers: Workers = None,
    scheduler: Scheduler = None,
    tls: Tls = None,
    checkpoint: Annotated[
        Path | None,
        Option(help="Folder that keeps the work; the same command goes on from there."),
    ] = None,
    memory: Memory = None,
    log: Log = None,
    as_json: Json = False,
) -> int:
    """Choose a few weighted rows whose posterior is that of all rows.

    Exit code 1: the --tol was not reached. Ctrl-C writes the coreset so far, with exit code 130
    (143 for SIGTERM).
    """
    if size is None and tol is None and rows_per_group is None:
        raise ValueError("give --size (how many rows to keep) or --tol (how small KL must be)")
    probe_output(out, ".parquet")
    # Needed at the end: missing, it would cost the result, and Ctrl-C would wait for it.
    import_pyarrow("pyarrow.parquet")
    check_folder(checkpoint)
    if out.exists() and os.path.exists(rows) and out.samefile(rows):
        raise ValueError(f"--out {out} is the file with the rows: name another")
    if log is not None:
        write_lines(sys.stderr, log)
    earlier, pilot = (None if path is None else cb.load(path) for path in (start, around))
    options = ModelOptions(
        given_prior(prior, prior_sd), intercept, noise_sd, df, dispersion, group_sd
    )
    options = options._replace(
        rows={"trials": trials, "offset": offset, "exposure": exposure, "event": event}
    )
    formula = None if formula is None else with_beside(formula, options.rows)
    bayes = make_model(model, options, by_formula=formula is not None)
    construction = None if method is None else make_method(method)
    if formula is not None and intercept:
        raise ValueError("--formula has its own intercept (write -1 to leave it out)")
    chosen = options.with_rows(split(features))
    columns = Columns(target, chosen, counts, on_bad, formula, None, duplicates, missing)
    # A formula with a bar has groups, and those are chosen from coresets of rows.
    of_groups = formula is not None and "|" in formula
    columns = columns._replace(unit=None if of_groups else unit)
    data = read(rows, columns)
    bayes = with_groups(bayes, data, options)
    announce_target(data)
    asked = (size or rows_per_group) if tol is None else None
    _announce(data, construction or default_construction(bayes), asked)
    with make_executor(workers, scheduler, tls) as executor:
        coreset = cb.build(
            bayes,
            data,
            size=size,
            rows_per_group=rows_per_group,
            tol=tol,
            reserve=reserve,
            method=construction,
            unit=unit if of_groups else None,
            seed=seed,
            start=earlier,
            around=pilot,
            max_time=max_time,
            checkpoint=checkpoint,
            memory=memory,
            executor=executor,
        )
    # So that `certify` need not be told the columns again, and a report can tell the command.
    provenance = {
        **coreset.provenance,
        "columns": columns.stored(),
        "command": as_typed(context.obj),
    }
    coreset = replace(coreset, provenance=provenance)
    write_or_keep(coreset.save, out, f"the coreset of {coreset.size} rows", beside=checkpoint)
    print_build(described(coreset, out), as_json=as_json)
    if coreset.reason == "interrupted":
        again = "" if checkpoint is None else "; the same command goes on from the checkpoint"
        raise _Interrupted(f"interrupted, the {coreset.size} rows so far are in {out}{again}")
    return (
        0 if tol is None or coreset.reason.startswith(("certified", "measured", "all rows")) else 1
    )


app.command(epilog=samples.EXAMPLE)(samples.sample)
app.command(epilog=certificates.EXAMPLE)(certificates.certify)
for command, example in compose.COMMANDS.items():
    app.command(epilog=example)(command)
for example, command in exact.COMMANDS.items():
    app.command(epilog=example)(command)
app.command(epilog=laplaces.EXAMPLE)(laplaces.laplace)
app.command(epilog=predictions.EXAMPLE)(predictions.predict)
app.command(epilog=checks.EXAMPLE)(checks.check)
app.command(epilog=reports.EXAMPLE)(reports.report)
app.command(epilog=experiments.EXAMPLE)(experiments.reproduce)
app.command(epilog=demonstration.EXAMPLE)(demonstration.demo)


def _announce(data: Rows, construction: Any, size: int | None) -> None:
    """What a long run will cost, before it begins; nothing is asked."""
    if data.num_rows < MANY_ROWS:
        return
    # One pass checks the rows before the construction sees them, and rows here and there, of
    # which there are few, may take another.
    fewest, most = construction.passes(size)
    fewest, most = fewest + 1, most + 2
    if math.isinf(most):
        passes, total = f"at least {fewest:.0f}", f"at least {fewest * data.num_rows:,.0f}"
    else:
        passes, total = (
            f"as a rule {fewest:.0f} to {most:.0f}",
            f"up to {most * data.num_rows:,.0f}",
        )
    print(
        f"corebayes: {data.num_rows:,} rows in {data.num_shards:,} shards: {passes} passes over "
        f"them, {total} rows to read",
        file=sys.stderr,
    )


def _show_warning(message: Warning | str, category: type[Warning], *_: Any) -> None:
    if any(isinstance(handler.formatter, JsonLines) for handler in logger.handlers):
        logger.warning(_one_line(str(message)))
        return
    print(f"corebayes: warning: {_one_line(str(message))}", file=sys.stderr)


def _sentence(error: BaseException) -> str:
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
    """On one line, with the arguments of Python as options."""
    options = r'\b(on_bad|target|features|counts|memory)="(\w+)"'
    text = re.sub(options, lambda found: f"--{found[1].replace('_', '-')} {found[2]}", text)
    return printable(" ".join(text.split()))
