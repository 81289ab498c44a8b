"""Families by the names that Bambi, brms and R have for them, from formulas."""

from __future__ import annotations

import warnings

import numpy as np
import pandas
import pytest

import corebayes as cb
from corebayes.adapters.family_names import ALIASES, FAMILIES
from corebayes.cli.inputs import ModelOptions, make_model

NAMES = {
    "gaussian": cb.LinearRegression,
    "bernoulli": cb.LogisticRegression,
    "binomial": cb.LogisticRegression,
    "poisson": cb.PoissonRegression,
    "negativebinomial": cb.NegativeBinomialRegression,
    "negative-binomial": cb.NegativeBinomialRegression,
    "nbinom": cb.NegativeBinomialRegression,
    "t": cb.StudentTRegression,
    "student": cb.StudentTRegression,
    "gamma": cb.GammaRegression,
    "Gamma": cb.GammaRegression,
    "beta": cb.BetaRegression,
    "cumulative": cb.OrdinalRegression,
    "ordinal": cb.OrdinalRegression,
    "categorical": cb.CategoricalRegression,
    "multinomial": cb.CategoricalRegression,
    "zero_inflated_poisson": cb.ZeroInflatedPoissonRegression,
    "zero_inflated_negativebinomial": cb.ZeroInflatedNegativeBinomialRegression,
    "hurdle_poisson": cb.HurdlePoissonRegression,
    "hurdle_negativebinomial": cb.HurdleNegativeBinomialRegression,
    "weibull": cb.WeibullRegression,
    "lognormal": cb.LogNormalRegression,
    "exponential": cb.ExponentialRegression,
    "probit": cb.ProbitRegression,
    "cloglog": cb.CloglogRegression,
}


def frame() -> pandas.DataFrame:
    rng = np.random.default_rng(2)
    table = pandas.DataFrame({"x": rng.normal(size=60), "g": rng.integers(0, 4, 60)})
    table["label"] = rng.integers(0, 2, 60)
    table["count"] = rng.poisson(1.5, 60)
    table["share"] = rng.uniform(0.1, 0.9, 60)
    table["grade"] = rng.integers(0, 4, 60)
    table["trials"] = table["count"] + rng.integers(1, 5, 60)
    table["status"] = np.where(rng.uniform(size=60) < 0.7, "none", "right")
    return table


def target(kind) -> str:
    known = {
        cb.LogisticRegression: "label",
        cb.ProbitRegression: "label",
        cb.CloglogRegression: "label",
        cb.OrdinalRegression: "grade",
        cb.CategoricalRegression: "grade",
        cb.PoissonRegression: "count",
        cb.NegativeBinomialRegression: "count",
    }
    inflated = any(word in kind.__name__ for word in ("Hurdle", "Zero"))
    return known.get(kind, "count" if inflated else "share")


@pytest.mark.parametrize("name", NAMES)
def test_a_formula_knows_the_name(name):
    kind = NAMES[name]
    for right in ("x", "x + (1 | g)"):
        model, rows = cb.from_formula(f"{target(kind)} ~ {right}", frame(), family=name)
        assert isinstance(getattr(model, "family", model), kind)
        bound = model.bind(rows)
        ordinal = kind is cb.OrdinalRegression
        assert ("Intercept" in " ".join(bound.parameter_names)) is not ordinal
        block = rows.take(np.arange(20))
        values = bound.potentials(np.zeros((2, bound.dim)), block)
        assert np.all(np.isfinite(values))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "binomial"])
def test_the_command_line_knows_it_too(name):
    model = make_model(name, ModelOptions(prior=cb.Normal(0.0, 2.0), intercept=False))
    assert type(model) is NAMES[name]


def test_gaussian_is_a_regression_everywhere():
    assert type(make_model("gaussian", ModelOptions(None, False))) is cb.LinearRegression
    assert type(make_model("gaussian-mean", ModelOptions(None, False))) is cb.GaussianMean


def test_trials_and_censored_times_are_of_the_formula():
    model, rows = cb.from_formula("p(count, trials) ~ x", frame(), family="binomial")
    assert isinstance(model, cb.BinomialRegression)
    bound = model.bind(rows)
    assert bound.parameter_names == ("Intercept", "x")
    model, rows = cb.from_formula("censored(share, status) ~ x", frame(), family="weibull")
    assert model.bind(rows).parameter_names == ("Intercept", "x", "log shape")
    model, rows = cb.from_formula("count ~ x + offset(log(trials))", frame(), family="poisson-log")
    found = model.bind(rows)
    at = found.predictors(np.zeros((1, 2)), rows.take(np.arange(60)))
    np.testing.assert_allclose(at[0][:, 0], np.log(frame()["trials"]))


def test_nobodys_name_is_refused():
    with pytest.raises(ValueError, match=r"no family 'gama'; did you mean 'gamma'\? There are"):
        cb.from_formula("share ~ x", frame(), family="gama")
    assert not {*FAMILIES} & {*ALIASES}


def test_words_of_an_ordinal_target_have_an_order_or_a_warning():
    words = ["too little", "about right", "too much"]
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"x": rng.normal(size=60), "y": rng.choice(words, 60)})
    ordered = frame.assign(y=pandas.Categorical(frame["y"], categories=words, ordered=True))
    letters = frame.assign(y=pandas.Categorical(frame["y"].str[-1], list("ehtx"), ordered=True))
    with pytest.warns(UserWarning, match="alphabet, about right < too little < too much: write"):
        cb.from_formula("y ~ x", frame, family="ordinal")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cb.from_formula("y ~ x", frame, family="categorical")
        cb.from_formula("y ~ x", letters, family="ordinal")
        for left, rows in ((f"C(y, levels={words})", frame), ("y", ordered)):
            model, _ = cb.from_formula(f"{left} ~ x", rows, family="ordinal")
            assert model.family.category_names == tuple(words)
