"""Bambi models: taken through their PyMC model, handed back where Bambi's weights are right."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas
import pytest

import corebayes as cb
from corebayes.adapters.bambi.adapter import BambiModel, from_bambi, to_bambi
from corebayes.adapters.exports.density_check import log_density
from corebayes.adapters.exports.pymc import to_pymc
from tests.adapters.rows import make_rows
from tests.coresets import weighted
from tests.later import bambi

pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link")


def frame(num_rows: int = 60) -> pandas.DataFrame:
    rows = make_rows(num_rows)
    table = pandas.DataFrame(rows["X"] + 1.0, columns=["a", "b", "c"])
    return table.assign(
        g=np.array(list("pqrs"))[rows["group"]], y=rows["real"], binary=rows["binary"]
    )


def make(formula: str, **options: Any) -> Any:
    with warnings.catch_warnings():
        # Bambi's dependencies speak of their own future.
        warnings.simplefilter("ignore")
        model = bambi.Model(formula, frame(), **options)
        model.build()
        return model


def test_the_log_density_is_the_one_of_bambis_own_model():
    # A prior that the built-in models do not have.
    priors = {"nu": bambi.Prior("LogNormal", mu=1.0, sigma=0.5)}
    own = make("y ~ a + b", family="t", priors=priors)
    model, data = from_bambi(own)
    assert isinstance(model, BambiModel) and data.num_rows == 60
    compiled = own.backend.model.compile_logp(mode="FAST_COMPILE")
    for theta in np.random.default_rng(0).uniform(-1, 1, size=(3, model.dim)):
        values = model.split(theta)
        inner = own.backend.model
        point = {inner.rvs_to_values[rv].name: values[rv.name] for rv in inner.free_RVs}
        ours = model.log_prior(theta[None])[0] + model.sum_potentials(
            theta[None], data.take(np.arange(60))
        )
        np.testing.assert_allclose(ours, compiled(point), rtol=1e-10)


def test_models_go_back_with_the_priors_of_all_rows():
    # A prior that the built-in models do not have.
    priors = {"b": bambi.Prior("Laplace", mu=0, b=1)}
    own = make("y ~ a + b", priors=priors, center_predictors=False)
    model, data = from_bambi(own)
    coreset = weighted(model, data, [1, 5, 22, 40], [20.0, 10.0, 4.0, 26.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        exported = to_bambi(coreset)
    assert len(exported.data) == 4
    terms = exported.components["mu"].terms
    assert terms["a"].prior.args == own.components["mu"].terms["a"].prior.args
    inner = exported.backend.model
    compiled = inner.compile_logp(mode="FAST_COMPILE")
    differences = []
    for theta in np.random.default_rng(1).uniform(-1, 1, size=(3, model.dim)):
        values = model.split(theta)
        point = {inner.rvs_to_values[rv].name: values[rv.name] for rv in inner.free_RVs}
        differences.append(compiled(point) - log_density(coreset, theta))
    np.testing.assert_allclose(differences, differences[0], atol=1e-8)


def test_what_bambi_would_get_wrong_is_refused():
    # A prior that no built-in regression has, so that the models stay PyMC's.
    other = {"a": bambi.Prior("Laplace", mu=0, b=1)}
    own = make("binary ~ a", family="bernoulli", priors=other, center_predictors=False)
    model, data = from_bambi(own)
    coreset = weighted(model, data, [1, 5, 22], [20.0, 20.0, 20.0])
    with pytest.raises(ValueError, match=r"weighted\(\) fails for the bernoulli family"):
        to_bambi(coreset)
    assert "coreset_weight" in to_pymc(coreset).named_vars
    model, data = from_bambi(make("y ~ a", priors=other))
    with pytest.raises(ValueError, match="centres the predictors"):
        to_bambi(weighted(model, data, [1, 5, 22], [20.0, 20.0, 20.0]))
    with pytest.raises(TypeError, match="LogisticRegression does not know its Bambi model"):
        to_bambi(weighted(cb.LogisticRegression(prior=cb.Normal()), data, [0], [1.0]))
