"""Shards that are built for the posterior of all of them: `build(..., around=pilot)`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from corebayes.checkpoint import points_digest
from corebayes.constructions import AnnealedSparseVI
from corebayes.constructions.construction import Construction
from corebayes.coreset import Coreset, check_coreset
from corebayes.data.joined import names_difference, table_difference
from corebayes.data.units import COUNT
from corebayes.models.units import Units
from corebayes.problem import Problem
from corebayes.rows import Rows
from corebayes.tangent.default import default_geometry
from corebayes.tangent.pinned import pinned
from corebayes.types import Model

# Nats that may be left of rows which others are added to: what is missed adds up over all of them.
FINE = 1e-12


def check_around(around: Any, **others: Any) -> None:
    """Whether `around` is a coreset; `others` must not be given beside it."""
    if not isinstance(around, Coreset):
        raise TypeError(
            f"around must be a coreset, a rough one of all shards, got {type(around).__name__}"
        )
    check_coreset(around)
    for name, value in others.items():
        if value is not None:
            raise ValueError(
                f"{name} goes with a coreset of its own posterior, and around asks for one that is "
                "to be merged: leave one of them out"
            )


def with_priors_of(model: Any, built: Any) -> Any:
    """The model to bind: default priors, which are on the scale of some rows, stay those of the
    model that was built for."""
    built = built.model if isinstance(built, Units) else built
    if type(model) is not type(built) or getattr(model, "bound", 0) is not None:
        return model
    ours, theirs = (getattr(one, "family", one) for one in (model, built))
    default = getattr(ours, "prior", 0) is None is theirs.prior
    return replace(model, bound=built.bound) if default else model


def check_columns(around: Coreset, rows: Rows, model: Model) -> None:
    """The pilot must have the columns and the parameters of these rows."""
    ours = ColumnsOf(around)
    if COUNT in rows.template.fields and COUNT in ours.template.fields:
        # Units of other lengths go together.
        difference = names_difference(ours.column_names, rows.column_names)
    else:
        difference = table_difference(ours, rows)
    names = around.model.parameter_names, model.parameter_names
    difference = difference or names_difference(*names)
    if difference is not None:
        raise ValueError(f"around does not go with the rows: {difference}")


def around_pilot(
    method: Construction, around: Coreset, problem: Problem, size: int | None
) -> Construction:
    """The method in the tangent space at the pilot's posterior. Cost: a space of its rows."""
    method.check_open_geometry("build around another posterior")
    there = replace(problem, model=around.model)
    inner = default_geometry(there, size, exact_draws=True)
    geometry = pinned(inner, there, around.finest.points, points_digest(around))
    finer: dict[str, float] = {"tolerance": FINE} if isinstance(method, AnnealedSparseVI) else {}
    return replace(cast(Any, method), geometry=geometry, **finer)


class ColumnsOf:
    """A coreset as far as its columns go."""

    def __init__(self, coreset: Coreset) -> None:
        self.template = coreset.rows.take(slice(0, 0))
        self.column_names = tuple(coreset.provenance.get("column_names") or ())
