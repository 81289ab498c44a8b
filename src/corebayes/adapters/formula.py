"""A built-in regression from a formula and a data frame.

Wilkinson's notation: y ~ x1 + x2, x1:x2, x1*x2, C(g) for categories, log(x), I(x1 * x2),
poly(x, 3), splines, and an intercept unless it says −1. The columns are called as formulaic and
patsy call them, and so are the coefficients in the posterior. Nothing in a formula is evaluated as
Python: see `corebayes.formula`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from corebayes.formula.rows import design_rows
from corebayes.models import (
    LinearRegression,
    LogisticRegression,
    NegativeBinomialRegression,
    Normal,
    PoissonRegression,
    StudentTRegression,
)
from corebayes.models.glm import GLM
from corebayes.rows import Rows

FAMILIES: dict[str, Callable[..., GLM]] = {
    "logistic": LogisticRegression,
    "poisson": PoissonRegression,
    "linear": LinearRegression,
    "student-t": StudentTRegression,
    "negative-binomial": NegativeBinomialRegression,
}


def from_formula(
    formula: str,
    frame: Any,
    *,
    family: str | GLM = "logistic",
    prior: Normal | None = None,
    counts: str | None = None,
    **options: Any,
) -> tuple[GLM, Rows]:
    """The pair (model, data) for `build` and everything after it, from a formula and a frame.

    `frame` is a pandas or polars frame or an Arrow table; `family` a name (logistic, poisson,
    linear, student-t, negative-binomial; `options` are the model's arguments, such as
    `link="log"` or `noise_sd=0.5`) or a model of one's own. `counts` names a column that says how
    often a row counts. The intercept is a column of the design like any other. A missing
    value is an error that names its row. `certify(coreset, frame)` finds its columns again.
    Cost: one design matrix of N·d numbers in memory.
    """
    return _model(family, prior, options), design_rows(formula, frame, counts=counts)


def _model(family: str | GLM, prior: Normal | None, options: dict[str, Any]) -> GLM:
    if not isinstance(family, str):
        if prior is not None or options:
            given = ", ".join([*options, *(["prior"] if prior else [])])
            raise ValueError(f"{given}: give these to the model {family!r} itself")
        if family.intercept:
            raise ValueError(
                "the formula has the intercept (write -1 to leave it out): pass a model "
                "without intercept=True"
            )
        return family
    if family not in FAMILIES:
        near = difflib.get_close_matches(family, FAMILIES, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"there is no family {family!r}; {hint}There are {', '.join(FAMILIES)}")
    return FAMILIES[family](**options, **({} if prior is None else {"prior": prior}))
