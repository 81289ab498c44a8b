"""Every family as a mixed regression: derivatives, files, what rows are refused."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import corebayes as cb
from corebayes.models import BUILT_IN, from_config
from corebayes.models.families.family import Family
from corebayes.rows import open_rows
from corebayes.samplers.density import Pointer
from corebayes.samplers.mixed.density import MixedDensity, mixed_density
from corebayes.samplers.mixed.frame import frame_of
from corebayes.samplers.posterior import Posterior
from tests.mixed.family_cases import NAMES, bound, columns_of, table
from tests.models.predictor_cases import CASES
from tests.samplers.test_mixed_density import call

QUICK = ("student-t",)
names = pytest.mark.parametrize("name", NAMES)


def test_every_family_is_tried():
    tried = {type(case.family).__name__ for case in CASES}
    every = {name for name, model in BUILT_IN.items() if issubclass(model, Family)}
    assert every <= tried


@names
def test_derivatives_are_those_of_the_density(name):
    model, rows = bound(name)
    block = rows.take(np.arange(40))
    rng = np.random.default_rng(1)
    theta, weights = 0.3 * rng.normal(size=model.dim), rng.uniform(0.0, 2.0, size=40)
    assert model.dim == len(model.parameter_names) == len(set(model.parameter_names))

    def value(at):
        return model.sum_potentials(at[None], block, weights)[0] + model.log_prior(at[None])[0]

    gradient, hessian = model.gradient_and_hessian(theta, block, weights)
    np.testing.assert_allclose(model.gradient(theta, block, weights), gradient, atol=1e-9)
    h, steps = 1e-5, 1e-5 * np.eye(model.dim)
    by_value = [(value(theta + e) - value(theta - e)) / (2 * h) for e in steps]
    whole = gradient + model.log_prior_gradient(theta)
    np.testing.assert_allclose(whole, by_value, rtol=1e-5, atol=1e-4)

    def slope(at):
        return model.gradient(at, block, weights)

    by_slope = [(slope(theta + e) - slope(theta - e)) / (2 * h) for e in steps]
    np.testing.assert_allclose(hessian, by_slope, rtol=1e-5, atol=1e-4)


@names
def test_what_nuts_sees_is_the_density(name):
    model, rows = bound(name)
    weights = np.random.default_rng(2).uniform(0.0, 3.0, size=60)
    posterior = Posterior(model, rows.take(np.arange(60)), weights)
    frame = frame_of(posterior)
    density = MixedDensity(posterior, frame)
    z = 0.5 * np.random.default_rng(4).normal(size=(3, model.dim))
    found = np.array([density(one)[0] for one in z])
    thetas = frame.theta(z)
    expected = [posterior.value(theta) for theta in thetas]
    flat = np.zeros(model.dim)
    volumes = [frame.pulled_back(z[k], theta, flat)[0] for k, theta in enumerate(thetas)]
    np.testing.assert_allclose(found - volumes, expected, rtol=1e-9)
    h = 1e-5
    for e in h * np.eye(model.dim)[:6]:
        slope = (density(z[0] + e)[0] - density(z[0] - e)[0]) / (2 * h)
        assert density(z[0])[1] @ e / h == pytest.approx(slope, rel=1e-4, abs=1e-4)


# Each family is compiled once, which takes seconds.
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in NAMES],
)
def test_the_compiled_density_is_the_one_in_numpy(name):
    """With offsets, trials, events and exposures, learned constants and groups."""
    model, rows = bound(name)
    weights = np.random.default_rng(2).uniform(0.0, 3.0, size=60)
    weights[::9] = 0.0
    posterior = Posterior(model, rows.take(np.arange(60)), weights)
    frame = frame_of(posterior)
    pointer, density = mixed_density(posterior, frame), MixedDensity(posterior, frame)
    assert isinstance(pointer, Pointer)
    for z in np.random.default_rng(4).normal(size=(4, model.dim)):
        status, value, gradient = call(pointer, z)
        expected = density(z)
        assert status == 0
        assert value == pytest.approx(expected[0], rel=1e-10, abs=1e-10)
        scale = np.abs(expected[1]).max()
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-9, atol=1e-10 * scale)


@names
def test_a_model_comes_back_from_its_config(name):
    model, rows = bound(name)
    again = from_config("MixedRegression", json.loads(json.dumps(model.config())))
    draws, block = np.random.default_rng(3).normal(size=(3, model.dim)), rows.take(np.arange(20))
    assert again.parameter_names == model.parameter_names
    np.testing.assert_array_equal(again.potentials(draws, block), model.potentials(draws, block))
    np.testing.assert_array_equal(again.log_base(block), model.log_base(block))
    shown = model.constrain(draws)
    assert {key: value.shape for key, value in again.constrain(draws).items()} == {
        key: value.shape for key, value in shown.items()
    }


@names
def test_an_offset_is_added_to_the_predictor(name):
    model, rows = bound(name)
    block = rows.take(np.arange(30))
    draws = 0.3 * np.random.default_rng(5).normal(size=(4, model.dim))
    at = model.predictors(draws, block)
    moved = block.X.copy()
    moved[:, model.column_names.index("shift")] = 0.0
    without = model.predictors(draws, type(block)({**block.fields, "X": moved}))
    for one, other in zip(at[: len(model.family.linear)], without, strict=False):
        shift = block.X[:, model.column_names.index("shift")]
        np.testing.assert_allclose(one - other, np.broadcast_to(shift[:, None], one.shape))


def refused(model, frame, message):
    with pytest.raises(ValueError, match=message):
        model.bind(open_rows(frame, target="y"))


def changed(name, row, column, value):
    frame = table(name)
    frame.loc[row, column] = value
    case = next(case for case in CASES if case.name == name)
    return cb.MixedRegression(family=_with_columns(case.family), slopes_only=("g",)), frame


def _with_columns(family):
    return replace(family, **columns_of(family))


@pytest.mark.parametrize(
    ("name", "column", "value", "message"),
    [
        ("binomial", "n", 0.0, "row 7, column 'n': 0.0 cannot be: trials must be whole"),
        ("poisson-log", "time", 0.0, "row 7, column 'time': 0.0 cannot be: an exposure must be"),
        ("weibull", "seen", 2.0, "row 7, column 'seen': 2.0 cannot be: an event is 1 where"),
        ("gamma", "y", 0.0, "row 7, column 'y': 0.0 is not a target of GammaRegression: .*zeros"),
        ("beta", "y", 1.0, "row 7, column 'y': 1.0 is not a target of BetaRegression"),
        ("hurdle-poisson", "y", 0.5, "row 7, column 'y': 0.5 is not a target of Hurdle"),
        ("lognormal", "y", -1.0, "row 7, column 'y': -1.0 is not a target of LogNormal"),
        ("ordinal", "y", 9.0, "row 7, column 'y': 9.0 is not a target of Ordinal.*categories are"),
    ],
)
def test_a_row_that_cannot_be_is_named(name, column, value, message):
    model, frame = changed(name, 7, column, value)
    if name == "binomial":
        frame.loc[7, "y"] = 1.0
    refused(model, frame, message)


def test_categories_are_found_in_the_rows():
    frame = table("ordinal", beside=False)
    frame["y"] = frame["y"] + 2.0
    model = cb.OrdinalRegression(prior=cb.Normal()).bind(
        open_rows(frame.drop(columns=["one", "g"]), target="y")
    )
    assert model.family.categories == (2.0, 3.0, 4.0, 5.0, 6.0)
    assert model.parameter_names == (
        "x",
        "cutpoint_1",
        "log gap_2",
        "log gap_3",
        "log gap_4",
    )
    cuts = model.constrain(np.array([[0.3, -1.0, 0.0, 0.5, -0.5]]))["cutpoints"][0]
    np.testing.assert_allclose(cuts, -1.0 + np.cumsum([0.0, 1.0, np.exp(0.5), np.exp(-0.5)]))
    assert model.coords["cutpoint"] == ("2|3", "3|4", "4|5", "5|6")
    frame = frame[frame["y"] != 4.0].reset_index(drop=True)
    refused(
        cb.OrdinalRegression(prior=cb.Normal()), frame, "no row is in category 4, between 3 and 5"
    )
    frame["y"] = 3.0
    refused(cb.CategoricalRegression(prior=cb.Normal()), frame, "every row is in category 3")
    frame["y"] = frame["x"]
    refused(cb.CategoricalRegression(prior=cb.Normal()), frame, "categories must be whole numbers")


def test_rows_that_are_all_censored_are_refused():
    frame = table("weibull")
    frame["seen"] = 0.0
    refused(
        cb.WeibullRegression(event="seen", prior=cb.Normal()),
        frame,
        "every row is censored .*'seen'",
    )


def test_a_column_that_is_not_there_is_named():
    frame = table("gamma")
    refused(cb.GammaRegression(offset="other", prior=cb.Normal()), frame, "no column 'other'")
    refused(cb.GammaRegression(offset=99, prior=cb.Normal()), frame, "none at position 99")


def test_arrays_have_positions():
    frame = table("weibull")
    X, y = frame[["one", "x", "seen"]].to_numpy(), frame["y"].to_numpy()
    model = cb.WeibullRegression(event=2, prior=cb.Normal()).bind(open_rows((X, y)))
    assert model.parameter_names == ("beta[0]", "beta[1]", "log shape")
    assert cb.WeibullRegression(event=-1, prior=cb.Normal()).bind(open_rows((X, y))).dim == 3


def test_constants_are_learned_by_name():
    family = cb.StudentTRegression(df=4.0, scale=1.0, prior=cb.Normal())
    both = cb.MixedRegression(family=family, learned={"df": cb.Gamma(2.0, 0.1)})
    assert list(both.learned) == ["df"]
    alone = cb.MixedRegression(family=family, learned=cb.HalfNormal(2.0))
    assert alone.learned == {"scale": cb.HalfNormal(2.0)}
    with pytest.raises(ValueError, match="no constant 'noise' that could be learned; it has scale"):
        cb.MixedRegression(family=family, learned={"noise": cb.HalfNormal(2.0)})
    with pytest.raises(TypeError, match="a prior such as"):
        cb.MixedRegression(family=family, learned={"df": 3.0})
    rows = open_rows(table("gamma", beside=False), target="y", features=["one", "x"])
    unknown = cb.MixedRegression(family=cb.GammaRegression(prior=cb.Normal())).bind(rows)
    assert [one.name for one in unknown.constants] == ["shape"]
    assert cb.MixedRegression(family=cb.GammaRegression(shape=2.0, prior=cb.Normal())).learned == {}
