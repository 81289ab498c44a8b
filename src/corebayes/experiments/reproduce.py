"""All of it: trials, tables, figures, claims and the report, in one folder."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corebayes.experiments import geometry_figure, pictures
from corebayes.experiments.catalogue import EXPERIMENTS, DataFiles, find_sources
from corebayes.experiments.claims import Claim, all_claims
from corebayes.experiments.datasets import DATASETS
from corebayes.experiments.figures import Figure, kl_figure, regression_figure
from corebayes.experiments.measure import Results, coresets_of
from corebayes.experiments.trials import Trial, TrialStore, Watcher, plan, run_missing
from corebayes.files.atomic import write_atomically
from corebayes.files.outputs import ROOM, probe_folder
from corebayes.report.html import Markup, document, element, escape, figure, section, table
from corebayes.version import __version__

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
    results, sources = None, DataFiles(files={})
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
    write_atomically(out / "claims.md", claims_markdown(claims).encode())
    write_report(
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
    sources: DataFiles,
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


TITLE = "Sparse variational inference, reproduced"
INTRODUCTION = (
    "Every experiment of Campbell and Beronov, “Sparse Variational Inference: Bayesian Coresets "
    f"from Scratch” (NeurIPS 2019), run again with corebayes {__version__}, with its default "
    "method as one more line. Made by"
)
QUICK = (
    " This is the quick version: smaller data, fewer sizes and a tenth of the weight updates, to "
    "see that everything works."
)
HOW = (
    "All numbers are medians over the trials, of KL(π_w ‖ π) in nats unless another unit is named. "
    "Where the paper leaves open how much counts, the number in brackets is the one used here."
)
SETTINGS = (
    "As in the paper: SparseVI with T = 100 and γ_t = 1/t in closed form (Gaussian, house prices), "
    "with S = 100, T = 500 and γ_t = 0.5/t for logistic and Poisson regression. The weight update "
    "is Adam with these γ_t, as in the authors' published code; the plain gradient step that the "
    "paper prints diverged on the house prices of King County. GIGA has a random projection to 100 "
    "dimensions, under a Gaussian with the exact posterior's moments (optimal) or with moments a "
    "random share of the way from prior to posterior and 75 % relative noise (realistic). M counts "
    "greedy iterations, as in the paper, so a coreset may have fewer rows. Priors are standard "
    "normal except for the house prices. CPU time is that of one process with one BLAS thread."
)


def write_report(
    path: Path,
    *,
    command: str,
    claims: Sequence[Claim],
    figures: Sequence[Figure],
    trials: Mapping[str, int],
    files: Mapping[str, Path | None],
    quick: bool,
) -> None:
    """The report page."""
    body = [element("h1", TITLE), element("p", INTRODUCTION), element("pre", command)]
    if trials:
        counts = ", ".join(f"{name} {number}" for name, number in trials.items())
        body.append(element("p", f"Trials: {counts}.{QUICK if quick else ''}"))
    if claims:
        words = f"{sum(claim.holds for claim in claims)} of {len(claims)} hold. {HOW}"
        header = ("section", "data", "claim", "measured", "verdict")
        found = table("The paper's claims", header, map(_claim, claims), css="words")
        body.append(section("claims", "Claims", element("p", words), found))
    body.append(section("figures", "Figures", *map(_figure, figures)))
    body.append(section("settings", "Settings", element("p", SETTINGS)))
    if files:
        header = ("set", "what it is", "SHA-256", "licence")
        body.append(section("data", "Data", table("Sets", header, _sets(files), css="words")))
    write_atomically(path, document(TITLE, *body).encode())


def claims_markdown(claims: Sequence[Claim]) -> str:
    """The claims as a table for the documentation."""
    lines = ["| section | data | claim | measured | |", "|---|---|---|---|---|"]
    lines += [
        f"| {claim.source} | {claim.data} | {claim.statement} | {claim.measured} | "
        f"{claim.verdict if claim.holds else f'**{claim.verdict}**'} |"
        for claim in claims
    ]
    return "\n".join(lines) + "\n"


def _claim(claim: Claim) -> Sequence[object]:
    verdict = element("span", claim.verdict, css="good" if claim.holds else "bad")
    return claim.source, claim.data, claim.statement, claim.measured, verdict


def _figure(shown: Figure) -> Markup:
    picture = base64.b64encode(shown.png.read_bytes()).decode()
    image = f'<img alt="{escape(shown.title)}" src="data:image/png;base64,{picture}">'
    return figure(image, element("b", f"{shown.title}."), f" {shown.caption}")


def _sets(files: Mapping[str, Path | None]) -> Iterator[Sequence[object]]:
    for name, path in files.items():
        dataset = DATASETS[name]
        what, checksum = dataset.description, f"{dataset.sha256[:16]}…"
        if path is None:
            what, checksum = f"{what}; generated here as the paper describes it", ""
        if dataset.url is not None:
            what = Markup(f'<a href="{escape(dataset.url)}">{escape(what)}</a>')
        yield name, what, checksum, dataset.licence
