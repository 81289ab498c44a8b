"""Columns that stand beside the predictor, named by options, written into the formula."""

from __future__ import annotations

from collections.abc import Mapping

ROLES = ("trials", "event", "offset", "exposure")


def with_beside(formula: str, columns: Mapping[str, str | None]) -> str:
    """k ~ x with trials="n" is p(k, n) ~ x; with event="seen" Surv(k, seen) ~ x; with an offset
    o or an exposure e, k ~ x + offset(o) or offset(log(e))."""
    named = {role: f"`{column}`" for role, column in columns.items() if column is not None}
    left, tilde, right = formula.partition("~")
    for role, column in named.items():
        match role:
            case "trials":
                left = f"p({left.strip()}, {column}) "
            case "event":
                left = f"Surv({left.strip()}, {column}) "
            case "offset":
                right = f"{right.rstrip()} + offset({column})"
            case _:
                right = f"{right.rstrip()} + offset(log({column}))"
    return left + tilde + right
