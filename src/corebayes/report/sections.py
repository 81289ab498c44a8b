"""The sections of a report: distance, posterior, rows, sampler, cost; `page` has the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from corebayes.coreset import Coreset
from corebayes.coreset.shown import to_columns
from corebayes.data.units import COUNT
from corebayes.report import figures
from corebayes.report.cost import duration
from corebayes.report.draws import NUM_TUNE, DrawnParameter
from corebayes.report.findings import Findings, MeasuredOnRows
from corebayes.report.html import MISSING, Markup, element, figure, section, table
from corebayes.report.landscape import flat
from corebayes.report.svg import number
from corebayes.types import Array

MOST_MARGINALS, MOST_PARAMETERS = 15, 100
MOST_ROWS, MOST_COLUMNS = 20, 8


def distance(findings: Findings) -> Markup:
    """KL against size, and as certified."""
    measured, sizes = findings.measured, findings.sizes
    certificate = element("p", MISSING) if measured is None else _certificate(measured)
    if sizes is None:
        words = element("p", "This build has one size, so there is no curve of KL.", css="soft")
        body = element("div", certificate, words)
    else:
        certified = None if measured is None else measured.certificate.reverse_kl
        words = (
            "KL(π_w ‖ π) between Laplace fits of coresets of several sizes from one run, and the "
            "median of five uniform subsamples; an arrow is an infinite KL. "
            if sizes.measured
            else "KL(π_w ‖ π) as the construction saw it while rows were added. "
        )
        if certified is not None:
            words += (
                "The dot marked certified is measured on fresh draws, with two standard errors."
            )
        drawing = figures.kl_figure(sizes, certified, findings.coreset)
        body = element("div", figure(drawing, words), certificate, css="pair")
    return section("distance", "How far from the full posterior", body)


def _certificate(measured: MeasuredOnRows) -> Markup:
    certificate = measured.certificate
    rows: list[tuple[str, str]] = []
    for label, kl in (
        ("KL(coreset ‖ full)", certificate.reverse_kl),
        ("KL(full ‖ coreset)", certificate.forward_kl),
    ):
        error = "" if kl is None else f" ± {number(kl.standard_error, 1)} nats"
        rows.append((label, "withheld" if kl is None else number(kl.value, 3) + error))
    if certificate.total_variation is not None:
        rows.append(("no probability moves by more than", number(certificate.total_variation, 3)))
    if certificate.pareto_k is not None:
        worst = f"{certificate.pareto_k:.2f}".replace("-", "−")
        rows.append(("Pareto k̂ of the ratios", f"{worst} (at most 0.7)"))
    if certificate.effective_sample_size is not None:
        effective = _effective(certificate.effective_sample_size, certificate.num_draws)
        rows.append(("effective draws of π", effective))
    rows.append(("tolerance", f"{number(certificate.tol)} nats"))
    return table("The certificate, on fresh draws", (), rows)


def _effective(size: float, number: int) -> str:
    """An effective sample size beside the number of draws, which it may exceed."""
    if size <= number:
        return f"{size:,.0f} of {number:,}"
    return f"{number:,} of {number:,} (worth {size:,.0f}: successive draws offset each other)"


def posterior(findings: Findings) -> Markup:
    """The parameters under both posteriors."""
    shares = None if findings.measured is None else findings.measured.shares
    ordered = sorted(findings.parameters, key=lambda parameter: -abs(parameter.shift))
    few = ordered[:MOST_MARGINALS]
    drawings = (
        element("figure", Markup(figures.marginal_figure(parameter, shares, place)))
        for place, parameter in enumerate(few)
    )
    keys = [Markup('<span class="key a"></span>'), "coreset posterior"]
    exact = findings.measured is not None and findings.measured.exact is not None
    if shares is not None or exact:
        words = "the same draws corrected to all rows by their importance ratios"
        if exact:
            words = "exact draws of the posterior of all rows"
        keys += ["  ", Markup('<span class="key fill"></span>'), words]
    shown = findings.parameters[:MOST_PARAMETERS]
    left = len(findings.parameters) - len(shown)
    header = ["parameter", "mean", "sd", "5 %", "95 %"]
    header += (
        [] if shares is None and not exact else ["corrected mean", "corrected sd", "shift (sd)"]
    )
    caption = "Parameters" + (f" (the first {len(shown)}; {left} more)" if left else "")
    return section(
        "posterior",
        "Posterior",
        element("p", *keys),
        element("p", _correction_words(findings, len(few)), css="soft"),
        element("div", *drawings, css="many"),
        table(caption, header, map(_numbers, shown)),
    )


def _correction_words(findings: Findings, shown: int) -> str:
    total, measured = len(findings.parameters), findings.measured
    words = f"The {shown} of {total} parameters that move most are drawn. " * (shown < total)
    if measured is None:
        return words + "The correction to all rows needs the rows."
    if measured.shares is None and measured.exact is None:
        return words + (
            "The importance ratios cannot be trusted here (see the verdict), so no correction "
            "is shown."
        )
    largest = max((abs(parameter.shift) for parameter in findings.parameters), default=0.0)
    return words + f"The correction moves no mean by more than {number(largest, 2)} posterior sd."


def _numbers(parameter: DrawnParameter) -> list[str]:
    """The parameter's line, its numbers to a hundredth of the standard deviation."""
    summary, sd = parameter.summary, parameter.summary["sd"]
    decimals = 4 if not sd > 0.0 else int(np.clip(2 - np.floor(np.log10(sd)), 0, 12))
    values = [summary[name] for name in ("mean", "sd", "5%", "95%")]
    values += parameter.corrected or ()
    cells = [f"{value:,.{decimals}f}" for value in values]
    if parameter.corrected is not None:
        # Zero has no sign.
        cells.append(f"{round(parameter.shift, 3) + 0.0:+.3f}")
    return [parameter.name, *(cell.replace("-", "−") for cell in cells)]


def chosen_rows(coreset: Coreset, measured: MeasuredOnRows | None) -> Markup:
    """The rows that were chosen, or the units, and their weights."""
    title = f"{coreset.noun.capitalize()} and weights"
    if coreset.size == 0:
        return section("rows", title, element("p", f"The coreset has no {coreset.noun}."))
    landscape = None if measured is None else measured.landscape
    shown = [figure(figures.weights_figure(coreset), _weight_words(coreset))]
    if landscape is None:
        reason = MISSING if measured is None else "No column of the rows varies."
        shown = [*shown, element("p", f"Where they lie among all rows: {reason}", css="soft")]
    else:
        words = (
            f"{len(landscape.some):,} rows of the data (dots) and the rows of the coreset "
            "(discs, area proportional to weight)."
        )
        shown.append(figure(figures.landscape_figure(landscape, coreset), words))
    both = element("div", *shown, css="" if landscape is None else "pair")
    return section("rows", title, both, _row_table(coreset))


def _weight_words(coreset: Coreset) -> str:
    weights = np.sort(coreset.weights)[::-1]
    total = float(weights.sum())
    # Kish's effective number: (Σw)² / Σw²
    effective = total**2 / float(np.sum(np.square(weights))) if total > 0.0 else 0.0
    share = float(weights[: -(-weights.size // 10)].sum()) / (total or 1.0)
    return (
        f"The weights add up to {total:,.1f} for a total count of {number(coreset.total_count)}. "
        f"The largest tenth carries {100 * share:.0f} %; as many equal weights would be "
        f"{effective:.0f}."
    )


def _row_table(coreset: Coreset) -> Markup:
    names, columns = _columns(coreset)
    total = float(coreset.weights.sum()) or 1.0
    rows: list[list[str]] = []
    for k in np.argsort(-coreset.weights)[:MOST_ROWS]:
        index, weight = int(coreset.indices[k]), float(coreset.weights[k])
        name = f"{index:,}" if index >= 0 else f"learned {-index}"
        values = [_entry(column[k]) for column in columns]
        rows.append([name, number(weight), f"{100 * weight / total:.1f} %", *values])
    left = coreset.size - len(rows)
    what = coreset.noun
    caption = f"{what.capitalize()} of the coreset, largest weight first"
    caption += f" ({left} more)" if left else ""
    return table(caption, [what.removesuffix("s"), "weight", "share", *names], rows)


def _entry(value: Any) -> str:
    return number(float(value)) if isinstance(value, float) else str(value)


def _columns(coreset: Coreset) -> tuple[list[str], list[Any]]:
    """The first columns of the rows, with their names, the target last."""
    if coreset.provenance.get("design") is not None:
        own = to_columns(coreset)
        every = [name for name in own if name not in ("row_id", "weight", "count")]
        shown = [*every[:-1][:MOST_COLUMNS], every[-1]]
        return shown, [own[name] for name in shown]
    if COUNT in coreset.rows.fields:
        # A unit has as many numbers as its rows: how many rows it has is what tells it.
        return ["rows of the unit"], [np.count_nonzero(coreset.rows[COUNT] > 0.0, axis=1)]
    given = list(coreset.provenance.get("column_names") or ())
    names: list[str] = []
    columns: list[Array] = []
    last: tuple[list[str], list[Array]] = ([], [])
    for field, values in coreset.rows.fields.items():
        entries = flat(values)
        labels = [field] if values.ndim == 1 else [f"{field}[{k}]" for k in range(entries.shape[1])]
        if field == "X" and len(given) == entries.shape[1]:
            labels = [str(name) for name in given]
        if field == "y" and entries.shape[1] == 1:
            last = ([str(coreset.provenance.get("target_name") or "y")], [entries[:, 0]])
            continue
        names += labels
        columns += list(entries.T)
    return names[:MOST_COLUMNS] + last[0], columns[:MOST_COLUMNS] + last[1]


def sampler(findings: Findings) -> Markup:
    """How NUTS did on the coreset."""
    stats, (chains, length, _) = findings.drawn.stats, findings.drawn.draws.shape
    if stats is None:
        words = (
            f"{length:,} independent draws in closed form: this model's coreset posterior is "
            "Gaussian, so there are no chains to diagnose."
        )
        return section("sampler", "Sampler", element("p", words))
    ess = min((p.summary["ess"] for p in findings.parameters), default=float("nan"))
    rhat = max((p.summary["r_hat"] for p in findings.parameters), default=float("nan"))
    divergences = int(np.sum(stats["diverging"]))
    rows = [
        ("chains", f"{chains} of {length:,} draws after {NUM_TUNE} of tuning"),
        ("largest R̂", f"{rhat:.3f} (at most 1.05)"),
        ("smallest effective sample size", _effective(ess, chains * length)),
        ("divergences", f"{divergences}"),
        ("acceptance", f"{float(np.mean(stats['acceptance_rate'])):.2f}"),
        ("gradients per draw", f"{float(np.mean(stats['n_steps'])):.1f}"),
        ("step size", number(float(np.mean(stats["step_size"])), 3)),
    ]
    words = (
        "NUTS on the weighted rows; the chains agree."
        if rhat <= 1.05 and divergences == 0
        else "The chains do not agree or diverge: do not use these draws. Build a larger coreset."
    )
    return section("sampler", "Sampler", element("p", words), table("NUTS", (), rows))


def _two_digits(count: float) -> str:
    return f"{float(f'{count:.2g}'):,.0f}"


def cost(findings: Findings) -> Markup:
    """Time of every step, and of the same on all rows."""
    measured, drawn, known = findings.measured, findings.drawn, findings.coreset.provenance
    bars: list[tuple[str, float, str]] = []
    if known.get("seconds") is not None:
        passes = known.get("passes")
        words = "build" if passes is None else f"build, {number(passes, 3)} passes over the rows"
        bars.append((words, float(known["seconds"]), "a"))
    bars.append(("sample the coreset", drawn.seconds, "a"))
    words = "Time against MCMC on all rows needs the rows."
    if measured is not None:
        if measured.seconds > 1e-3:
            bars.append(("certify", measured.seconds, "a"))
        price = measured.cost
        some = f" (measured on {price.num_measured:,} of them in memory and scaled up)"
        words = (
            f"One log density with its gradient takes {duration(price.coreset_seconds)} on the "
            f"coreset and {duration(price.full_seconds)} on all rows"
            f"{some * (price.num_measured < findings.coreset.num_rows)}. "
        )
        if drawn.stats is None:
            words += "This model needs no MCMC: its posterior has a closed form."
        else:
            full = drawn.num_gradients * price.full_seconds
            bars.append(("the same NUTS on all rows, estimated", full, "b"))
            words += (
                f"NUTS took about {_two_digits(drawn.num_gradients)} gradients; as many on all "
                f"rows would take {duration(full)}."
            )
        if price.laplace_seconds is not None and drawn.stats is not None:
            words += (
                " If this is the one fit you need of this model, corebayes.laplace draws from the "
                f"posterior of all rows in about {duration(price.laplace_seconds)} and a second "
                "or so to start."
            )
    drawing = figures.cost_figure([(name, max(value, 1e-6), css) for name, value, css in bars])
    return section("cost", "Time and cost", element("p", words), figure(drawing, "Seconds."))
