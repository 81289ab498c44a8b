"""What a formula must have seen of a table before it can make columns of it.

Levels of categories, groups that occur, and the states of transforms; of a table in memory that is
read off its columns (`Held`), of one that is not it is gathered batch by batch (`Streamed`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from corebayes.data.empty import NoRowsError
from corebayes.data.limits import as_limit, check_unpacked
from corebayes.formula.columns import (
    BadRowError,
    Categories,
    Missing,
    Numbers,
    Values,
    as_categories,
    check_missing,
    find_missing,
    take,
)
from corebayes.formula.evaluate import Columns, evaluate, find_state, transforms_in
from corebayes.formula.factors import is_coded, length
from corebayes.formula.groups import Level, check_levels, find_levels
from corebayes.formula.transforms import State
from corebayes.formula.tree import Call, Node, columns_of, show, walk
from corebayes.types import Array


class Seen(Protocol):
    @property
    def columns(self) -> Columns:
        """Of every column the kind, and where it is categories all levels that occur."""
        ...

    def states(self, nodes: Sequence[Node]) -> dict[str, State]:
        """What the transforms in these expressions found."""
        ...

    def levels(self, names: Sequence[str]) -> tuple[Level, ...]:
        """The groups that the columns of these names make."""
        ...


@dataclass(frozen=True)
class Held:
    """Complete columns in memory."""

    columns: Columns

    def states(self, nodes: Sequence[Node]) -> dict[str, State]:
        states: dict[str, State] = {}
        for call in _transforms(nodes).values():
            x = evaluate(call.arguments[0], self.columns, states)
            states[show(call)] = find_state(call, x)
        return states

    def levels(self, names: Sequence[str]) -> tuple[Level, ...]:
        found = find_levels(names, self.columns)
        check_levels(names, len(found), length(self.columns))
        return found


class Streamed:
    """Columns that come in batches, again for every reading.

    One pass for levels, groups and missing values, and one for each depth of transforms in each
    other. Memory: a batch, the levels, and N numbers for every transform, which needs all values.
    """

    def __init__(
        self,
        batches: Callable[[], Iterator[dict[str, Values]]],
        nodes: Sequence[Node],
        groups: Sequence[tuple[str, ...]],
        *,
        drops: bool,
        packed: int,
    ) -> None:
        """`packed` are the bytes of the files, which must not unpack to any number of values."""
        self._batches, self._packed = batches, packed
        coded = (inner for node in nodes for inner in walk(node) if is_coded(inner))
        gathered: dict[str, _Gathered] = {}
        counted = {columns_of(node)[0] for node in coded} | {n for names in groups for n in names}
        self._groups: dict[tuple[str, ...], dict[Level, None]] = {names: {} for names in groups}
        gaps: list[_Gap] = []
        self.first: Columns | None = None
        for first, columns in self._numbered():
            gaps.append(_Gap(find_missing(columns), length(columns)))
            present = _present(columns, gaps[-1].missing)
            if length(present) == 0:
                continue
            self.first = self.first or take(present, np.arange(length(present)) == 0)
            for name, values in present.items():
                gathered.setdefault(name, _Gathered(name)).add(values, numbers=name in counted)
            for names, found in self._groups.items():
                try:
                    found.update(dict.fromkeys(find_levels(names, present)))
                except BadRowError as error:
                    raise error.after(first) from None
        if not gaps:
            raise NoRowsError("the table has no rows")
        self.num_rows = sum(gap.length for gap in gaps)
        self.gaps = _joined(gaps)
        if self.gaps is not None:
            check_missing(self.gaps, drops=drops)
        self._orders = {name: one.order() for name, one in gathered.items()}
        self.columns: Columns = {name: one.values() for name, one in gathered.items()}

    def states(self, nodes: Sequence[Node]) -> dict[str, State]:
        states: dict[str, State] = {}
        waiting = _transforms(nodes)
        while waiting:
            ready = {
                name: call
                for name, call in waiting.items()
                if all(show(inner) in states for inner in transforms_in(call.arguments[0]))
            }
            check_unpacked(as_limit(), self._packed, 8 * self.num_rows * len(ready))
            values: dict[str, list[Array]] = {name: [] for name in ready}
            for _, columns in self._numbered():
                present = _present(columns, find_missing(columns))
                for name, call in ready.items():
                    found = evaluate(call.arguments[0], present, states)
                    values[name].append(np.broadcast_to(found, length(present)))
            for name, call in ready.items():
                states[name] = find_state(call, np.concatenate(values.pop(name)))
            waiting = {name: call for name, call in waiting.items() if name not in ready}
        return states

    def levels(self, names: Sequence[str]) -> tuple[Level, ...]:
        found = self._groups[tuple(names)]
        missing = 0 if self.gaps is None else int(self.gaps.rows.sum())
        check_levels(names, len(found), self.num_rows - missing)
        orders = [self._orders[name] for name in names]
        return tuple(sorted(found, key=lambda level: _rank(level, orders)))

    def _numbered(self) -> Iterator[tuple[int, dict[str, Values]]]:
        first = 0
        for columns in self._batches():
            yield first, columns
            first += length(columns)


class _Gap(NamedTuple):
    missing: Missing | None
    length: int


class _Gathered:
    """The levels of a column so far."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._levels: dict[Any, None] = {}
        self._occurring: set[Any] = set()
        self._first: Values | None = None

    def add(self, values: Values, *, numbers: bool) -> None:
        first = self._first = self._first or values
        if type(first) is not type(values):
            raise ValueError(
                f"column {self._name!r} holds numbers in some files and categories in others: "
                "make them the same"
            )
        if isinstance(values, Categories) or numbers:
            found = as_categories(values)
            occurring = [found.levels[code] for code in np.unique(found.codes)]
            self._occurring.update(occurring)
            self._levels.update(dict.fromkeys(found.levels if found.ordered else occurring))

    def values(self) -> Values:
        """Each level that occurs once; of numbers that nothing counts none."""
        levels = self._sorted()
        if isinstance(self._first, Numbers):
            return Numbers(np.array(levels, dtype=np.float64), self._first.whole)
        places = [place for place, level in enumerate(levels) if level in self._occurring]
        times = "" if self._first is None else self._first.times
        return Categories(np.array(places, dtype=np.intp), tuple(levels), times=times)

    def order(self) -> Mapping[Any, int]:
        return {level: place for place, level in enumerate(self._sorted())}

    def _sorted(self) -> list[Any]:
        ordered = isinstance(self._first, Categories) and self._first.ordered
        return list(self._levels) if ordered else sorted(self._levels)


def _transforms(nodes: Sequence[Node]) -> dict[str, Call]:
    """By how they are written, inner ones before those that they are in."""
    return {show(call): call for node in nodes for call in transforms_in(node)}


def _present(columns: dict[str, Values], gaps: Missing | None) -> dict[str, Values]:
    return columns if gaps is None else take(columns, ~gaps.rows)


def _rank(level: Level, orders: Sequence[Mapping[Any, int]]) -> tuple[int, ...]:
    return tuple(order[value] for order, value in zip(orders, level, strict=True))


def _joined(gaps: Sequence[_Gap]) -> Missing | None:
    """Missing values of all batches as of one table."""
    found = [gap.missing for gap in gaps if gap.missing is not None]
    if not found:
        return None
    names = dict.fromkeys(name for one in found for name in one.counts)
    counts = {name: sum(one.counts.get(name, 0) for one in found) for name in names}
    rows = [np.zeros(n, dtype=bool) if one is None else one.rows for one, n in gaps]
    return Missing(np.concatenate(rows), counts, found[0].first)
