"""Bambi's models as built-in regressions, mixed or not, where each piece has a counterpart.

Bambi's η = a + (x − x̄)ᵀβ + zᵀb with a ~ N(m, s²), β_j ~ N(μ_j, σ_j²) has in the columns as they are
the intercept a − x̄ᵀβ, so that (intercept, β) is Gaussian with

    mean (m − x̄ᵀμ, μ),   Var = s² + Σ x̄_j²σ_j²,   Cov(intercept, β_j) = −x̄_jσ_j²,

which is what `model.predict` takes and people mean. Effects b = τ·offset are taken in the centred
form. Before it is handed over the log density is compared with that of Bambi's own PyMC model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corebayes.adapters.bambi.density import same_density
from corebayes.adapters.bambi.design import design_of
from corebayes.adapters.bambi.priors import NoCounterpart, normal_prior, number, scale_priors
from corebayes.data.arrays import ArrayData
from corebayes.models import (
    BetaRegression,
    CloglogRegression,
    GammaRegression,
    GroupTerm,
    LinearRegression,
    LogisticRegression,
    MixedRegression,
    NegativeBinomialRegression,
    Normal,
    PoissonRegression,
    ProbitRegression,
    StudentTRegression,
)
from corebayes.models.families.family import Family
from corebayes.models.families.glm import GLM
from corebayes.models.mixed.groups import ONE
from corebayes.models.priors.scale import Reciprocal, ScalePrior
from corebayes.models.variables import Variable, Variables
from corebayes.rows import Rows, open_rows
from corebayes.types import Array


class Counterpart(NamedTuple):
    """A built-in family of Bambi's, and what Bambi calls its constants."""

    make: Callable[..., GLM | Family]
    constants: Mapping[str, str] = {}
    reciprocal: bool = False
    """Whether Bambi's constant is one over the built-in one's."""


# By the name and the link.
FAMILIES = {
    ("bernoulli", "logit"): Counterpart(LogisticRegression),
    ("bernoulli", "probit"): Counterpart(ProbitRegression),
    ("bernoulli", "cloglog"): Counterpart(CloglogRegression),
    ("poisson", "log"): Counterpart(partial(PoissonRegression, link="log")),
    ("gaussian", "identity"): Counterpart(LinearRegression, {"sigma": "noise_sd"}),
    ("t", "identity"): Counterpart(StudentTRegression, {"sigma": "scale", "nu": "df"}),
    ("negativebinomial", "log"): Counterpart(
        NegativeBinomialRegression, {"alpha": "dispersion"}, reciprocal=True
    ),
    ("gamma", "log"): Counterpart(GammaRegression, {"alpha": "shape"}),
    ("beta", "logit"): Counterpart(BetaRegression, {"kappa": "precision"}),
}


class DesignColumns:
    """The columns of X as they come together; one that is there already is not added again."""

    def __init__(self) -> None:
        self.values: dict[str, Array] = {}

    def add(self, name: str, values: NDArray[Any]) -> str:
        """The name under which these values are in X."""
        values = np.asarray(values, dtype=np.float64)
        while name in self.values:
            if np.array_equal(self.values[name], values):
                return name
            name += "_"
        self.values[name] = values
        return name

    def add_codes(self, name: str, codes: NDArray[Any]) -> str:
        """A column of group numbers, which no effect may share."""
        while name in self.values:
            name += " group"
        return self.add(name, codes)


class BambiEffects(NamedTuple):
    """One group-specific term of Bambi's: which effects of which group term it is."""

    variable: str
    group: str
    columns: list[str]
    scales: list[ScalePrior]


def built_in_from_bambi(own: Any) -> tuple[MixedRegression | GLM, Rows] | None:
    """The pair (model, data) of a built Bambi model, or None if it has a piece that no built-in
    model has. Cost: N·(p + effects of a row) numbers, and the log density of all rows at a few
    points."""
    try:
        model, rows = translated(own)
    except NoCounterpart:
        return None
    if not same_density(own, model, rows):
        return None
    if model.terms or model.constants or not isinstance(model.family, GLM):
        return model, rows
    # Nothing is mixed: the columns have the names from which Bambi's vectors are made again.
    return model.family, rows


def translated(own: Any) -> tuple[MixedRegression, Rows]:
    """A Bambi model as a mixed regression, with no terms if it has none; not yet compared."""
    component, response = own.components[own.family.likelihood.parent], own.response_component.term
    parent = own.family.likelihood.parent
    family = FAMILIES.get((own.family.name, own.family.link[parent].name))
    special = any(
        getattr(response, f"is_{kind}", False)
        for kind in ("censored", "constrained", "truncated", "weighted")
    )
    if family is None or special:
        raise NoCounterpart
    if component.offset_terms or component.hsgp_terms:
        raise NoCounterpart
    known, learned = _constants(own, family, parent)
    columns = DesignColumns()
    prior, variables = _fixed(component, columns, centred=own.center_predictors)
    num_fixed = len(columns.values)
    effects, labels = _effects(component, columns)
    terms = [
        GroupTerm(
            group=group,
            effects=[name for part in effects if part.group == group for name in part.columns],
            scale=[prior for part in effects if part.group == group for prior in part.scales],
            labels=names,
        )
        for group, names in labels.items()
    ]
    plain = {*list(columns.values)[:num_fixed], *labels}
    X = np.column_stack(list(columns.values.values()))
    y = np.asarray(np.squeeze(response.data), dtype=np.float64)
    rows = ArrayData(
        fields={"X": X, "y": y},
        column_names=tuple(columns.values),
        target_name=str(response.alias or response.name),
        design=design_of(own, X, y, tuple(columns.values)),
    )
    model = MixedRegression(
        family=family.make(prior=prior, **known),
        terms=terms,
        learned=learned,
        slopes_only=[name for name in columns.values if name not in plain],
    )
    rows = open_rows(rows)
    bound = model.bind(rows)
    return replace(bound, shown=_shown(own, bound, family, variables, effects)), rows


def _constants(
    own: Any, family: Counterpart, parent: str
) -> tuple[dict[str, float], dict[str, ScalePrior]]:
    """The family's known constants, and the priors of those that are unknown."""
    known: dict[str, float] = {}
    learned: dict[str, ScalePrior] = {}
    for theirs, component in own.components.items():
        if theirs == parent:
            continue
        if not hasattr(component, "prior") or theirs not in family.constants:
            raise NoCounterpart
        name = family.constants[theirs]
        if isinstance(component.prior, (int, float)):
            value = number(component.prior)
            known[name] = 1.0 / value if family.reciprocal else value
        else:
            (prior,) = scale_priors(component.prior, 1)
            learned[name] = Reciprocal(prior) if family.reciprocal else prior
    return known, learned


def _fixed(
    component: Any, columns: DesignColumns, *, centred: bool
) -> tuple[Normal, dict[str, Any]]:
    """The prior of intercept and coefficients in the columns as they are, and their variables."""
    means: list[Array] = []
    deviations: list[Array] = []
    variables: dict[str, Any] = {}
    intercept = component.intercept_term
    every = [*([] if intercept is None else [intercept]), *component.common_terms.values()]
    for term in every:
        name = str(term.alias or term.name)
        values = np.asarray(term.data, dtype=np.float64)
        wide = values.reshape(len(values), -1)
        labels = next(iter(term.coords.values()), None)
        start = len(columns.values)
        if labels is not None and len(labels) != wide.shape[1]:
            raise NoCounterpart
        for place, column in enumerate(wide.T):
            label = "" if labels is None else f"[{labels[place]}]"
            columns.add(f"{name}{label}", column)
        if len(columns.values) != start + wide.shape[1]:
            # Two terms with one and the same column: each has a coefficient in Bambi.
            raise NoCounterpart
        places = np.arange(start, len(columns.values))
        variables[name] = places[0] if labels is None else places
        mean, deviation = normal_prior(term.prior, wide.shape[1])
        means.append(mean)
        deviations.append(deviation)
    if not every:
        raise NoCounterpart
    mean, covariance = np.concatenate(means), np.diag(np.concatenate(deviations) ** 2)
    if intercept is not None and centred and len(every) > 1:
        # (intercept, β) = T (a, β)
        transform = np.eye(mean.size)
        transform[0, 1:] = [-column.mean() for column in list(columns.values.values())[1:]]
        mean, covariance = transform @ mean, transform @ covariance @ transform.T
        return Normal(mean, 0.5 * (covariance + covariance.T)), variables
    return Normal(mean, np.sqrt(np.diag(covariance))), variables


def _effects(
    component: Any, columns: DesignColumns
) -> tuple[list[BambiEffects], dict[str, tuple[Any, ...]]]:
    """The group-specific terms, and the labels of the groups of each column of codes."""
    found: list[BambiEffects] = []
    for term in component.group_specific_terms.values():
        name = str(term.alias or term.name)
        predictor = np.asarray(term.predictor, dtype=np.float64)
        wide = predictor.reshape(len(predictor), -1)
        expression = term.name.partition("|")[0]
        if term.kind == "intercept":
            effects = [ONE]
        elif wide.shape[1] == 1:
            effects = [columns.add(expression, wide[:, 0])]
        else:
            levels = list(term.coords.values())[-1]
            named = zip(levels, wide.T, strict=True)
            effects = [columns.add(f"{expression}[{level}]", values) for level, values in named]
        found.append(BambiEffects(name, _factor(term), effects, _effect_scales(term, len(effects))))
    labels: dict[str, tuple[Any, ...]] = {}
    coded: dict[str, str] = {}
    for term in component.group_specific_terms.values():
        factor = _factor(term)
        if factor not in coded:
            coded[factor] = columns.add_codes(factor, term.group_index)
            labels[coded[factor]] = tuple(map(str, term.groups))
    return [part._replace(group=coded[part.group]) for part in found], labels


def _factor(term: Any) -> str:
    return str(term.name.partition("|")[2])


def _effect_scales(term: Any, num_effects: int) -> list[ScalePrior]:
    """The priors of the standard deviations of effects N(0, τ²)."""
    arguments = dict(term.prior.args)
    zero = not np.any(np.asarray(arguments.pop("mu", 0.0), dtype=object))
    if term.prior.name != "Normal" or set(arguments) != {"sigma"} or not zero:
        raise NoCounterpart
    return scale_priors(arguments["sigma"], num_effects)


def _shown(
    own: Any,
    model: MixedRegression,
    family: Counterpart,
    fixed: Mapping[str, Any],
    effects: list[BambiEffects],
) -> Variables:
    """The variables of Bambi's PyMC model, with its dimensions and labels."""
    inner = own.backend.model
    dims = {name: tuple(axes) for name, axes in inner.named_vars_to_dims.items()}
    entries = [
        Variable(name, np.array(places), dims=dims.get(name, ())) for name, places in fixed.items()
    ]
    theirs = {name: own.components[key] for key, name in family.constants.items()}
    for place, constant in enumerate(model.constants, model.num_fixed):
        component = theirs[constant.name]
        name = str(component.alias or component.name)
        scale = "exp(-)" if family.reciprocal else "exp"
        entries.append(Variable(name, np.array(place), scale))
    scales = {
        (term.group, effect): place
        for (term, effect), place in zip(
            ((term, effect) for term in model.terms for effect in term.effects),
            model.structure.scales,
            strict=True,
        )
    }
    groups = {term.group: k for k, term in enumerate(model.terms)}
    for name, group, columns, _ in effects:
        term = model.terms[groups[group]]
        numbers = [term.effects.index(column) for column in columns]
        positions = model.structure.terms[groups[group]].positions[:, numbers]
        taus = np.array([scales[group, column] for column in columns])
        single = len(dims[name]) == 1
        entries += [
            Variable(
                f"{name}_sigma", taus[0] if single else taus, "exp", dims.get(f"{name}_sigma", ())
            ),
            Variable(name, positions[:, 0] if single else positions, dims=dims[name]),
        ]
    axes = {axis for entry in entries for axis in entry.dims}
    return Variables(tuple(entries), {axis: tuple(inner.coords[axis]) for axis in axes})
