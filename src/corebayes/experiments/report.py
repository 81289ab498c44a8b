"""One page with claims, figures, settings and data, as HTML that needs no other file."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from corebayes.data.atomic import write_atomically
from corebayes.experiments.claims import Claim
from corebayes.experiments.figures import Figure
from corebayes.experiments.registry import DATASETS
from corebayes.version import __version__

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 62rem; margin: 2rem auto;
       padding: 0 1rem; }
h1, h2 { line-height: 1.2; }
h2 { margin-top: 2.5rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.6rem;
         border-bottom: 1px solid #ddd; }
td.holds { color: #00573f; white-space: nowrap; }
td.fails { color: #a03c00; font-weight: 600; white-space: nowrap; }
figure { margin: 1.5rem 0; }
figure img { max-width: 100%; height: auto; }
figcaption { font-size: 0.9rem; color: #444; }
code { background: #f3f3f3; padding: 0.1rem 0.3rem; }
"""


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
    kept = sum(claim.holds for claim in claims)
    counts = ", ".join(f"{name} {number}" for name, number in trials.items())
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>Sparse variational "
        "inference, "
        f"reproduced</title><style>{STYLE}</style>",
        "<h1>Sparse variational inference, reproduced</h1>",
        "<p>Every experiment of Campbell and Beronov, “Sparse Variational Inference: Bayesian "
        "Coresets from Scratch” (NeurIPS 2019), run again with corebayes "
        f"{escape(__version__)}, with its default method as one more line. Made by</p>",
        f"<p><code>{escape(command)}</code></p>",
        f"<p>Trials: {escape(counts)}.{_quick_note(quick)}</p>" if trials else "",
        f"<h2>Claims</h2><p>{kept} of {len(claims)} hold. {escape(HOW)}</p>{_claims(claims)}"
        if claims
        else "",
        "<h2>Figures</h2>",
        *(_figure(figure) for figure in figures),
        f"<h2>Settings</h2><p>{escape(SETTINGS)}</p>",
        f"<h2>Data</h2>{_data(files)}" if files else "",
    ]
    write_atomically(path, "\n".join(part for part in parts if part).encode())


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


def claims_markdown(claims: Sequence[Claim]) -> str:
    """The claims as a table for the documentation."""
    lines = ["| section | data | claim | measured | |", "|---|---|---|---|---|"]
    lines += [
        f"| {claim.source} | {claim.data} | {claim.statement} | {claim.measured} | "
        f"{claim.verdict if claim.holds else f'**{claim.verdict}**'} |"
        for claim in claims
    ]
    return "\n".join(lines) + "\n"


def _claims(claims: Sequence[Claim]) -> str:
    head = "<tr><th>section</th><th>data</th><th>claim</th><th>measured</th><th></th></tr>"
    rows = [
        f"<tr><td>{escape(claim.source)}</td><td>{escape(claim.data)}</td>"
        f"<td>{escape(claim.statement)}</td><td>{escape(claim.measured)}</td>"
        f"<td class='{'holds' if claim.holds else 'fails'}'>{claim.verdict}</td></tr>"
        for claim in claims
    ]
    return f"<table>{head}{''.join(rows)}</table>"


def _figure(figure: Figure) -> str:
    picture = base64.b64encode(figure.png.read_bytes()).decode()
    return (
        f"<figure><img alt='{escape(figure.title)}' src='data:image/png;base64,{picture}'>"
        f"<figcaption><b>{escape(figure.title)}.</b> {escape(figure.caption)}</figcaption></figure>"
    )


def _data(files: Mapping[str, Path | None]) -> str:
    head = "<tr><th>set</th><th>what it is</th><th>SHA-256</th><th>licence</th></tr>"
    rows: list[str] = []
    for name, path in files.items():
        dataset = DATASETS[name]
        checksum = f"<code>{dataset.sha256[:16]}…</code>"
        what = escape(dataset.description)
        if path is None:
            checksum, what = "", f"{what}; generated here as the paper describes it"
        source = what if dataset.url is None else f"<a href='{escape(dataset.url)}'>{what}</a>"
        rows.append(
            f"<tr><td>{escape(name)}</td><td>{source}</td><td>{checksum}</td>"
            f"<td>{escape(dataset.licence)}</td></tr>"
        )
    return f"<table>{head}{''.join(rows)}</table>"


def _quick_note(quick: bool) -> str:
    return (
        " This is the quick version: smaller data, fewer sizes and a tenth of the weight updates, "
        "to see "
        "that everything works."
        if quick
        else ""
    )
