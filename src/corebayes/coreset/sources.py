"""Where the rows of a coreset come from when it stands for several tables.

A coreset that was updated or merged stands for its sources one below the other. Its row numbers run
through all of them, so number k of a source is all rows of the sources before it, plus k.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from corebayes.types import Indices

MOST_SOURCES, MAX_NAME = 100_000, 200


class Source(NamedTuple):
    """A table that rows came from."""

    name: str
    num_rows: int
    total_count: float
    fingerprint: str = ""
    """Of its rows, as they were read then; empty where nothing is known."""


def sources_of(coreset: Any) -> tuple[Source, ...]:
    """The tables that a coreset stands for, in the order of its row numbers; one has no name."""
    stored: Any = coreset.provenance.get("sources")
    if stored is None:
        known = str(coreset.provenance.get("data", ""))
        return (Source("", coreset.num_rows, coreset.total_count, known),)
    return tuple(_source(entry) for entry in stored)


def stored_sources(sources: Sequence[Source]) -> list[dict[str, Any]]:
    """As a coreset's provenance holds them."""
    return [source._asdict() for source in sources]


def origins_of(sources: Sequence[Source], indices: Indices) -> list[tuple[str, int]]:
    """The source and the number there of every row; a learned row keeps its negative number."""
    ends = np.cumsum([source.num_rows for source in sources])
    places = np.searchsorted(ends, indices, side="right")
    starts: list[int] = [0, *ends.tolist()]
    pairs: zip[tuple[int, int]] = zip(indices.tolist(), places.tolist(), strict=True)
    return [
        (sources[place].name, number - starts[place]) if number >= 0 else ("", number)
        for number, place in pairs
    ]


def check_sources(coreset: Any) -> None:
    """ValueError or TypeError for sources that do not add up to the coreset's rows."""
    stored: Any = coreset.provenance.get("sources")
    if stored is None:
        return
    if not isinstance(stored, list | tuple) or not 0 < len(cast("list[Any]", stored)) <= (
        MOST_SOURCES
    ):
        raise TypeError(f"sources must be a list of at most {MOST_SOURCES:,} sources")
    sources = [_source(entry) for entry in cast("list[Any]", stored)]
    names = [source.name for source in sources]
    if len(set(names)) < len(names):
        raise ValueError("two sources of the coreset have the same name")
    total = sum(source.num_rows for source in sources)
    if total != coreset.num_rows:
        raise ValueError(
            f"the sources have {total:,} rows, and the coreset is of {coreset.num_rows:,}"
        )
    count = sum(source.total_count for source in sources)
    if not np.isclose(count, coreset.total_count, rtol=1e-9, atol=0.0):
        raise ValueError(
            f"the sources count {count:,g}, and the coreset stands for {coreset.total_count:,g}"
        )


def _source(entry: Any) -> Source:
    if not isinstance(entry, Mapping):
        raise TypeError("a source must have a name, num_rows and total_count")
    known = cast(Mapping[str, Any], entry)
    name: Any = known.get("name")
    rows: Any = known.get("num_rows")
    count: Any = known.get("total_count")
    if not isinstance(name, str) or len(name) > MAX_NAME:
        raise TypeError(f"a source must have a name of at most {MAX_NAME} characters")
    if type(rows) is not int or not 0 < rows < 2**53:
        raise ValueError(f"source {name!r} must have a whole number of rows, got {rows!r:.40}")
    if isinstance(count, bool) or not isinstance(count, int | float) or not 0.0 <= count < np.inf:
        raise ValueError(f"source {name!r} must have a finite count, got {count!r:.40}")
    return Source(name, rows, float(count), str(known.get("fingerprint", "")))
