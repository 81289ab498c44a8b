"""The parts of a report about the sampler, and about time."""

from __future__ import annotations

import numpy as np

from corebayes.report import figures
from corebayes.report.cost import duration
from corebayes.report.draws import NUM_TUNE
from corebayes.report.findings import Findings
from corebayes.report.html import Markup, element, figure, section, table


def sampler(findings: Findings) -> Markup:
    drawn = findings.drawn
    chains, number, _ = drawn.draws.shape
    if drawn.stats is None:
        words = (
            f"{number:,} independent draws in closed form: this model's coreset posterior is "
            "Gaussian, so there are no chains to diagnose."
        )
        return section("sampler", "Sampler", element("p", words))
    ess = min((p.summary["ess"] for p in findings.parameters), default=float("nan"))
    rhat = max((p.summary["r_hat"] for p in findings.parameters), default=float("nan"))
    divergences = int(np.sum(drawn.stats["diverging"]))
    healthy = rhat <= 1.05 and divergences == 0
    rows = [
        ("chains", f"{chains} of {number:,} draws after {NUM_TUNE} of tuning"),
        ("largest R̂", f"{rhat:.3f} (at most 1.05)"),
        ("smallest effective sample size", f"{ess:,.0f} of {chains * number:,}"),
        ("divergences", f"{divergences}"),
        ("acceptance", f"{float(np.mean(drawn.stats['acceptance_rate'])):.2f}"),
        ("gradients per draw", f"{float(np.mean(drawn.stats['n_steps'])):.1f}"),
        ("step size", f"{float(np.mean(drawn.stats['step_size'])):.3g}"),
    ]
    words = (
        "NUTS on the weighted rows; the chains agree."
        if healthy
        else "The chains do not agree or diverge: do not use these draws. Build a larger coreset."
    )
    return section("sampler", "Sampler", element("p", words), table("NUTS", (), rows))


def cost(findings: Findings) -> Markup:
    measured, drawn = findings.measured, findings.drawn
    bars: list[tuple[str, float, str]] = []
    seconds = findings.coreset.provenance.get("seconds")
    if seconds is not None:
        passes = findings.coreset.provenance.get("passes")
        words = "build" if passes is None else f"build, {passes:.1f} passes over the rows"
        bars.append((words, float(seconds), "a"))
    bars.append(("sample the coreset", drawn.seconds, "a"))
    if measured is not None and measured.seconds > 1e-3:
        bars.append(("certify", measured.seconds, "a"))
    words = ["Time against MCMC on all rows needs the rows. "] if measured is None else []
    if measured is not None:
        price = measured.cost
        words.append(
            f"One log density with its gradient takes {duration(price.coreset_seconds)} on the "
            f"coreset and {duration(price.full_seconds)} on all rows"
            + (
                f" (measured on {price.num_measured:,} of them in memory and scaled up)"
                if price.num_measured < findings.coreset.num_rows
                else ""
            )
            + ". "
        )
        if drawn.stats is not None:
            full = drawn.num_gradients * price.full_seconds
            bars.append(("the same NUTS on all rows, estimated", full, "b"))
            words.append(
                f"NUTS took about {drawn.num_gradients:,.0f} gradients; as many on all rows would "
                f"take {duration(full)}. "
            )
        else:
            words.append("This model needs no MCMC: its posterior has a closed form.")
    bars = [(name, max(value, 1e-6), css) for name, value, css in bars]
    drawing = figures.cost_figure(bars)
    return section("cost", "Time and cost", element("p", *words), figure(drawing, "Seconds."))
