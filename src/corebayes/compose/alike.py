"""Whether coresets speak of the same thing: the same model, the same columns, the same coding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from corebayes.build.around import ColumnsOf
from corebayes.build.variants import SERVED
from corebayes.coreset import Coreset
from corebayes.data.joined import names_difference, table_difference
from corebayes.data.units import COUNT, UnitTable, padded
from corebayes.models.likelihood import likelihood_of
from corebayes.models.priors.settled import without_defaults
from corebayes.rows import Rows, open_rows
from corebayes.types import Block, Model

# Draws at which the values of models without a description are compared.
DRAWS_TRIED = 3


def check_alike(coresets: Sequence[Coreset], labels: Sequence[str]) -> None:
    """An error that names the first thing in which a coreset differs from the first one."""
    first = coresets[0]
    for label, other in zip(labels[1:], coresets[1:], strict=True):
        difference = (
            table_difference(ColumnsOf(first), ColumnsOf(other))
            or _target_difference(first, other)
            or model_difference(first.model, other.model, first.rows.take(slice(0, 5)))
            or _coding_difference(first, other)
        )
        if difference is not None:
            raise ValueError(f"{labels[0]} and {label} cannot be merged: {difference}")


def check_new_rows(coreset: Coreset, rows: Rows) -> None:
    """The new rows must have the columns of the coreset."""
    difference = table_difference(ColumnsOf(coreset), rows)
    if difference is not None:
        raise ValueError(
            f"the new rows do not go with the coreset: {difference}; name the same target and "
            "features, in the same order"
        )


def _target_difference(first: Coreset, second: Coreset) -> str | None:
    """Arrays have no names; of tables that have, two targets may be two different questions."""
    pairs = [
        (c.provenance.get("column_names"), c.provenance.get("target_name")) for c in (first, second)
    ]
    (columns, ours), (others, theirs) = pairs
    if not (columns and others and ours and theirs) or ours == theirs:
        return None
    return f"the target is {ours!r} in one and {theirs!r} in the other"


def model_difference(first: Model, second: Model, rows: Block) -> str | None:
    """In what two models differ, in words; None when they are the same.

    Built-in models say what they were made with. Functions cannot be compared, so other models
    count by what they are called and by their values at a few draws and rows.
    """
    kinds = type(first).__name__, type(second).__name__
    if kinds[0] != kinds[1]:
        return f"one is for a {kinds[0]}, the other for a {kinds[1]}"
    names = names_difference(first.parameter_names, second.parameter_names)
    if names is not None:
        return f"parameters: {names.replace('column', 'parameter')}"
    config: Any = getattr(first, "config", None)
    if config is not None:
        return _config_difference(config(), second.config())  # pyright: ignore
    draws = 0.1 * np.random.default_rng(0).standard_normal((DRAWS_TRIED, first.dim))
    with np.errstate(all="ignore"):
        for what, ours, theirs in (
            ("log-likelihood", first.potentials(draws, rows), second.potentials(draws, rows)),
            ("prior", first.log_prior(draws), second.log_prior(draws)),
        ):
            if not np.allclose(ours, theirs, rtol=1e-9, equal_nan=True):
                return f"the {what} of their {kinds[0]} has other values"
    return None


def check_likelihood(coreset: Coreset, model: Model) -> None:
    """A model of another likelihood is refused: its Σ f was matched nowhere.

    A coreset that was built with `models=[…]` serves the likelihoods of all of them.
    """
    built, asked = likelihood_of(coreset.model), likelihood_of(model)
    others: Any = coreset.provenance.get(SERVED)
    served = cast("list[Any]", others) if isinstance(others, list) else []
    if built is None or asked is None or asked in (built, *served):
        return
    raise ValueError(
        f"the coreset was built for the likelihood of a {built}, and the new model is a {asked}: "
        "its rows and weights say nothing of that. Another prior or fewer columns go with the "
        "same likelihood; build for the other one, or for both with models=[…]"
    )


def _config_difference(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str | None:
    for name, value in ours.items():
        if name in ("priors", "settled"):
            # Default priors are on the scale of each one's own rows: those of the first are kept.
            value, other = without_defaults(value), without_defaults(theirs[name])
        elif name == "terms":
            value, other = _without_default_scales(value), _without_default_scales(theirs[name])
        else:
            other = theirs[name]
        if value != other:
            return f"{name} is {value!r:.200} in one and {other!r:.200} in the other"
    return None


def _without_default_scales(terms: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Priors of group terms that nobody gave are on the scale of each one's own rows, too."""
    return [{**term, "scale": None} if term.get("by_default") else dict(term) for term in terms]


def _coding_difference(first: Coreset, second: Coreset) -> str | None:
    """Formulas must have coded their columns alike: the same categories, knots and centres."""
    ours, theirs = (c.provenance.get("design") for c in (first, second))
    if ours == theirs:
        return None
    return "they were built with formulas that code the columns differently"


def with_equal_units(coresets: Sequence[Coreset], longest: int = 0) -> tuple[Coreset, ...]:
    """Coresets of units with as many places for each unit, as all of them and `longest` need."""
    lengths = [c.rows[COUNT].shape[1] if COUNT in c.rows.fields else 0 for c in coresets]
    if not any(lengths):
        return tuple(coresets)
    most = max(longest, *lengths)
    return tuple(
        _with_places(coreset, most) if 0 < length < most else coreset
        for coreset, length in zip(coresets, lengths, strict=True)
    )


def _with_places(coreset: Coreset, length: int) -> Coreset:
    def longer(rows: Block) -> Block:
        return Block(padded(rows.fields, length), rows.counts)

    reserve = coreset.reserve
    finer = None if reserve is None else reserve._replace(rows=longer(reserve.rows))
    return replace(coreset, rows=longer(coreset.rows), reserve=finer)


def units_as_long(rows: Rows, coreset: Coreset) -> Rows:
    """Rows of units with as many places for each unit as the coreset has."""
    table: Any = rows.table
    if not isinstance(table, UnitTable) or COUNT not in coreset.rows.fields:
        return rows
    length = max(table.length, coreset.rows[COUNT].shape[1])
    return open_rows(replace(table, length=length), executor=rows.executor)
