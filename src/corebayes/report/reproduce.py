"""The part of a report that lets somebody else come to the same coreset."""

from __future__ import annotations

from typing import Any

from corebayes.report.findings import Findings
from corebayes.report.html import Markup, element, section, table
from corebayes.types import Coreset


def reproduction(findings: Findings) -> Markup:
    """Method, seed, version, fingerprint, and the lines to run."""
    coreset, measured = findings.coreset, findings.measured
    known = coreset.provenance
    fingerprint = str(known.get("data", "not recorded"))
    if measured is not None and "data" in known:
        fingerprint += (
            " (the rows of this report have the same)"
            if measured.same_fingerprint
            else " (the rows of this report are laid out otherwise, or some have changed)"
        )
    rows = [
        ("model", _model(coreset.model)),
        ("method", str(known.get("method", "not recorded"))),
        ("seed", str(known.get("seed", "not recorded"))),
        ("stopped", coreset.reason or "not recorded"),
        ("corebayes", str(known.get("version", "not recorded"))),
        ("rows", f"{coreset.num_rows:,}, total count {coreset.total_count:,.10g}"),
        ("fingerprint of the rows", fingerprint),
    ]
    return section(
        "reproduce",
        "How to reproduce",
        element("p", "The same rows, model, method, seed and version give the same coreset:"),
        element("pre", element("code", _lines(coreset))),
        table("How this coreset came about", (), rows, css="words"),
    )


def _lines(coreset: Coreset) -> str:
    command = coreset.provenance.get("command")
    if command:
        return str(command)
    method = coreset.provenance.get("method")
    arguments = ["model", "data", f"size={coreset.size}"]
    if method:
        arguments.append(f"method={method}")
    arguments.append(f"seed={coreset.provenance.get('seed', 0)}")
    return f"coreset = build({', '.join(arguments)})  # stopped: {coreset.reason}"


def _model(model: Any) -> str:
    """The model and what it was made with."""
    config = getattr(model, "config", None)
    if config is None:
        return repr(model)
    arguments = ", ".join(
        f"{name}={value!r}" for name, value in config().items() if name != "names"
    )
    text = f"{type(model).__name__}({arguments})"
    return text if len(text) <= 2000 else text[:2000] + "…"
