"""Every family as a model of rows with groups, offsets and whatever else its rows have."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

import corebayes as cb
from corebayes.rows import open_rows
from tests.models.predictor_cases import CASES

NAMES = [case.name for case in CASES]
ROLES = {"trials": "n", "event": "seen", "exposure": "time"}


def columns_of(family: Any) -> dict[str, str]:
    """All columns of a row that the family may have, and an offset."""
    known = {one.name for one in fields(family)}
    found = {role: column for role, column in ROLES.items() if role in known}
    if getattr(family, "link", None) == "softplus":
        found.pop("exposure")
    return {**found, "offset": "shift"}


def table(name: str, num_rows: int = 240, seed: int = 3, beside: bool = True) -> Any:
    """A frame with x, g and what else the family needs, and its targets."""
    import pandas

    case = next(case for case in CASES if case.name == name)
    rng = np.random.default_rng(seed)
    x, g = rng.normal(0.3, 0.8, num_rows), np.minimum(rng.geometric(0.4, num_rows), 4) - 1
    effects = 0.3 * rng.normal(size=4)
    row = {
        "trials": rng.integers(1, 9, num_rows) * 1.0,
        "event": (rng.uniform(size=num_rows) < 0.7) * 1.0,
        "exposure": rng.uniform(0.5, 2.0, num_rows),
    }
    shift = 0.4 * rng.normal(size=num_rows)
    linear = len(case.family.linear)
    eta = 0.5 * x + effects[g] + (shift if beside else 0.0)
    at = [value + eta / (1 + k) for k, value in enumerate(case.at[:linear])]
    at += [np.full(num_rows, value) for value in case.at[linear:]]
    kept = columns_of(case.family) if beside else {}
    y = case.family.draw(rng, at, row if beside else {})
    others = {kept[role]: values for role, values in row.items() if role in kept}
    if beside:
        others["shift"] = shift
    return pandas.DataFrame({"one": 1.0, "x": x, "g": g * 1.0, **others, "y": y})


def model_of(name: str, groups: bool = True, beside: bool = True) -> Any:
    case = next(case for case in CASES if case.name == name)
    family = case.family
    blank = {role: None for role in ROLES if hasattr(family, role)}
    family = replace(family, **(blank | (columns_of(family) if beside else {})))
    learned = {one.name: one.prior for one in family.learnable}
    terms = [cb.GroupTerm(group="g", scale=cb.HalfNormal(0.7))] if groups else []
    apart = () if groups else ("g",)
    if "ordinal" in name:
        apart = ("one", *apart)
    return cb.MixedRegression(family=family, terms=terms, learned=learned, slopes_only=apart)


def bound(name: str, **options: Any) -> tuple[Any, Any]:
    beside = options.get("beside", True)
    rows = open_rows(table(name, beside=beside), target="y")
    return model_of(name, **options).bind(rows), rows
