"""The report as one page of HTML: no scripts, nothing fetched, drawings in the text."""

from __future__ import annotations

from corebayes.coreset import Coreset
from corebayes.models.prior_table import title_of
from corebayes.report import lineage, sections
from corebayes.report.cost import duration
from corebayes.report.findings import Findings
from corebayes.report.html import Markup, document, element
from corebayes.report.model import model_section
from corebayes.report.predictive import predictive
from corebayes.report.svg import number
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
        model_section(coreset),
        sections.distance(findings),
        sections.posterior(findings),
        predictive(None if findings.measured is None else findings.measured.check),
        sections.chosen_rows(coreset, findings.measured),
        sections.sampler(findings),
        sections.cost(findings),
        lineage.reproduction(coreset, findings.measured),
        element("footer", f"Written by corebayes {__version__}."),
    )


def _subtitle(coreset: Coreset) -> str:
    model, ratio = coreset.model, coreset.num_counted / max(coreset.size, 1)
    within = coreset.provenance.get("unit_rows")
    of_rows = "" if within is None else f" of {within:,} rows"
    return (
        f"{coreset.num_counted:,} {coreset.noun}{of_rows} compressed to {coreset.size:,} weighted "
        f"{coreset.noun} ({ratio:,.0f} to 1) for {title_of(model)} with {model.dim} parameters"
        f"{lineage.came_about(coreset)}."
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
    what = coreset.noun
    tiles = [(f"{what} kept", f"{coreset.size:,}"), (f"of all {what}", f"{coreset.num_counted:,}")]
    if findings.measured is not None:
        kl = findings.measured.certificate.reverse_kl
        tiles.append(("KL (nats)", "withheld" if kl is None else number(kl.value, 2)))
        price = findings.measured.cost
        speed = price.full_seconds / price.coreset_seconds
        tiles.append(("cheaper gradient", f"{speed:,.0f} ×" if speed >= 10 else f"{speed:.1f} ×"))
    seconds = coreset.provenance.get("seconds")
    if seconds is not None:
        tiles.append(("built in", duration(float(seconds))))
    pairs = (element("div", element("dt", name), element("dd", value)) for name, value in tiles)
    return element("dl", *pairs, css="tiles")
