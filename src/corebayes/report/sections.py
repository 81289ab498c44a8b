"""The sections of a report: distance, posterior, rows, sampler, cost, how to reproduce."""

from __future__ import annotations

from typing import Any

import numpy as np

from corebayes.certify.steps import steps_of
from corebayes.coreset import Coreset
from corebayes.coreset.shown import to_columns
from corebayes.report import figures
from corebayes.report.cost import duration
from corebayes.report.draws import NUM_TUNE, Parameter
from corebayes.report.findings import Findings, Measured
from corebayes.report.html import MISSING, Markup, element, figure, section, table
from corebayes.report.landscape import flat
from corebayes.report.svg import number
from corebayes.types import Array

MOST_MARGINALS, MOST_PARAMETERS = 15, 100
MOST_ROWS, MOST_COLUMNS = 20, 8
UNKNOWN = "not recorded"


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


def _certificate(measured: Measured) -> Markup:
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
        rows.append(("Pareto k̂ of the ratios", f"{certificate.pareto_k:.2f} (at most 0.7)"))
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


def _numbers(parameter: Parameter) -> list[str]:
    """The parameter's line, its numbers to a hundredth of the standard deviation."""
    summary, sd = parameter.summary, parameter.summary["sd"]
    decimals = 4 if not sd > 0.0 else int(np.clip(2 - np.floor(np.log10(sd)), 0, 12))
    values = [summary[name] for name in ("mean", "sd", "5%", "95%")]
    values += parameter.corrected or ()
    cells = [f"{value:,.{decimals}f}" for value in values]
    if parameter.corrected is not None:
        cells.append(f"{parameter.shift:+.3f}")
    return [parameter.name, *(cell.replace("-", "−") for cell in cells)]


def chosen_rows(coreset: Coreset, measured: Measured | None) -> Markup:
    """The rows that were chosen, and their weights."""
    if coreset.size == 0:
        return section("rows", "Rows and weights", element("p", "The coreset has no rows."))
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
    return section("rows", "Rows and weights", both, _row_table(coreset))


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
    caption = "Rows of the coreset, largest weight first" + (f" ({left} more)" if left else "")
    return table(caption, ["row", "weight", "share", *names], rows)


def _entry(value: Any) -> str:
    return number(float(value)) if isinstance(value, float) else str(value)


def _columns(coreset: Coreset) -> tuple[list[str], list[Any]]:
    """The first columns of the rows, with their names, the target last."""
    if coreset.provenance.get("design") is not None:
        own = to_columns(coreset)
        every = [name for name in own if name not in ("row_id", "weight", "count")]
        shown = [*every[:-1][:MOST_COLUMNS], every[-1]]
        return shown, [own[name] for name in shown]
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


def cost(findings: Findings) -> Markup:
    """Time of every step, and of the same on all rows."""
    measured, drawn, known = findings.measured, findings.drawn, findings.coreset.provenance
    bars: list[tuple[str, float, str]] = []
    if known.get("seconds") is not None:
        passes = known.get("passes")
        words = "build" if passes is None else f"build, {passes:.1f} passes over the rows"
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
                f"NUTS took about {drawn.num_gradients:,.0f} gradients; as many on all rows would "
                f"take {duration(full)}."
            )
    drawing = figures.cost_figure([(name, max(value, 1e-6), css) for name, value, css in bars])
    return section("cost", "Time and cost", element("p", words), figure(drawing, "Seconds."))


def reproduction(coreset: Coreset, measured: Measured | None) -> Markup:
    """Method, seed, version, fingerprint, and the lines to run."""
    known = coreset.provenance
    fingerprint = str(known.get("data", UNKNOWN))
    if measured is not None and "data" in known:
        fingerprint += (
            " (the rows of this report have the same)"
            if measured.same_fingerprint
            else " (the rows of this report are laid out otherwise, or some have changed)"
        )
    rows = [
        ("model", _model(coreset.model)),
        ("method", str(known.get("method", UNKNOWN))),
        ("seed", str(known.get("seed", UNKNOWN))),
        ("stopped", coreset.reason or UNKNOWN),
        ("corebayes", str(known.get("version", UNKNOWN))),
        ("rows", f"{coreset.num_rows:,}, total count {coreset.total_count:,.10g}"),
        *_lineage(coreset),
        ("fingerprint of the rows", fingerprint),
    ]
    return section(
        "reproduce",
        "How to reproduce",
        element("p", "The same rows, model, method, seed and version give the same coreset:"),
        element("pre", element("code", str(known.get("command") or _call(coreset)))),
        table("How this coreset came about", (), rows, css="words"),
    )


def _lineage(coreset: Coreset) -> list[tuple[str, str]]:
    """How often it was updated and merged, and from what."""
    kinds = [step.kind for step in steps_of(coreset)]
    numbers = {kind: kinds.count(kind) for kind in ("update", "merge")}
    if not any(numbers.values()):
        return []
    words = " and ".join(
        f"{number} {kind}{'s' * (number > 1)}" for kind, number in numbers.items() if number
    )
    sources = [source.name for source in coreset.sources]
    names = " … ".join(dict.fromkeys([*sources[:1], *sources[-1:]]))
    kept = "" if coreset.reserve is None else f", with {coreset.reserve.size:,} rows in reserve"
    return [("came about", f"from {words}{kept}"), ("sources", f"{len(sources)}: {names}")]


def _call(coreset: Coreset) -> str:
    """The call that built it: what was asked for, which is not what came out."""
    known = coreset.provenance
    steps = steps_of(coreset)
    if steps[-1].kind in ("update", "merge"):
        given = "coreset, new_rows" if steps[-1].kind == "update" else "coresets"
        return (
            f"coreset = {steps[-1].kind}({given}, size={coreset.size}, "
            f"seed={known.get('seed', 0)})  # {coreset.reason}"
        )
    asked: dict[str, Any] = known.get("asked") or {"size": coreset.size}
    arguments = [f"{name}={value!r}" for name, value in asked.items()]
    arguments += [f"method={known['method']}"] if known.get("method") else []
    arguments.append(f"seed={known.get('seed', 0)}")
    one = "build_path" if "sizes" in asked else "build"
    pick = f"  # the one of {coreset.size} rows" if "sizes" in asked else ""
    return f"coreset = {one}(model, data, {', '.join(arguments)}){pick}  # {coreset.reason}"


def _model(model: Any) -> str:
    """The model and what it was made with."""
    config = getattr(model, "config", None)
    if config is None:
        return repr(model)
    entries = (f"{name}={value!r}" for name, value in config().items() if name != "names")
    text = f"{type(model).__name__}({', '.join(entries)})"
    return text if len(text) <= 2000 else text[:2000] + "…"
