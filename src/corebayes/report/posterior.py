"""The part of a report about the parameters, under both posteriors."""

from __future__ import annotations

import numpy as np

from corebayes.report import figures
from corebayes.report.draws import Parameter
from corebayes.report.findings import Findings
from corebayes.report.html import Markup, element, section, table

MOST_MARGINALS, MOST_PARAMETERS = 15, 100


def posterior(findings: Findings) -> Markup:
    shares = None if findings.measured is None else findings.measured.shares
    ordered = sorted(findings.parameters, key=lambda parameter: -abs(parameter.shift))
    few = ordered[:MOST_MARGINALS]
    drawings = (
        element("figure", Markup(figures.marginal_figure(parameter, shares, place)))
        for place, parameter in enumerate(few)
    )
    keys = [Markup('<span class="key a"></span>'), "coreset posterior"]
    if shares is not None:
        keys += [
            "  ",
            Markup('<span class="key fill"></span>'),
            "the same draws corrected to all rows by their importance ratios",
        ]
    words = _posterior_words(findings, len(few))
    return section(
        "posterior",
        "Posterior",
        element("p", *keys),
        element("p", words, css="soft"),
        element("div", *drawings, css="many"),
        _parameter_table(findings),
    )


def _posterior_words(findings: Findings, shown: int) -> str:
    number = len(findings.parameters)
    words = (
        f"The {shown} of {number} parameters that move most are drawn. " if shown < number else ""
    )
    if findings.measured is None:
        return words + "The correction to all rows needs the rows."
    if findings.measured.shares is None:
        return words + (
            "The importance ratios cannot be trusted here (see the verdict), so no correction "
            "is shown."
        )
    largest = max((abs(parameter.shift) for parameter in findings.parameters), default=0.0)
    return words + f"The correction moves no mean by more than {largest:.2g} posterior sd."


def _parameter_table(findings: Findings) -> Markup:
    corrected = findings.measured is not None and findings.measured.shares is not None
    header = ["parameter", "mean", "sd", "5 %", "95 %"]
    header += ["corrected mean", "corrected sd", "shift (sd)"] if corrected else []
    rows = [_numbers(parameter) for parameter in findings.parameters[:MOST_PARAMETERS]]
    left = len(findings.parameters) - len(rows)
    caption = "Parameters" + (f" (the first {len(rows)}; {left} more)" if left else "")
    return table(caption, header, rows)


def _numbers(parameter: Parameter) -> list[str]:
    """The parameter's line, its numbers to a hundredth of the standard deviation."""
    summary, sd = parameter.summary, parameter.summary["sd"]
    decimals = 4 if not sd > 0.0 else int(np.clip(2 - np.floor(np.log10(sd)), 0, 12))
    values = [summary[name] for name in ("mean", "sd", "5%", "95%")]
    if parameter.corrected_mean is not None:
        values += [parameter.corrected_mean, parameter.corrected_sd]
    cells = [f"{value:,.{decimals}f}".replace("-", "−") for value in values]
    if parameter.corrected_mean is not None:
        cells.append(f"{parameter.shift:+.3f}".replace("-", "−"))
    return [parameter.name, *cells]
