"""A model as one would write it on a blackboard: its likelihood, and a table of its priors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# More parameters than this are summed up.
MOST_ROWS = 24
MOST_PARTS = 12

Row = tuple[str, str, str]


def statement(target: str, likelihood: str, predictor: Sequence[str], rows: Sequence[Row]) -> str:
    """The likelihood, what η is made of, and parameter, prior, and from where the prior is."""
    parts = list(predictor)
    if len(parts) > MOST_PARTS:
        parts = [*parts[: MOST_PARTS - 1], "…", parts[-1]]
    made = f", η = {' + '.join(parts)}" if parts else ""
    return "\n".join([f"{target} ~ {likelihood}{made}", *table_lines(rows)])


def statement_of(model: Any) -> str | None:
    """What a bound model says of itself; None for models that say nothing."""
    said = getattr(model, "statement", None)
    return None if said is None else str(said())


def title_of(model: Any) -> str:
    """What people call a model."""
    return str(getattr(model, "title", type(model).__name__))


def shortened(rows: Sequence[Row]) -> list[Row]:
    """What many parameters would make too long is left out in the middle."""
    if len(rows) <= MOST_ROWS:
        return list(rows)
    left, half = len(rows) - MOST_ROWS, MOST_ROWS // 2
    return [*rows[:half], ("…", f"{left:,} more parameters", ""), *rows[-half:]]


def table_lines(rows: Sequence[Row]) -> list[str]:
    """Columns side by side."""
    shown = shortened(rows)
    widths = [max((len(row[column]) for row in shown), default=0) for column in range(2)]
    return [
        f"  {name:<{widths[0]}}  {prior:<{widths[1]}}  {source}".rstrip()
        for name, prior, source in shown
    ]
