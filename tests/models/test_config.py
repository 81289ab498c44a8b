"""Models as plain data, for files."""

from __future__ import annotations

import json

import numpy as np
import pytest

from corebayes.models import (
    BUILT_IN,
    GLM,
    CloglogRegression,
    GaussianMean,
    LinearRegression,
    LogisticRegression,
    NegativeBinomialRegression,
    Normal,
    PoissonRegression,
    ProbitRegression,
    StudentTRegression,
    from_config,
)
from corebayes.rows import open_rows
from corebayes.types import Block

FULL = Normal([0.1, 0.2, 1 / 3], [[1.5, 0.2, 0.0], [0.2, 0.7, -0.1], [0.0, -0.1, np.pi]])

MODELS = [
    LogisticRegression(prior=Normal()),
    LogisticRegression(intercept=True, prior=Normal(0.5, [1.0, 2.0, 3.0, 1 / 3])),
    PoissonRegression(link="log", prior=FULL),
    PoissonRegression(prior=Normal([1.0, 2.0, 3.0]), link="softplus"),
    StudentTRegression(df=3.3, scale=0.1, prior=FULL),
    NegativeBinomialRegression(dispersion=0.7, prior=Normal()),
    LinearRegression(1 / 7, prior=FULL),
    ProbitRegression(prior=FULL),
    CloglogRegression(prior=Normal()),
    GaussianMean(prior=FULL),
    GaussianMean([0.1, 1.0, 10.0]),
    GaussianMean([[1.5, 0.2, 0.0], [0.2, 0.7, -0.1], [0.0, -0.1, np.pi]], prior=FULL),
]


def block(model):
    rng = np.random.default_rng(0)
    fields = {"X": rng.normal(size=(9, 3))}
    if not isinstance(model, GaussianMean):
        fields["y"] = rng.integers(0, 2, size=9) * 1.0
    return Block(fields)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_round_trip_through_json(model):
    rows = block(model)
    bound = model.bind(open_rows(dict(rows.fields)))
    again = from_config(type(model).__name__, json.loads(json.dumps(bound.config())))
    assert type(again) is type(model)
    assert again.dim == bound.dim and again.parameter_names == bound.parameter_names
    assert again.config() == bound.config()
    draws = np.random.default_rng(1).normal(size=(4, bound.dim))
    np.testing.assert_array_equal(again.potentials(draws, rows), bound.potentials(draws, rows))
    np.testing.assert_array_equal(again.log_base(rows), bound.log_base(rows))
    np.testing.assert_array_equal(again.log_prior(draws), bound.log_prior(draws))
    np.testing.assert_array_equal(
        again.log_prior_gradient(draws[0]), bound.log_prior_gradient(draws[0])
    )


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_an_unbound_model_comes_back_unbound(model):
    config = json.loads(json.dumps(model.config()))
    assert config["names"] is None
    again = from_config(type(model).__name__, config)
    assert again.bound is None
    assert again.config() == model.config()


def test_every_constructor_argument_is_in_the_config():
    config = StudentTRegression(df=3.3, scale=0.1, intercept=True, prior=Normal()).config()
    assert config == {
        "df": 3.3,
        "scale": 0.1,
        "intercept": True,
        "offset": None,
        "prior": {"mean": 0.0, "sd_or_cov": 1.0},
        "priors": None,
        "names": None,
    }


def test_all_built_in_models_are_tried():
    # Families of several predictors are parts of a model: see tests/mixed/test_families.py.
    single = {name for name, model in BUILT_IN.items() if issubclass(model, GLM | GaussianMean)}
    assert {type(model).__name__ for model in MODELS} == single


def test_unknown_models_and_arguments_are_refused():
    with pytest.raises(ValueError, match="'Other' is not a built-in model; those are Beta"):
        from_config("Other", {})
    with pytest.raises(ValueError, match="noise_sd must be positive"):
        from_config(
            "LinearRegression",
            {**LinearRegression(noise_sd=1.0, prior=Normal()).config(), "noise_sd": -1.0},
        )
