"""One page with claims, figures, settings and data, as HTML that needs no other file."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from corebayes.experiments.claims import Claim
from corebayes.experiments.figures import Figure
from corebayes.experiments.registry import DATASETS
from corebayes.files.atomic import write_atomically
from corebayes.report.html import Markup, document, element, escape, figure, section, table
from corebayes.version import __version__

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
