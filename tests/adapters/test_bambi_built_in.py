"""Bambi's mixed models as built-in ones: the same density, variables that Bambi predicts from."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas
import pytest

import corebayes as cb
from corebayes.adapters.bambi.adapter import BambiModel, from_bambi, to_bambi
from corebayes.adapters.bambi.built_in import built_in_from_bambi, translated
from corebayes.adapters.bambi.density import bambis_density
from corebayes.adapters.exports.density_check import log_density
from corebayes.sample import assembled, variables
from tests.coresets import weighted
from tests.later import bambi

pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link")

NUM_ROWS = 150


def frame() -> pandas.DataFrame:
    rng = np.random.default_rng(12)
    return pandas.DataFrame(
        {
            "x": rng.normal(size=NUM_ROWS) + 3.0,
            "hour": rng.uniform(size=NUM_ROWS),
            "g": rng.choice(list("abcd"), size=NUM_ROWS),
            "s": rng.choice(["w", "u", "v"], size=NUM_ROWS),
            "gate": rng.integers(3, 7, size=NUM_ROWS),
            "y": rng.integers(0, 2, size=NUM_ROWS),
            "z": 30.0 * rng.normal(size=NUM_ROWS) - 5.0,
            "c": rng.poisson(3.0, size=NUM_ROWS),
            "u": rng.beta(2.0, 3.0, size=NUM_ROWS),
            "w": rng.gamma(2.0, size=NUM_ROWS),
            "miles": rng.integers(80, 5000, size=NUM_ROWS),
        }
    )


def make(formula: str, family: str, **options: Any) -> Any:
    with warnings.catch_warnings():
        # Bambi's dependencies speak of their own future.
        warnings.simplefilter("ignore")
        model = bambi.Model(formula, frame(), family=family, **options)
        model.build()
        return model


PRIORS = {
    "1|g": bambi.Prior("Normal", mu=0, sigma=bambi.Prior("Exponential", lam=2.0)),
    "x": bambi.Prior("Normal", mu=1.0, sigma=0.3),
    "sigma": bambi.Prior("Gamma", alpha=2.0, beta=0.5),
}
MODELS = [
    ("y ~ x + s + x:s + (1 + hour + s|g) + (0 + x|gate) + (1|g:s)", "bernoulli", {}),
    ("z ~ x + (1|g)", "gaussian", {"priors": PRIORS, "center_predictors": False}),
    ("z ~ x + (x|g)", "t", {"priors": {"nu": 5}}),
    ("u ~ x + (1|g)", "beta", {}),
    ("w ~ x + (1 + hour|g)", "gamma", {"link": "log"}),
    ("y ~ x + (1|g)", "bernoulli", {"link": "probit"}),
    ("c ~ x + (1|g)", "negativebinomial", {}),
    ("c ~ 0 + x + (1|gate)", "poisson", {"noncentered": False}),
    ("c ~ gate + (gate|gate)", "poisson", {}),
    # The same families, with constants that are known or learned as in others.
    *(
        pytest.param(*model, marks=pytest.mark.slow)
        for model in (
            ("z ~ x + hour + (1|g)", "gaussian", {}),
            ("z ~ x + (1|g)", "gaussian", {"priors": {"sigma": 4.0}}),
            ("z ~ x", "t", {"priors": {"sigma": 2.0}}),
            ("y ~ x + (1|g)", "bernoulli", {"link": "cloglog"}),
            ("c ~ 1 + (1|g/s)", "poisson", {}),
            ("z ~ x + (1|g)", "t", {}),
            ("w ~ x", "gamma", {"link": "log", "priors": {"alpha": 2.0}}),
            ("c ~ x + (1|g)", "negativebinomial", {"priors": {"alpha": 2.5}}),
        )
    ),
]


@pytest.mark.parametrize(
    ("formula", "family"),
    [("y ~ miles + (1|g)", "bernoulli"), ("c ~ x + (1 + miles|g)", "poisson")],
)
def test_columns_of_thousands_are_no_reason_to_go_the_long_way(formula, family):
    assert built_in_from_bambi(make(formula, family)) is not None


@pytest.mark.parametrize(("formula", "family", "options"), MODELS)
def test_the_log_density_is_bambis(formula, family, options):
    own = make(formula, family, **options)
    model, data = from_bambi(own)
    assert isinstance(model, cb.MixedRegression)
    density = own.backend.model.compile_logp(mode="FAST_COMPILE")
    points = 0.6 * np.random.default_rng(3).normal(size=(3, model.dim))
    block = data.take(np.arange(NUM_ROWS))
    ours = model.log_prior(points) + model.sum_potentials(points, block)
    ours += model.log_base(block).sum()
    theirs = [bambis_density(own, model, density, theta) for theta in points]
    # Bambi rounds probabilities of the probit link near 0 and 1.
    tolerance = 1e-5 if options.get("link") == "probit" else 1e-9
    np.testing.assert_allclose(ours, theirs, rtol=tolerance)


def test_bambi_predicts_from_the_variables():
    own = make("z ~ x + s + (1 + s|g) + (0 + hour|gate)", "gaussian")
    model, data = from_bambi(own)
    draws = np.random.default_rng(4).normal(size=(2, 3, model.dim))
    idata = assembled({"posterior": variables(model, draws)}, {})
    own.predict(idata)
    expected, *_ = model.predictors(draws.reshape(6, -1), data.take(np.arange(NUM_ROWS)))
    found = idata.posterior["mu"].to_numpy().reshape(6, NUM_ROWS)
    np.testing.assert_allclose(found, expected.T, atol=1e-12)
    # Bambi's own draws of these variables have the same shapes, dimensions and labels.
    inner = own.backend.model
    for name in ("Intercept", "s", "1|g", "s|g", "s|g_sigma", "hour|gate", "sigma"):
        variable = idata.posterior[name]
        assert variable.dims[2:] == tuple(inner.named_vars_to_dims.get(name, ()))
        for axis in variable.dims[2:]:
            assert idata.posterior[axis].to_numpy().tolist() == list(inner.coords[axis])


def test_what_is_not_mixed_is_a_plain_regression():
    own = make("y ~ x + s + x:s", "bernoulli")
    model, data = from_bambi(own)
    assert isinstance(model, cb.LogisticRegression)
    model = model.bind(data)
    draws = np.random.default_rng(4).normal(size=(1, 3, model.dim))
    idata = assembled({"posterior": variables(model, draws)}, {})
    own.predict(idata)
    eta = data.take(np.arange(NUM_ROWS)).X @ draws[0].T
    found = idata.posterior["p"].to_numpy()[0]
    np.testing.assert_allclose(found, 1.0 / (1.0 + np.exp(-eta.T)), atol=1e-12)


def test_the_noise_of_a_plain_regression_is_unknown():
    model = from_bambi(make("z ~ x", "gaussian"))[0]
    assert isinstance(model, cb.MixedRegression) and not model.terms
    assert list(model.variables.dims) == [] and "sigma" in model.constrain(np.zeros((1, 3)))


@pytest.mark.slow
def test_intercepts_of_pymcs_way_are_in_the_columns_too():
    priors = {"nu": bambi.Prior("LogNormal", mu=1.0, sigma=0.5)}
    own = make("z ~ x + s", "t", priors=priors)
    model = from_bambi(own)[0]
    draws = np.random.default_rng(4).normal(size=(1, 3, model.dim))
    idata = assembled({"posterior": variables(model, draws)}, {})
    own.predict(idata)
    values = {name: entry.values[0] for name, entry in idata.posterior.data_vars.items()}
    table = frame()
    for draw in range(3):
        at_the_mean = model.split(draws[0, draw])["Intercept"]
        dummies = np.column_stack([table["s"] == "v", table["s"] == "w"]).astype(float)
        eta = at_the_mean + values["x"][draw] * (table["x"] - table["x"].mean())
        eta = eta + (dummies - dummies.mean(axis=0)) @ values["s"][draw]
        np.testing.assert_allclose(values["mu"][draw], eta, atol=1e-10)


def test_alpha_is_one_over_the_dispersion():
    model = from_bambi(make("c ~ x + (1|g)", "negativebinomial"))[0]
    theta = np.random.default_rng(0).normal(size=(1, model.dim))
    alpha = model.constrain(theta)["alpha"]
    place = model.parameter_names.index("log dispersion")
    assert alpha == pytest.approx(np.exp(-theta[0, place]))


def test_a_saved_model_keeps_bambis_variables():
    model = from_bambi(make("z ~ x + s + (1 + s|g)", "gaussian"))[0]
    again = cb.models.from_config("MixedRegression", model.config())
    theta = np.random.default_rng(0).normal(size=(2, model.dim))
    ours, theirs = model.constrain(theta), again.constrain(theta)
    assert list(ours) == list(theirs) and again.dims == model.dims
    for name, values in ours.items():
        np.testing.assert_array_equal(values, theirs[name])


@pytest.mark.parametrize(
    ("formula", "family", "options"),
    [
        ("w ~ x + (1|g)", "gamma", {}),
        ("z ~ x + offset(hour) + (1|g)", "gaussian", {}),
        ("z ~ x + (1|g)", "gaussian", {"priors": {"x": bambi.Prior("Laplace", mu=0, b=1)}}),
        (
            "z ~ x + (1|g)",
            "gaussian",
            {
                "priors": {
                    "1|g": bambi.Prior("StudentT", nu=3, mu=0, sigma=bambi.Prior("HalfNormal"))
                },
                "noncentered": False,
            },
        ),
        ("c ~ 0 + (1|g)", "poisson", {}),
        ("w ~ x", "wald", {"link": "log"}),
    ],
)
def test_what_has_no_counterpart_goes_the_other_way(formula, family, options):
    assert built_in_from_bambi(make(formula, family, **options)) is None


@pytest.mark.slow
def test_the_other_way_is_pymcs():
    model, data = from_bambi(make("z ~ x + offset(hour) + (1|g)", "gaussian"))
    assert isinstance(model, BambiModel) and data.num_rows == NUM_ROWS


@pytest.mark.parametrize(
    ("formula", "family"),
    [("z ~ x + (1 + hour|g)", "gaussian"), ("c ~ x + (1|g)", "poisson"), ("c ~ x + s", "poisson")],
)
def test_back_to_bambi_with_weights(formula, family):
    own = make(formula, family, center_predictors=False)
    model, data = from_bambi(own)
    numbers = np.arange(0, NUM_ROWS, 3)
    coreset = weighted(model.bind(data), data, numbers, np.linspace(1.0, 5.0, numbers.size))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = to_bambi(coreset, own)
    density = exported.backend.model.compile_logp(mode="FAST_COMPILE")
    points = 0.5 * np.random.default_rng(3).normal(size=(3, model.bind(data).dim))
    same = translated(own)[0]
    differences = [
        bambis_density(exported, same, density, theta) - log_density(coreset, theta)
        for theta in points
    ]
    np.testing.assert_allclose(differences, differences[0], atol=1e-8)
    with pytest.raises(TypeError, match="does not know its Bambi model: pass it as well"):
        to_bambi(coreset)


def test_what_bambi_cannot_weight_is_refused():
    own = make("z ~ x + (1|g)", "gaussian")
    model, data = from_bambi(own)
    coreset = weighted(model, data, np.arange(9), 3.0)
    with pytest.raises(ValueError, match="center_predictors=False"):
        to_bambi(coreset, own)
    own = make("z ~ x + (1|g)", "gaussian", center_predictors=False)
    one = np.flatnonzero(frame()["g"] == "a")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="some of whose categories no row has"):
            to_bambi(weighted(from_bambi(own)[0], data, one, 3.0), own)
