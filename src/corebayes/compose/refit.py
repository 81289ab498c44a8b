"""`refit`: the posterior of another model from a coreset that was built for one.

A coreset matches Σ_n c_n f_n as a function of θ around the posterior that it was built for, so any
prior may stand beside it: the residual r = Σ c f − Σ w f is the same, and

    KL(π'_w ‖ π') = log E e^{r − E r}   under the new π'_w.

A model with fewer columns is the same function on the hyperplane where the others are zero. Both
hold as long as the new posterior lies where the old one did; one pass over the rows measures it,
and without rows only the distance between the two posteriors can be told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from corebayes.build.around import with_priors_of
from corebayes.build.asked import check_model
from corebayes.certify.certificate import Certificate
from corebayes.certify.measure import certify, check_same_data, measure
from corebayes.compose.alike import check_likelihood
from corebayes.coreset import Coreset, check_coreset
from corebayes.coreset.advice import REFITTED
from corebayes.data.arrays import ArrayData
from corebayes.data.narrowed import Narrowed, Narrowing, narrowing
from corebayes.formula.rows import as_built
from corebayes.models.units import Units, as_units, flat
from corebayes.rows import Rows, open_rows
from corebayes.sample import sample
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.posterior import Posterior
from corebayes.types import Block, Model

# Standard deviations of the old posterior, as a root mean square, within which a coreset that was
# matched there can be expected to hold.
NEAR = 1.0


@dataclass(frozen=True, kw_only=True)
class Refit:
    """What `refit` gives: draws of the new posterior, and whether the coreset still stands."""

    coreset: Coreset
    """The weighted rows under the new model."""
    idata: Any = field(repr=False)
    """ArviZ data, as `sample` returns it."""
    certificate: Certificate | None
    """Measured in one pass when there were rows."""
    distance: float | None
    """How far the new posterior lies from the one the coreset was built for, in standard deviations
    of that one, as a root mean square over its parameters; None when they cannot be compared."""
    verdict: str

    @property
    def posterior(self) -> Any:
        return self.idata.posterior

    def __str__(self) -> str:
        return self.verdict if self.certificate is None else str(self.certificate)


def refit(
    coreset: Coreset,
    model: Model | None = None,
    data: Any = None,
    *,
    features: Sequence[Any] | None = None,
    leave_out: Mapping[str, float] | None = None,
    draws: int = 1000,
    chains: int = 4,
    tune: int = 500,
    seed: int = 0,
    tol: float = 0.02,
    target: str | None = None,
    counts: Any = None,
    on_bad: str = "raise",
    memory: str | int | None = None,
    executor: Any = None,
) -> Refit:
    """Draws of another model's posterior from the same weighted rows, and whether these still do.

    `model` has another prior, or `features` names fewer columns (or both; without a model the
    coreset's own is kept, as it was made); `leave_out={"fold": 3}` leaves the rows out whose field
    has that value. With `data`, the rows the coreset was built from, one pass on fresh draws
    certifies the new posterior (`draws`, `tol`, `target`, `counts`, `on_bad`, `memory` and
    `executor` as in `certify`). Without, there is a caution: how far it lies from the old one.
    A model of another likelihood (another family, link or offset) is refused.
    Build for the largest model that will be asked for: columns can be left out afterwards, never
    added.
    """
    check_coreset(coreset)
    if model is not None:
        check_model(model)
        check_likelihood(coreset, model)
    names = tuple(coreset.provenance.get("column_names") or ())
    shown = narrowing(coreset.rows, names, features, leave_out)
    rows = None
    if data is not None:
        columns = {"target": target, "features": None, "counts": counts, "on_bad": on_bad}
        rows = as_built(coreset, data, memory=memory, executor=executor, **columns)
        check_same_data(coreset, rows)
        if not shown.is_whole:
            table: Any = Narrowed(table=rows.table, narrowing=shown)
            rows = rows.showing(table)
    changed = _changed(coreset, model, shown, rows)
    idata = sample(changed, draws=draws, chains=chains, tune=tune, seed=seed)
    distance = _distance(coreset, changed, shown)
    if rows is None:
        verdict = _caution(coreset, distance)
        certificate = None
    else:
        certificate = measure(changed, rows.with_sampling(), draws=draws, seed=seed + 1, tol=tol)
        verdict = certificate.verdict
    return Refit(
        coreset=changed, idata=idata, certificate=certificate, distance=distance, verdict=verdict
    )


def changed_coreset(
    coreset: Coreset,
    model: Model | None = None,
    *,
    features: Sequence[Any] | None = None,
    leave_out: Mapping[str, float] | None = None,
) -> Coreset:
    """The same weighted rows under another model, not sampled and not judged; see `refit`."""
    names = tuple(coreset.provenance.get("column_names") or ())
    return _changed(coreset, model, narrowing(coreset.rows, names, features, leave_out), None)


def _changed(coreset: Coreset, model: Model | None, shown: Narrowing, rows: Rows | None) -> Coreset:
    """The coreset under the new model, whose rows of weight zero are left out."""
    seen = shown.fields(coreset.rows)
    mask = shown.mask(coreset.rows)
    weights = coreset.weights if mask is None else coreset.weights * mask
    names = shown.names(tuple(coreset.provenance.get("column_names") or ()))
    given = coreset.model if model is None else with_priors_of(model, coreset.model)
    given = as_units(given, coreset.rows)
    if rows is None:
        # The weighted rows stand for the data in whatever the model looks up there.
        table = ArrayData(
            fields=seen,
            counts=weights,
            column_names=names,
            target_name=str(coreset.provenance.get("target_name") or "y"),
        )
        bound = _bound_to(given, table)
    else:
        bound = given.bind(rows)
    points = replace(coreset, rows=Block(seen, coreset.rows.counts), weights=weights).points
    kept = points.nonzero()
    known = {k: v for k, v in coreset.provenance.items() if k not in ("design", "columns", "steps")}
    whole = shown.is_whole
    return replace(
        coreset,
        **kept._asdict(),
        model=bound,
        reserve=None,
        missed=None,
        provenance={
            **(coreset.provenance if whole else known),
            "column_names": list(names),
            REFITTED: True,
        },
    )


def _bound_to(model: Any, table: ArrayData) -> Model:
    """The model for these rows, which may be units of several."""
    if not isinstance(model, Units):
        return model.bind(open_rows(table))
    rows = flat(Block(table.fields))
    table = replace(table, fields=rows.rows.fields, counts=rows.weights(table.counts))
    return Units(model.model.bind(open_rows(table)))


def _distance(before: Coreset, after: Coreset, shown: Narrowing) -> float | None:
    """Of the new mode from the old one; a column left out is a coefficient of zero."""
    places = _places(before.model, after.model, shown)
    if places is None:
        return None
    old, new = (Laplace().try_fit(Posterior.of(one)) for one in (before, after))
    if old is None or new is None:
        return None
    there = np.zeros(old.mean.size)
    there[places] = new.mean
    shift = np.linalg.solve(old.factor, there - old.mean)
    return float(np.sqrt(np.mean(np.square(shift))))


def _places(before: Model, after: Model, shown: Narrowing) -> list[int] | None:
    """Where the new parameters are among the old ones."""
    if shown.columns is None:
        return list(range(before.dim)) if before.dim == after.dim else None
    places = list(shown.columns)
    if after.dim == len(places) + 1:
        # The intercept is last in both.
        places.append(before.dim - 1)
    return places if after.dim == len(places) else None


def _caution(coreset: Coreset, distance: float | None) -> str:
    known = certify(coreset).reverse_kl
    was = "" if known is None else f" It was within {known.value:.2g} nats there."
    if distance is None:
        where = "how far its posterior lies from the one the coreset was built for is not known"
    elif distance <= NEAR:
        where = (
            f"its posterior lies {distance:.2g} standard deviations from the one the coreset was "
            "built for, where the coreset was matched"
        )
    else:
        where = (
            f"its posterior lies {distance:.2g} standard deviations from the one the coreset was "
            "built for, where nothing was matched: do not use these draws before one pass over the "
            "rows has certified them"
        )
    return (
        f"Not certified, for no rows were given: under the new model {where}.{was} Pass the rows, "
        "refit(coreset, model, data) or --data on the command line, to measure KL and k̂."
    )
