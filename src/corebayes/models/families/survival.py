"""What models of waiting times share: rows that are censored, and how they are checked.

A row with event 1 ended at y, one with event 0 was still going on at y: its potential is the log of
the probability to last longer, log P(T > y).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from corebayes.models.families.family import BadEntries, Column, Family, Row
from corebayes.types import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class SurvivalRegression(Family):
    """Waiting times y > 0 around e^η.

    `event` names the column of X that is 1 where the event was seen and 0 where the row is
    censored, still waiting at y (or gives its position); without it every event was seen.
    """

    mean_link = "log"
    measured = True

    event: Column | None = field(default=None, repr=False)

    def survey(self, row: Row) -> Array:
        return row.get("event", np.empty(0))

    def settled(self, values: Array) -> Self:
        if values.size and not np.any(values == 1.0):
            raise ValueError(
                f"every row is censored (column {self.event!r} is 0 everywhere): nothing says when "
                "an event happens; event is 1 where it was seen"
            )
        return self

    def check_target(self, y: Array, lowest: float) -> tuple[NDArray[np.bool_], str]:
        return ~((y > 0.0) & np.isfinite(y)), "waiting times must be positive numbers"

    def check_row(self, row: Row) -> list[BadEntries]:
        found = super().check_row(row)
        if "event" in row:
            bad = ~((row["event"] == 0.0) | (row["event"] == 1.0))
            found.append(("event", bad, "an event is 1 where it was seen and 0 where not"))
        return found

    def compiled_row(self, row: Row) -> Array:
        return np.stack(np.broadcast_arrays(np.log(row["y"]), seen(row)))


def seen(row: Row) -> Array:
    """1 where the event was seen."""
    return row["event"] if "event" in row else np.ones(1)


def stan_event(family: SurvivalRegression, density: str, tail: str) -> str:
    """A line of Stan from those of the two kinds of rows."""
    return density if family.event is None else f"(event[i] == 1 ? {density} : {tail})"


def in_arrays_seen(xp: Any, row: Row, density: Any, tail: Any) -> Any:
    """The same with another library's arrays."""
    return xp.where(row["event"] > 0.0, density, tail) if "event" in row else density
