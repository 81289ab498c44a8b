"""The names of the sources of several coresets, no two of them alike."""

from __future__ import annotations

import re
from collections.abc import Sequence

from corebayes.coreset import Coreset
from corebayes.coreset.sources import MAX_NAME, Source
from corebayes.data.warn import warn
from corebayes.rows import Rows

# A name that nobody gave, or none.
NUMBERED = re.compile(r"(source-\d+)?")


def named_sources(coresets: Sequence[Coreset], names: Sequence[str] | None) -> tuple[Source, ...]:
    """All sources, in the order of the union. `names` are one for each coreset: of its one source,
    or what comes before the names of several ("site-3/monday"). Names that nobody gave are numbers,
    and are numbered again."""
    if names is not None and len(names) != len(coresets):
        raise ValueError(f"{len(coresets)} coresets have {len(names)} names: give one for each")
    found: list[Source] = []
    for place, coreset in enumerate(coresets):
        own = coreset.sources
        given = None if names is None else _checked(names[place])
        for source in own:
            parts = [part for part in (given, source.name) if part]
            found.append(source._replace(name="/".join(parts)))
    named = [
        s._replace(name=f"source-{k}") if NUMBERED.fullmatch(s.name) else s
        for k, s in enumerate(found)
    ]
    _check_different(named)
    return tuple(named)


def with_new_source(
    sources: tuple[Source, ...], name: str | None, rows: Rows
) -> tuple[Source, ...]:
    """These and the new rows. Cost: the pass that checks the rows, and their fingerprint."""
    new = Source(
        f"source-{len(sources)}" if name is None else _checked(name),
        rows.num_rows,
        rows.total_count,
        rows.fingerprint(),
    )
    _check_different([*sources, new])
    return (*sources, new)


def _checked(name: str) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"a name of a source has 1 to {MAX_NAME} characters, got {name!r:.60}")
    return name


def _check_different(sources: Sequence[Source]) -> None:
    """Two names that are alike are an error; the same rows under two names may be meant."""
    names, rows = set[str](), dict[str, str]()
    for name, _, _, fingerprint in sources:
        if name in names:
            raise ValueError(
                f"two sources are called {name!r}: rows would have the same numbers. Give each a "
                "name of its own, with name=... (update) or names=[...] (merge); if it is the same "
                "data, it would count twice"
            )
        names.add(name)
        if fingerprint and fingerprint in rows:
            warn(f"{rows[fingerprint]!r} and {name!r} have the same rows: they count twice")
        rows.setdefault(fingerprint, name)
