"""A model as one would write it on a blackboard: its likelihood, and a table of its priors."""

from __future__ import annotations

from collections.abc import Sequence

# More parameters than this are summed up.
MOST_ROWS = 24

Row = tuple[str, str, str]


def statement(likelihood: str, rows: Sequence[Row]) -> str:
    """The likelihood, and below it parameter, prior, and from where the prior is."""
    return "\n".join([likelihood, *table_lines(rows)])


def table_lines(rows: Sequence[Row]) -> list[str]:
    """Columns side by side; what many parameters would make too long is left out in the middle."""
    shown = list(rows)
    if len(shown) > MOST_ROWS:
        left = len(shown) - MOST_ROWS
        half = MOST_ROWS // 2
        shown = [*shown[:half], ("…", f"{left:,} more parameters", ""), *shown[-half:]]
    widths = [max((len(row[column]) for row in shown), default=0) for column in range(2)]
    return [
        f"  {name:<{widths[0]}}  {prior:<{widths[1]}}  {source}".rstrip()
        for name, prior, source in shown
    ]
