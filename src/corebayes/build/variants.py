"""Models that one coreset is to serve beside its own: `build(..., models=[…])`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any, cast

from corebayes.constructions import AnnealedSparseVI, Construction, GroupedPursuit
from corebayes.data.narrowed import Narrowed, Narrowing, narrowing
from corebayes.models.likelihood import likelihood_of
from corebayes.problem import Problem
from corebayes.tangent.stacked import ModelView, Stacked
from corebayes.types import Model

# Where the provenance says which likelihoods a coreset serves beside that of its own model.
SERVED = "likelihoods"


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A model of the same rows: another prior, fewer columns, or without some of the rows.

    `features` are names of columns (positions where they have no names). `leave_out={"fold": 3}`
    leaves out the rows whose field `fold` is 3, for cross-validation; data that is a mapping of
    names to arrays may have such fields beside X and y.
    """

    model: Model | None = None
    """None: the one that the coreset is built for."""
    features: Sequence[Any] | None = None
    leave_out: Mapping[str, float] = field(default_factory=dict[str, float])


def serving(
    method: Construction, model: Model, problem: Problem, models: Any, size: int | None
) -> Construction:
    """The method in the stacked tangent spaces of all models, which are bound to the rows."""
    if is_dataclass(models) or not isinstance(models, Sequence):
        raise TypeError("models must be a list of models or of Variant(model, features, leave_out)")
    if not models:
        raise ValueError("models is empty: give models to serve beside the first, or leave it out")
    if isinstance(method, GroupedPursuit):
        # It knows one posterior only.
        method = AnnealedSparseVI()
    rows = problem.data
    seen = [ModelView(problem.model, Narrowing(), problem)]
    for one in cast("Sequence[Any]", models):
        variant = one if isinstance(one, Variant) else Variant(model=one)
        shown = narrowing(rows.template, rows.column_names, variant.features, variant.leave_out)
        theirs = rows
        if not shown.is_whole:
            table: Any = Narrowed(table=rows.table, narrowing=shown)
            theirs = rows.showing(table)
        own = (variant.model or model).bind(theirs)
        seen.append(ModelView(own, shown, Problem(own, theirs)))
    method.check_open_geometry("serve several models")
    return replace(cast(Any, method), geometry=Stacked(models=tuple(seen), size=size))


def served(method: Construction) -> dict[str, list[str]]:
    """What the provenance says of the models that a method of `serving` has seen."""
    models: Sequence[ModelView] = cast(Any, method).geometry.models
    names = (likelihood_of(view.model) for view in models)
    return {SERVED: sorted({name for name in names if name is not None})}
