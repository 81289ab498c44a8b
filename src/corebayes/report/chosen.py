"""The part of a report about the rows that were chosen, and their weights."""

from __future__ import annotations

import numpy as np

from corebayes.report import figures
from corebayes.report.findings import Findings
from corebayes.report.html import MISSING, Markup, element, figure, section, table
from corebayes.report.landscape import flat
from corebayes.types import Array, Coreset

MOST_ROWS, MOST_COLUMNS = 20, 8


def chosen_rows(findings: Findings) -> Markup:
    coreset = findings.coreset
    if coreset.size == 0:
        return section("rows", "Rows and weights", element("p", "The coreset has no rows."))
    drawn = [
        figure(
            figures.weights_figure(coreset),
            _weight_words(coreset),
        )
    ]
    landscape = None if findings.measured is None else findings.measured.landscape
    if landscape is not None:
        drawn.append(
            figure(
                figures.landscape_figure(landscape, coreset),
                f"{len(landscape.some):,} rows of the data (dots) and the rows of the coreset "
                "(discs, area proportional to weight).",
            )
        )
    else:
        reason = MISSING if findings.measured is None else "No column of the rows varies."
        drawn.append(element("p", reason))
    return section(
        "rows",
        "Rows and weights",
        element("div", *drawn, css="pair"),
        _row_table(coreset),
    )


def _weight_words(coreset: Coreset) -> str:
    weights = np.sort(coreset.weights)[::-1]
    total = float(weights.sum())
    # Kish's effective number: (Σw)² / Σw²
    effective = total**2 / float(np.sum(np.square(weights))) if total > 0.0 else 0.0
    tenth = -(-weights.size // 10)
    share = float(weights[:tenth].sum()) / total if total > 0.0 else 0.0
    return (
        f"The weights add up to {total:,.1f} for a total count of {coreset.total_count:,.6g}. The "
        f"largest tenth carries {100 * share:.0f} %; as many equal weights would be "
        f"{effective:.0f}."
    )


def _row_table(coreset: Coreset) -> Markup:
    order = np.argsort(-coreset.weights)[:MOST_ROWS]
    names, columns = _columns(coreset)
    total = float(coreset.weights.sum()) or 1.0
    rows = [
        [
            f"{coreset.indices[k]:,}"
            if coreset.indices[k] >= 0
            else f"learned {-coreset.indices[k]}",
            f"{coreset.weights[k]:,.4g}",
            f"{100 * coreset.weights[k] / total:.1f} %",
            *(f"{column[k]:.4g}" for column in columns),
        ]
        for k in order
    ]
    left = coreset.size - len(rows)
    caption = "Rows of the coreset, largest weight first" + (f" ({left} more)" if left else "")
    return table(caption, ["row", "weight", "share", *names], rows)


def _columns(coreset: Coreset) -> tuple[list[str], list[Array]]:
    """The first columns of the rows, with their names, the target last."""
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
