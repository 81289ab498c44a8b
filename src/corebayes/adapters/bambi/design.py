"""Bambi's design as one of our own, where both make the same columns of the same table.

With it a coreset of a Bambi model computes its columns from a table again: in `predict`, `certify`,
`report` and after `load`, without Bambi and its model. Both are computed and compared, so a
function that means something else there, or that only the user has, leaves none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from corebayes.formula.columns import complete
from corebayes.formula.design import Design, look
from corebayes.types import Array


def design_of(own: Any, X: Array, y: Array, names: Sequence[str]) -> dict[str, Any] | None:
    """What `Design.to_data` gives of columns of these names, or None. Cost: the columns again."""
    for formula in _written(own):
        try:
            design = _ordered(formula, own, X, y, names)
        except (ValueError, TypeError, KeyError):
            continue
        if design is not None:
            return replace(design, formula=own.formula.main).to_data()
    return None


def _written(own: Any) -> Iterator[str]:
    """Bambi's formula as it is, and with what is called something else here."""
    formula, response = str(own.formula.main), own.response_component.term
    # Its scale divides by the deviation of the rows themselves, and {x} is I(x).
    plain = re.sub(r"\{([^{}]*)\}", r"I(\1)", formula)
    every = [formula, plain, re.sub(r"\bscale\(", "standardize(", plain)]
    yield from dict.fromkeys(every)
    if response.success is not None:
        # A target of two levels is the first of them, if none is named.
        _, _, right = every[-1].partition("~")
        yield f"{response.name}[{str(response.success)!r}] ~ {right}"


def _ordered(formula: str, own: Any, X: Array, y: Array, names: Sequence[str]) -> Design | None:
    """The design with Bambi's columns in Bambi's order."""
    design, read = look(formula, own.data, missing="drop" if own.dropna else "refuse")
    columns = complete(read, drops=design.drops)[0]
    made = design.apply(columns)
    if not _same(design.target_of(columns)[:, None], y[:, None]).all() or len(made) != len(X):
        return None
    order: list[tuple[str, int]] = []
    taken: set[int] = set()
    for name, column in zip(names, X.T, strict=True):
        equal = np.flatnonzero(_same(made, column[:, None]))
        if equal.size == 0:
            return None
        # A column that both all rows and the groups have a slope of is there twice.
        place = int(next((place for place in equal if place not in taken), equal[0]))
        order.append((name, place))
        taken.add(place)
    grouped = {design.made_names.index(name) for name in design.group_names}
    return replace(design, order=tuple(order)) if grouped <= taken else None


def _same(ours: Array, theirs: Array) -> Any:
    """Which columns are the same but for round-off."""
    scale = np.abs(theirs).max(initial=0.0)
    return np.all(np.abs(ours - theirs) <= 1e-9 * scale, axis=0)
