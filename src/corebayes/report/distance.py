"""The part of a report about KL: against size, and as certified."""

from __future__ import annotations

from corebayes.report import figures
from corebayes.report.findings import Findings
from corebayes.report.html import MISSING, Markup, element, figure, section, table


def distance(findings: Findings) -> Markup:
    parts: list[Markup] = []
    certified = None if findings.measured is None else findings.measured.certificate.reverse_kl
    if findings.sizes is not None:
        words = (
            "KL(π_w ‖ π) between Laplace fits of coresets of several sizes from one run, and the "
            "median of five uniform subsamples; an arrow is an infinite KL. "
            if findings.sizes.measured
            else "KL(π_w ‖ π) as the construction saw it while rows were added. "
        )
        words += (
            "The dot marked certified is measured on fresh draws, with two standard errors."
            if certified
            else ""
        )
        drawing = figures.kl_figure(findings.sizes, certified, findings.coreset)
        parts.append(figure(drawing, words))
    else:
        parts.append(
            element("p", "This build has one size only, so there is no curve to show.", css="soft")
        )
    parts.append(_certificate(findings))
    return section(
        "distance", "How far from the full posterior", element("div", *parts, css="pair")
    )


def _certificate(findings: Findings) -> Markup:
    if findings.measured is None:
        return element("p", MISSING)
    certificate = findings.measured.certificate
    rows: list[tuple[str, str]] = []
    for label, kl in (
        ("KL(coreset ‖ full)", certificate.reverse_kl),
        ("KL(full ‖ coreset)", certificate.forward_kl),
    ):
        value = "withheld" if kl is None else f"{kl.value:.3g} ± {kl.standard_error:.1g} nats"
        rows.append((label, value))
    if certificate.total_variation is not None:
        rows.append(("no probability moves by more than", f"{certificate.total_variation:.3g}"))
    if certificate.pareto_k is not None:
        rows.append(("Pareto k̂ of the ratios", f"{certificate.pareto_k:.2f} (at most 0.7)"))
    if certificate.effective_sample_size is not None:
        effective = f"{certificate.effective_sample_size:,.0f} of {certificate.num_draws:,}"
        rows.append(("effective draws of π", effective))
    rows.append(("tolerance", f"{certificate.tol:g} nats"))
    return table("The certificate, on fresh draws", (), rows)
