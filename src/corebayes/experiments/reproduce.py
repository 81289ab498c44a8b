"""All of it: trials, tables, figures, claims and the report, in one folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corebayes.experiments import geometry_figure, pictures, report
from corebayes.experiments.catalogue import EXPERIMENTS, Sources, find_sources
from corebayes.experiments.claims import Claim, all_claims
from corebayes.experiments.figures import Figure, kl_figure, regression_figure
from corebayes.experiments.measure import coresets_of
from corebayes.experiments.progress import Watcher
from corebayes.experiments.results import Results
from corebayes.experiments.trials import Trial, TrialStore, plan, run_missing
from corebayes.files.atomic import write_atomically
from corebayes.files.outputs import ROOM, probe_folder

NAMES = (*EXPERIMENTS, "geometry", "all")


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """What a run leaves behind."""

    out: Path
    claims: Sequence[Claim]
    figures: Sequence[Figure]
    results: Results | None

    @property
    def report(self) -> Path:
        return self.out / "report.html"


def reproduce(
    name: str,
    *,
    out: Path,
    command: str,
    num_trials: int = 10,
    quick: bool = False,
    folder: Path | None = None,
    workers: int | None = None,
    watcher: Watcher | None = None,
) -> Reproduction:
    """One experiment, or all: trials, tables, figures and the report page, in the folder `out`."""
    watcher = watcher or Watcher(quiet=True)
    probe_folder(out, 20 * ROOM)
    out.mkdir(parents=True, exist_ok=True)
    wanted = EXPERIMENTS if name == "all" else [each for each in EXPERIMENTS if each == name]
    figures: list[Figure] = []
    claims: list[Claim] = []
    if name in ("geometry", "all"):
        watcher.say("computing the geometry of figure 1")
        figure, claim = geometry_figure.draw(out / "figure-1-geometry")
        figures.append(figure)
        claims.append(claim)
    results, sources = None, Sources(files={})
    if wanted:
        sources = find_sources(wanted, folder, watcher.say)
        trials = plan(wanted, num_trials, sources, quick=quick)
        outcomes = run_missing(
            trials,
            TrialStore(out / "trials"),
            workers=workers,
            begin=watcher.begin,
            show=watcher.done,
        )
        results = Results([row for trial in trials for row in outcomes[trial]["rows"]])
        results.write(out)
        claims += all_claims(results)
        watcher.say("drawing the figures")
        figures += _figures(out, results, outcomes, sources, quick=quick)
    write_atomically(out / "claims.md", report.claims_markdown(claims).encode())
    report.write_report(
        out / "report.html",
        command=command,
        claims=claims,
        figures=figures,
        trials={} if results is None else {each: results.num_trials(each) for each in wanted},
        files=sources.files,
        quick=quick,
    )
    return Reproduction(out=out, claims=claims, figures=figures, results=results)


def _figures(
    out: Path,
    results: Results,
    outcomes: dict[Trial, dict[str, Any]],
    sources: Sources,
    *,
    quick: bool,
) -> list[Figure]:
    drawn: list[Figure] = []
    grown = {
        trial.experiment: coresets_of(outcome)
        for trial, outcome in outcomes.items()
        if trial.method == "SparseVI" and trial.number == 0
    }
    if "gaussian" in grown:
        drawn.append(kl_figure(out / "figure-2a-gaussian-kl", results, "gaussian"))
        stem = out / "figure-2b-gaussian-coresets"
        drawn.append(pictures.gaussian_figure(stem, grown["gaussian"], quick=quick))
    if "rbf" in grown:
        drawn.append(kl_figure(out / "figure-3a-houses-kl", results, "rbf"))
        stem, name = out / "figure-3b-houses-map", sources.housing
        if (path := sources.files[name]) is not None:
            drawn.append(pictures.house_figure(stem, name, path, grown["rbf"], quick=quick))
    if {"logistic", "poisson"} & set(grown):
        for number, against in ((4, "size"), (5, "time")):
            stem = out / f"figure-{number}-regression-{against}"
            drawn.append(regression_figure(stem, results, against=against))
    return drawn
