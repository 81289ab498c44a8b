"""A mixed model as one would write it; see `models/priors/table.py`."""

from __future__ import annotations

from typing import Any

from corebayes.models.priors.stated import DEFAULT, GIVEN, normal_rows
from corebayes.models.priors.table import Row, statement

# How columns that have no coefficient are added to η.
APART = {"offset": "{}", "exposure": "log({})"}


def described(model: Any) -> str:
    """The repr of a `MixedDesign`."""
    if model.terms:
        inside = f"{type(model.family).__name__}, {' + '.join(_terms(model))}"
        if model.bound is not None:
            inside += f"; {model.structure.describe()}"
        head = f"MixedRegression({inside})"
    else:
        head = repr(model.family)
    return head if model.bound is None else f"{head}\n{mixed_statement(model)}"


def mixed_statement(model: Any) -> str:
    """The likelihood, and a table of priors."""
    family, learned = model.family, {one.name for one in model.constants}
    known = {k: f"{v:g}" for k, v in family.constants.items() if k not in learned}
    names = {one.name: one.name for one in family.learnable}
    places = model.row_places
    apart = [
        APART[name].format(model.column_names[place])
        for name, place in places.items()
        if name in APART
    ]
    parts = [*model.design_names, *_terms(model), *apart]
    written = family.written.format(**names | known)
    return statement(model.known.target, written, parts, mixed_priors(model))


def mixed_priors(model: Any) -> list[Row]:
    """Parameter, prior, and from where it is, for all but the effects of single groups."""
    known = model.known
    if known.stated is None:
        rows = normal_rows(model.fixed_names, known.prior)
    else:
        rows = known.stated.rows()
    rows += [(one.name, str(one.prior), one.source) for one in known.learned]
    for term in model.terms:
        for effect in model.effects_of(term):
            scale = f"{effect.called}_sigma"
            rows.append((scale, str(effect.prior), DEFAULT if term.by_default else GIVEN))
            rows.append((effect.called, f"Normal(0, {scale}) for each {term.group}", ""))
    priors = [
        prior for one in model.horseshoes for prior in (one.horseshoe.tau, one.horseshoe.slab)
    ]
    rows += [
        (name, str(prior), GIVEN) for name, prior in zip(model.horseshoe_names, priors, strict=True)
    ]
    return rows


def _terms(model: Any) -> list[str]:
    return [f"({' + '.join(term.effects)} | {term.group})" for term in model.terms]
