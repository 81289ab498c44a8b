"""The report as one page of HTML: no scripts, nothing fetched, drawings in the text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corebayes.certify.steps import steps_of
from corebayes.coreset import Coreset
from corebayes.models.numbers import is_given
from corebayes.models.priors.table import shortened, statement_of, title_of
from corebayes.predict.check import Bins, Check
from corebayes.report import sections, svg
from corebayes.report.cost import duration
from corebayes.report.findings import Findings, MeasuredOnRows
from corebayes.report.html import Markup, document, element, figure, section, table
from corebayes.report.svg import number, spanning, with_powers
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
        reproduction(coreset, findings.measured),
        element("footer", f"Written by corebayes {__version__}."),
    )


def _subtitle(coreset: Coreset) -> str:
    model, ratio = coreset.model, coreset.num_counted / max(coreset.size, 1)
    within = coreset.provenance.get("unit_rows")
    of_rows = "" if within is None else f" of {within:,} rows"
    return (
        f"{coreset.num_counted:,} {coreset.noun}{of_rows} compressed to {coreset.size:,} weighted "
        f"{coreset.noun} ({ratio:,.0f} to 1) for {title_of(model)} with {model.dim} parameters"
        f"{came_about(coreset)}."
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


SIZE = 420, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 410, 28, 252


def predictive(check: Check | None) -> Markup:
    """Statistics of the rows beside those of replicates, and a picture of the targets."""
    if check is None:
        return Markup("")
    header = ["statistic", "data", "replicated", "5 %", "95 %", "p"]
    rows = [
        [one.name, *(number(value) for value in one[1:5]), f"{one.p:.3f}"]
        for one in check.statistics
    ]
    caption = f"All rows, and {check.num_draws:,} data sets as the model would make them"
    words = (
        f"{check.verdict} p is the share of replicated data sets in which a statistic is larger; "
        "near 0 or 1 the model makes other data than these."
    )
    listed = table(caption, header, rows)
    if len(check.edges) < 3:
        # Of two labels the table says all.
        return section("check", "Does the model fit the data", element("p", words), listed)
    bins = check.bins
    told = (
        f"{'Square roots of the shares' if bins.roots else 'Shares'} of rows by "
        f"{check.target_name}: the data as dots, the middle 90 % of the replicated data sets as "
        "bars. What lies beyond the axis is in its first and last bins."
    )
    drawing = figure(predictive_figure(check, bins), told)
    return section("check", "Does the model fit the data", element("p", words), drawing, listed)


def predictive_figure(check: Check, bins: Bins) -> str:
    """The share of rows in each bin."""
    places, data, low, high, roots = bins
    x = spanning(places, start=LEFT, stop=RIGHT)
    top = 1.05 * max(float(data.max()), float(high.max()))
    y = svg.AxisScale(low=0.0, high=top, start=BOTTOM, stop=TOP)
    label = "√ share of rows" if roots else "share of rows"
    marks = svg.vertical_axis(y, LEFT, RIGHT, label)
    across = x(places)
    bars = "".join(
        svg.line(np.array([place, place]), y(np.array([a, max(b, a + 0.004 * top)])), "line a")
        for place, a, b in zip(across, low, high, strict=True)
    )
    width = max(2.0, min(14.0, 0.6 * (RIGHT - LEFT) / len(places)))
    marks.append(f'<g stroke-width="{width:.1f}" class="bars">{bars}</g>')
    marks.append(svg.dots(across, y(data), 2.6, "dots b"))
    marks += svg.horizontal_axis(x, BOTTOM, check.target_name)
    words = (
        f"Of {len(places)} bins the data are outside of the replicated 90 % in {bins.num_outside}."
    )
    title = f"{check.target_name}: the data and replicates of them"
    return svg.picture("check", SIZE, title, words, marks)


def model_section(coreset: Coreset) -> Markup:
    """Likelihood and table of priors; nothing for models that do not say what they are."""
    model: Any = coreset.model
    priors: Callable[[], Any] | None = getattr(model, "priors", None)
    if priors is None:
        return Markup("")
    first, *_ = str(statement_of(model)).splitlines()
    rows = [(name, with_powers(prior), source) for name, prior, source in shortened(priors())]
    return section(
        "model",
        "Model and priors",
        element("p", element("code", first)),
        element(
            "p",
            "Default priors are weakly informative on the scale of the rows, and fixed since the "
            "coreset was built.",
        )
        if any(source == "default" for _, _, source in rows)
        else Markup(""),
        table("Priors", ("parameter", "prior", "from where"), rows, css="words"),
    )


UNKNOWN = "not recorded"


def reproduction(coreset: Coreset, measured: MeasuredOnRows | None) -> Markup:
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
        (coreset.noun, _counted(coreset)),
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


def _counted(coreset: Coreset) -> str:
    left_out = coreset.num_rows - coreset.num_counted
    without = f" ({left_out:,} of them left out)" if left_out else ""
    return f"{coreset.num_rows:,}{without}, total count {coreset.total_count:,.10g}"


def _lineage(coreset: Coreset) -> list[tuple[str, str]]:
    """How often it was updated and merged, and from what; what the next step goes on from."""
    found: list[tuple[str, str]] = []
    if words := came_about(coreset):
        sources = [source.name for source in coreset.sources]
        names = " … ".join(dict.fromkeys([*sources[:1], *sources[-1:]]))
        found = [("came about", words.lstrip(", ")), ("sources", f"{len(sources)}: {names}")]
    if coreset.reserve is not None:
        kept = f"{coreset.reserve.size:,} {coreset.noun}, which update and merge go on from"
        found.append(("in reserve", kept))
    return found


def came_about(coreset: Coreset) -> str:
    """ ", from 30 updates"; nothing where it was built at once."""
    kinds = [step.kind for step in steps_of(coreset)]
    numbers = {kind: kinds.count(kind) for kind in ("update", "merge")}
    words = " and ".join(
        f"{number} {kind}{'s' * (number > 1)}" for kind, number in numbers.items() if number
    )
    return f", from {words}" if words else ""


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
    """The model and what it was made with; its priors stand in their own table."""
    config = getattr(model, "config", None)
    if config is None:
        return repr(model)
    apart = ("names", "priors", "prior") if hasattr(model, "priors") else ("names",)
    given = {name: value for name, value in config().items() if name not in apart}
    entries = (f"{name}={value!r}" for name, value in given.items() if is_given(value))
    text = f"{type(model).__name__}({', '.join(entries)})"
    return text if len(text) <= 2000 else text[:2000] + "…"
