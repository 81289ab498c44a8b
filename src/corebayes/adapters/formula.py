"""A built-in regression from a formula and a data frame.

The formula is formulaic's (Wilkinson's notation): y ~ x1 + x2, x1:x2, x1*x2, C(g) for categories,
log(x), poly(x, 3), and an intercept unless it says −1. The columns of the design keep the
names formulaic gives them, which become the names of the coefficients in the posterior.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from corebayes.data.columns import find
from corebayes.models import (
    LinearRegression,
    LogisticRegression,
    NegativeBinomialRegression,
    Normal,
    PoissonRegression,
    StudentTRegression,
)
from corebayes.models.glm import GLM
from corebayes.rows import Rows, open_rows

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
    value is an error that names its row. Cost: one design matrix of N·d numbers in memory.
    """
    return _model(family, prior, options), design_rows(formula, frame, counts=counts)


def design_rows(formula: str, frame: Any, *, counts: str | None = None) -> Rows:
    """The design and the target that a formula makes of a frame, checked."""
    formulaic = import_formulaic()
    table = _pandas(frame)
    parsed = formulaic.Formula(formula)
    if not hasattr(parsed, "lhs"):
        raise ValueError(f"the formula {formula!r} has no left side: write it as 'y ~ x1 + x2'")
    _check_variables(parsed, table, formula)
    design = parsed.rhs.get_model_matrix(table, na_action="ignore")
    repeats = None
    if counts is not None:
        repeats = table.iloc[:, find(counts, tuple(map(str, table.columns)), "counts")]
    pair = (design, _target(parsed, table, formula))
    return open_rows(pair, counts=repeats).check()


def import_formulaic() -> Any:
    """formulaic, or an error that says what to install."""
    try:
        return importlib.import_module("formulaic")
    except ImportError as error:
        error.add_note('formulas need formulaic: pip install "corebayes[formula]"')
        raise


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


def _pandas(frame: Any) -> Any:
    """The frame as pandas has it, with rows numbered from 0."""
    if hasattr(frame, "iloc"):
        return frame.reset_index(drop=True)
    if hasattr(frame, "to_pandas"):
        return frame.to_pandas()
    raise TypeError(
        f"a formula needs columns with names: pass a pandas or polars frame or an Arrow table, "
        f"not {type(frame).__name__}"
    )


def _check_variables(parsed: Any, table: Any, formula: str) -> None:
    """Every column there, and no value missing: else rows would be dropped without a word."""
    names = tuple(map(str, table.columns))
    for variable in sorted(map(str, parsed.required_variables)):
        position = find(variable, names, f"formula {formula!r}")
        missing = np.flatnonzero(table.iloc[:, position].isna().to_numpy())
        if missing.size:
            raise ValueError(
                f"row {missing[0]}, column {variable!r} is missing; so are {missing.size:,} of "
                f"{len(table):,} values there (rows are numbered from 0). Fill or remove these rows"
            )


def _target(parsed: Any, table: Any, formula: str) -> Any:
    """The left side as one column of numbers, under its name; True counts as 1."""
    variables = set(map(str, parsed.lhs.required_variables))
    truths = {name: "int8" for name in variables if table[name].dtype == bool}
    matrix = parsed.lhs.get_model_matrix(table.astype(truths), na_action="ignore")
    columns = [name for name in matrix.columns if str(name) != "Intercept"]
    if len(columns) != 1:
        raise ValueError(
            f"the left side of the formula {formula!r} gives the columns {list(map(str, columns))}:"
            " it must be one column of numbers"
        )
    return matrix[columns[0]]
