"""The report as one page of HTML: no scripts, nothing fetched, drawings in the text."""

from __future__ import annotations

from corebayes.report.chosen import chosen_rows
from corebayes.report.cost import duration
from corebayes.report.distance import distance
from corebayes.report.effort import cost, sampler
from corebayes.report.findings import Findings
from corebayes.report.html import Markup, document, element
from corebayes.report.posterior import posterior
from corebayes.report.reproduce import reproduction
from corebayes.types import Coreset
from corebayes.version import __version__

NO_ROWS = (
    "Not measured: this report was written without the rows. Pass them, as in "
    "corebayes report coreset.parquet --data rows.parquet, to have this part."
)


def page(findings: Findings, title: str) -> str:
    """The whole document."""
    coreset = findings.coreset
    return document(
        title,
        element("h1", title),
        element("p", _subtitle(coreset), css="soft"),
        _verdict(findings),
        _tiles(findings),
        distance(findings),
        posterior(findings),
        chosen_rows(findings),
        sampler(findings),
        cost(findings),
        reproduction(findings),
        element("footer", f"Written by corebayes {__version__}."),
    )


def _subtitle(coreset: Coreset) -> str:
    model, ratio = type(coreset.model).__name__, coreset.num_rows / max(coreset.size, 1)
    return (
        f"{coreset.num_rows:,} rows compressed to {coreset.size:,} weighted rows "
        f"({ratio:,.0f} to 1) for {model} with {coreset.model.dim} parameters."
    )


def _verdict(findings: Findings) -> Markup:
    if findings.measured is None:
        return element("p", NO_ROWS, css="verdict")
    certificate = findings.measured.certificate
    return element(
        "p", certificate.verdict, css="verdict good" if certificate.certified else "verdict bad"
    )


def _tiles(findings: Findings) -> Markup:
    coreset = findings.coreset
    tiles = [("rows kept", f"{coreset.size:,}"), ("of all rows", f"{coreset.num_rows:,}")]
    if findings.measured is not None:
        kl = findings.measured.certificate.reverse_kl
        tiles.append(("KL (nats)", "withheld" if kl is None else f"{kl.value:.2g}"))
        price = findings.measured.cost
        speed = price.full_seconds / price.coreset_seconds
        tiles.append(("cheaper gradient", f"{speed:,.0f} ×" if speed >= 10 else f"{speed:.1f} ×"))
    seconds = coreset.provenance.get("seconds")
    if seconds is not None:
        tiles.append(("built in", duration(float(seconds))))
    pairs = (element("div", element("dt", name), element("dd", value)) for name, value in tiles)
    return element("dl", *pairs, css="tiles")
