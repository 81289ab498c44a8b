"""The last section of a report: how the coreset came about, and how to make it again."""

from __future__ import annotations

from typing import Any

from corebayes.certify.steps import steps_of
from corebayes.coreset import Coreset
from corebayes.report.findings import Measured
from corebayes.report.html import Markup, element, section, table

UNKNOWN = "not recorded"


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
    """The model and what it was made with."""
    config = getattr(model, "config", None)
    if config is None:
        return repr(model)
    entries = (f"{name}={value!r}" for name, value in config().items() if name != "names")
    text = f"{type(model).__name__}({', '.join(entries)})"
    return text if len(text) <= 2000 else text[:2000] + "…"
