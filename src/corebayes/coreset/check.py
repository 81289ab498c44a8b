"""Whether a coreset is one that `build` could have made: asked wherever one comes in.

Files are written by strangers and coresets edited by hand, `replace(coreset, weights=...)`, so
loading, saving, certifying, sampling, reporting and exporting all ask here first.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from corebayes.coreset.missed import check_missed
from corebayes.coreset.sources import check_sources
from corebayes.models.families.glm import GLM
from corebayes.models.gaussian import GaussianMean
from corebayes.types import Block, WeightedPoints

# Beyond this, float64 cannot count rows one by one.
MAX_ROWS = 2**53
MAX_NAME = 1000
MAX_COUNT = float(np.finfo(float).max)


def check_parts(coreset: Any, *, as_built: bool = False) -> None:
    """ValueError or TypeError, in one sentence, for what no construction returns.

    Without rows it stands for the prior and a row of weight zero says nothing, but no construction
    returns either, so what is `as_built` has neither. Cost: one look at its rows.
    """
    check_words(coreset)
    _check_points(coreset)
    if as_built and coreset.size == 0:
        raise ValueError("the coreset has no rows")
    if as_built and not np.all(coreset.weights):
        row = coreset.indices[int(np.argmin(coreset.weights))]
        raise ValueError(f"row {row} has the weight 0.0; weights are positive")
    _check_rows(coreset)
    _check_totals(coreset)
    _check_model(coreset)
    check_sources(coreset)
    _check_reserve(coreset, as_built=as_built)


def _check_reserve(coreset: Any, *, as_built: bool) -> None:
    """The reserve is a coreset of the same rows, and what it misses a function of their
    parameters."""
    reserve = coreset.reserve
    check_missed(coreset.missed, coreset.model.dim)
    if reserve is None:
        return
    if not isinstance(reserve, WeightedPoints):
        raise TypeError("the coreset's reserve must be weighted points, or None")
    try:
        check_parts(coreset.finest, as_built=as_built)
    except (TypeError, ValueError) as error:
        raise type(error)(f"in its reserve: {error}") from error


def has_learned_rows(coreset: Any) -> bool:
    """Whether its rows are none of the data's, and so cannot be compared with them."""
    return coreset.size > 0 and bool(np.min(coreset.indices) < 0)


def _is_array(values: Any) -> bool:
    return isinstance(values, np.ndarray)


def check_words(coreset: Any) -> None:
    """Refuse provenance, trace and reason of other kinds than a build gives them."""
    said: tuple[tuple[str, Any, Any, str], ...] = (
        ("provenance", coreset.provenance, Mapping, "a mapping"),
        ("trace", coreset.trace, (tuple, list), "a sequence of mappings"),
        ("reason", coreset.reason, str, "a text"),
    )
    for name, value, kind, what in said:
        if not isinstance(value, kind):
            raise TypeError(f"the coreset's {name} must be {what}, got {type(value).__name__}")
    names: Any = coreset.provenance.get("column_names") or ()
    target: Any = coreset.provenance.get("target_name") or "y"
    if not isinstance(names, tuple | list) or not all(
        isinstance(name, str) for name in (*cast("tuple[Any, ...]", names), target)
    ):
        raise TypeError("column_names and target_name of the coreset's provenance must be texts")
    left_out: Any = coreset.provenance.get("left_out", 0)
    if not isinstance(left_out, int) or not 0 <= left_out < max(coreset.num_rows, 1):
        raise ValueError("left_out of the coreset's provenance must be a number of its rows")
    for place, entry in enumerate(cast("tuple[Any, ...]", coreset.trace)):
        if not isinstance(entry, Mapping):
            raise TypeError(f"entry {place} of the coreset's trace must be a mapping")


def _check_points(coreset: Any) -> None:
    indices, weights = coreset.indices, coreset.weights
    for name, values, kinds in (("indices", indices, "iu"), ("weights", weights, "iuf")):
        if not _is_array(values) or values.ndim != 1:
            raise TypeError(f"the coreset's {name} must be an array with a number for each row")
        if values.dtype.kind not in kinds:
            raise TypeError(f"the coreset's {name} have dtype {values.dtype}")
    if indices.size != weights.size:
        raise ValueError(f"the coreset has {indices.size:,} row numbers, {weights.size:,} weights")
    bad = np.flatnonzero(~((weights >= 0.0) & np.isfinite(weights)))
    if bad.size:
        raise ValueError(
            f"row {indices[bad[0]]} has the weight {weights[bad[0]]}; weights are finite and ≥ 0"
        )
    num_rows: Any = coreset.num_rows
    if isinstance(num_rows, bool) or not isinstance(num_rows, Integral):
        raise TypeError(f"num_rows must be a whole number, got {type(num_rows).__name__}")
    if not indices.size <= num_rows <= MAX_ROWS:
        raise ValueError(
            f"num_rows must be between the {indices.size:,} rows of the coreset and 2^53, "
            f"got {num_rows!s:.20}"
        )
    _check_row_numbers(coreset, indices)


def _check_row_numbers(coreset: Any, indices: NDArray[Any]) -> None:
    if np.max(indices, initial=-1) >= coreset.num_rows:
        raise ValueError(f"row {indices.max()} is none of the rows 0 to {coreset.num_rows - 1}")
    ordered = np.sort(indices)
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    if twice.size:
        raise ValueError(f"row {ordered[twice[0]]} is in the coreset more than once")
    if not has_learned_rows(coreset):
        return
    # Learned rows cannot be compared with the data, so only what says it learned them has any.
    said = coreset.provenance
    if said.get("learned") is not True and not str(said.get("method")).startswith("PseudoCoreset("):
        raise ValueError(
            f"row {ordered[0]} has a negative number, which only learned rows have, and the "
            "coreset's provenance does not say that its rows were learned"
        )
    if ordered[-1] >= 0:
        raise ValueError(
            f"row {ordered[-1]} is among learned rows, which have the numbers −1, −2, …"
        )


def _check_rows(coreset: Any) -> None:
    rows: Any = coreset.rows
    if not isinstance(rows, Block) or not rows.fields:
        raise TypeError("the coreset's rows must be a Block with at least one field")
    named: dict[str, Any] = {**rows.fields}
    if rows.counts is not None:
        named["counts"] = rows.counts
    for name, values in named.items():
        if not _is_array(values) or values.dtype.kind not in "biuf":
            raise TypeError(f"field {name!r} of the coreset's rows must be an array of numbers")
        if values.shape[:1] != coreset.indices.shape:
            raise ValueError(
                f"field {name!r} of the coreset's rows has the shape {values.shape}, and there are "
                f"{coreset.size:,} row numbers"
            )
        if values.size < coreset.size:
            raise ValueError(f"field {name!r} of the coreset's rows has no columns")
        bad = np.argwhere(~np.isfinite(values))
        if bad.size:
            row = coreset.indices[bad[0, 0]]
            raise ValueError(f"row {row} has {values[tuple(bad[0])]} in its field {name!r}")
    if rows.counts is not None:
        bad = np.flatnonzero(rows.counts < 0.0)
        if rows.counts.ndim != 1 or bad.size:
            raise ValueError("the counts of the coreset's rows must be one number ≥ 0 for each row")


def _check_totals(coreset: Any) -> None:
    total: Any = coreset.total_count
    number = not isinstance(total, bool) and isinstance(total, Real)
    if not number or not 0.0 < cast(Any, total) <= MAX_COUNT:
        raise ValueError(f"total_count must be a positive, finite number, got {total!r:.60}")
    if coreset.size == 0 or has_learned_rows(coreset):
        return
    if coreset.rows.counts is None:
        if total != coreset.num_rows:
            raise ValueError(
                f"total_count is {total:,g}, but without counts each of the "
                f"{coreset.num_rows:,} rows counts once"
            )
    # Sums of many counts differ in their last digits.
    elif coreset.rows.counts.sum() > (1.0 + 1e-9) * total:
        raise ValueError(
            f"total_count is {total:,g}, but the coreset's rows alone count "
            f"{coreset.rows.counts.sum():,g} times"
        )


def _check_model(coreset: Any) -> None:
    """What the built-in models ask of their names, columns and targets."""
    model, rows = coreset.model, coreset.rows
    if not isinstance(model, GLM | GaussianMean):
        return
    kind, names = type(model).__name__, cast("tuple[Any, ...]", model.parameter_names)
    if not all(isinstance(name, str) and len(name) <= MAX_NAME for name in names):
        raise ValueError(f"parameters have names of at most {MAX_NAME:,} characters")
    if len(set(names)) < len(names):
        raise ValueError(f"of the {len(names):,} parameters only {len(set(names)):,} names differ")
    regression = isinstance(model, GLM)
    wanted = {"X": 2, "y": 1} if regression else {"X": 2}
    # Beside these a row may have numbers that the model passes over: its fold, its unit.
    shapes = {n: values.ndim for n, values in rows.fields.items() if n in wanted or values.ndim > 1}
    if shapes != wanted:
        raise ValueError(
            f"the rows of a {kind} have {' and '.join(wanted)}, and beside them single numbers only"
        )
    intercept = regression and bool(model.intercept)
    if rows.X.shape[1] + intercept != model.dim:
        raise ValueError(
            f"the {kind} has {model.dim:,} parameters, but the rows have {rows.X.shape[1]:,} "
            f"columns{' beside the intercept' if intercept else ''}"
        )
    if regression:
        bad, rule = model.check_target(rows.y, np.inf)
        wrong = np.flatnonzero(bad & (rows.multiplicity() > 0.0))
        if wrong.size:
            row, target = coreset.indices[wrong[0]], float(rows.y[wrong[0]])
            raise ValueError(f"row {row} has the target {target!r}: {rule}")
