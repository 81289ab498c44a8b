"""Coreset models from Bambi models, and back where Bambi's weights are right."""

from __future__ import annotations

from typing import Any

import numpy as np

from corebayes.adapters.bambi.built_in import built_in_from_bambi, translated
from corebayes.adapters.bambi.density import bambis_density
from corebayes.adapters.bambi.rows import known_of
from corebayes.adapters.exports.density_check import check_density
from corebayes.adapters.exports.pymc import density_of
from corebayes.adapters.jax_model import import_jax
from corebayes.adapters.pymc.adapter import PymcModel, adapt
from corebayes.adapters.pymc.variables import initial_point
from corebayes.adapters.tracing import one_at_a_time
from corebayes.coreset import Coreset, check_coreset
from corebayes.extras import import_extra
from corebayes.models import GLM, MixedRegression
from corebayes.rows import Rows
from corebayes.types import Array

WEIGHT = "coreset_weight"
# Families whose observations Bambi turns into something that its weights do not reach.
UNWEIGHTED = {"bernoulli", "t", "categorical", "cumulative", "sratio", "multinomial"}


class BambiModel(PymcModel):
    """The PyMC model behind a Bambi model; made by `from_bambi`."""

    library = "Bambi"
    bambi: Any = None

    def __reduce__(self) -> Any:
        return _again, (self.bambi,)

    def constrain(self, draws: Array) -> dict[str, Array]:
        """The variables, with intercepts in the columns as they are: Bambi's PyMC model has those
        at the mean of the columns."""
        values = super().constrain(draws)
        components = self.bambi.components.values() if self.bambi.center_predictors else ()
        for component in components:
            intercept = getattr(component, "intercept_term", None)
            if intercept is None:
                continue
            name = str(intercept.alias or intercept.name)
            for term in component.common_terms.values():
                own = values[str(term.alias or term.name)]
                middle = np.asarray(term.data, dtype=np.float64).mean(axis=0)
                # One number a draw, or one for each column of a term (and each category).
                at_middle: Array = (
                    own * middle if middle.ndim == 0 else np.einsum("sp...,p->s...", own, middle)
                )
                values[name] = values[name] - at_middle
        return values


@one_at_a_time
def from_bambi(model: Any) -> tuple[BambiModel | MixedRegression | GLM, Rows]:
    """The pair (model, data) for `build` and everything after it, from a Bambi model.

    The priors are those Bambi chose for all rows. A model whose family is bernoulli, poisson,
    gaussian, t, negativebinomial, beta or gamma (of a log link), with Bambi's own priors or others
    of their kinds, becomes a built-in regression: a `MixedRegression` when it has group-specific
    terms such as (1|g) or an unknown sigma, nu, alpha or kappa. Of any other the PyMC model behind
    it is taken. In both cases the variables have Bambi's names, dimensions and labels, and
    `Intercept` is the one of the columns as they are, as `model.fit` gives it and `model.predict`
    takes it.
    """
    import_bambi()
    if not hasattr(model, "response_component"):
        raise TypeError(f"from_bambi takes a Bambi model, got {model!r}")
    if not model.built:
        model.build()
    built_in = built_in_from_bambi(model)
    return _adapted(model) if built_in is None else built_in


def _adapted(model: Any) -> tuple[BambiModel, Rows]:
    """The PyMC model behind it."""
    adapted, data = adapt(BambiModel, model.backend.model, known_of(model))
    adapted.bambi = model
    return adapted, data


@one_at_a_time
def to_bambi(coreset: Coreset, model: Any = None) -> Any:
    """A Bambi model of the coreset's rows, weighted by `weighted(y, weight)`, with the priors of
    the model it was built from; `model.fit()` samples it.

    For a coreset of a built-in regression that `from_bambi` made, pass the Bambi `model` as well.
    Refused where Bambi cannot do that: for families it has no weights for, such as Bernoulli, where
    it would centre the predictors at the mean of the few rows, and where a category has no row in
    the coreset. `to_pymc` is always right. Its log density is compared with ours before it is
    handed over.
    """
    bambi = import_bambi()
    adapted = coreset.model
    own = adapted.bambi if isinstance(adapted, BambiModel) else model
    if not isinstance(adapted, BambiModel | MixedRegression | GLM):
        raise TypeError(
            f"to_bambi is for coresets of from_bambi, not of {type(adapted).__name__}: "
            "use to_pymc, or coreset.rows and coreset.weights"
        )
    if not hasattr(own, "response_component"):
        raise TypeError(
            f"a coreset of {type(adapted).__name__} does not know its Bambi model: pass it as "
            "well, to_bambi(coreset, model), or use to_pymc"
        )
    check_coreset(coreset)
    _refuse(own)
    target, _, rest = own.formula.main.partition("~")
    frame = own.data.iloc[coreset.indices].reset_index(drop=True)
    exported = bambi.Model(
        bambi.Formula(f"weighted({target.strip()}, {WEIGHT}) ~ {rest}", *own.formula.additionals),
        frame.assign(**{WEIGHT: coreset.weights}),
        family=own.family,
        priors=_priors(own),
        auto_scale=False,
        center_predictors=False,
        noncentered=own.noncentered,
    )
    exported.build()
    _check_shapes(own, exported)
    if not isinstance(adapted, BambiModel):
        compiled = exported.backend.model.compile_logp(mode="FAST_COMPILE")
        # A plain regression has the same parameters as a mixed one without terms.
        same = adapted if isinstance(adapted, MixedRegression) else translated(own)[0]
        check_density(
            coreset, lambda theta: bambis_density(exported, same, compiled, theta), "Bambi"
        )
        return exported
    names = [parameter.name for parameter in adapted.parameters]
    check_density(coreset, density_of(exported.backend.model, names), "Bambi")
    return exported


def import_bambi() -> Any:
    """bambi, or an error that says what to install."""
    import_jax("bambi")
    return import_extra("bambi", "Bambi models need", "bambi")


def _again(model: Any) -> BambiModel:
    return _adapted(model)[0]


def _refuse(own: Any) -> None:
    name = own.family.name
    if name in UNWEIGHTED:
        raise ValueError(
            f"Bambi's weighted() fails for the {name} family (its issue 898), so a weighted Bambi "
            "model of it would be wrong or not run: use to_pymc(coreset), which has the same "
            "variables"
        )
    if own.center_predictors:
        raise ValueError(
            "Bambi centres the predictors at the mean of the rows it sees, which is another for "
            "the coreset's rows, and so the intercept's prior would be another: make the model "
            "with center_predictors=False before from_bambi, or use to_pymc(coreset)"
        )


def _priors(own: Any) -> dict[str, Any]:
    """The priors that Bambi chose from all rows, so that it does not choose again."""
    priors: dict[str, Any] = {}
    for name, component in own.components.items():
        if hasattr(component, "terms"):
            terms = {term.name: term.prior for term in component.terms.values()}
            priors.update(terms if name == own.family.likelihood.parent else {name: terms})
        else:
            priors[name] = component.prior
    return priors


def _check_shapes(own: Any, exported: Any) -> None:
    shapes = initial_point(exported.backend.model)
    for name, values in initial_point(own.backend.model).items():
        shape = getattr(shapes.get(name), "shape", None)
        if shape != values.shape:
            raise ValueError(
                f"{name!r} has the shape {values.shape} in the model of all rows and {shape} in "
                "one of the coreset's rows, some of whose categories no row has: use "
                "to_pymc(coreset)"
            )
