"""The command `corebayes reproduce`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from corebayes.watch.interrupts import exit_code

EXAMPLE = "Example: corebayes reproduce all --trials 10 --out results/reproduce"


def reproduce(
    experiment: Annotated[
        str, Argument(help="One of gaussian, rbf, logistic, poisson, geometry, all.")
    ],
    trials: Annotated[
        int | None, Option(help="Trials of every method.", show_default="10, or 2 with --quick")
    ] = None,
    quick: Annotated[
        bool, Option("--quick", help="Smaller data and fewer steps, in two minutes.")
    ] = False,
    data: Annotated[
        Path | None,
        Option(
            help="Folder with the data sets, to download nothing.",
            show_default="COREBAYES_DATA, else download",
        ),
    ] = None,
    out: Annotated[Path, Option(help="Folder for results, figures and the report.")] = Path(
        "results/reproduce"
    ),
    workers: Annotated[
        int | None, Option(help="Trials at a time.", show_default="one for each core")
    ] = None,
) -> None:
    """Run the paper's experiments again: figures, tables, and its claims beside what was measured.

    Finished trials are kept in the folder: after an interruption the same command goes on.
    """
    from corebayes.experiments import reproduce as runner
    from corebayes.experiments.datasets import data_folder
    from corebayes.experiments.trials import Watcher

    if experiment not in runner.NAMES:
        raise ValueError(f"no experiment {experiment!r}; there are {', '.join(runner.NAMES)}")
    num_trials = trials if trials is not None else (2 if quick else 10)
    if num_trials < 1:
        raise ValueError(f"--trials must be at least 1, got {num_trials}")
    if workers is not None and workers < 1:
        raise ValueError(f"--workers must be at least 1, got {workers}")
    folder = data_folder(data)
    command = f"corebayes reproduce {experiment} --trials {num_trials}{' --quick' * quick}"
    with Watcher() as watcher:
        try:
            done = runner.reproduce(
                experiment,
                out=out,
                command=command,
                num_trials=num_trials,
                quick=quick,
                folder=folder,
                workers=workers,
                watcher=watcher,
            )
        except KeyboardInterrupt:
            watcher.say(
                f"corebayes: interrupted; {watcher.progress} are kept in {out / 'trials'}, "
                "and the same command goes on from there"
            )
            sys.exit(exit_code())
    failed = [claim for claim in done.claims if not claim.holds]
    print(f"{len(done.claims) - len(failed)} of {len(done.claims)} claims hold")
    for claim in failed:
        print(f"  does not hold ({claim.data}): {claim.statement} Measured: {claim.measured}")
    print(f"Figures, tables and the report page are in {done.out}; open {done.report}")
