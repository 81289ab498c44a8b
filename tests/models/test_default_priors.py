"""Priors where none is given, priors by name, and what becomes of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import corebayes as cb
from corebayes.models import from_config
from corebayes.rows import open_rows


def rows(num_rows=400, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [
            rng.gamma(2.0, 0.4, num_rows),
            1990.0 + rng.integers(0, 30, num_rows),
            1e-6 * rng.normal(size=num_rows),
        ]
    )
    return X, rng


def digits(value):
    return float(f"{value:.3g}")


def linear_rows():
    X, rng = rows()
    return X, 4000.0 + 7000.0 * X[:, 0] + 1500.0 * rng.normal(size=len(X))


def test_coefficients_are_scaled_by_target_and_column():
    X, y = linear_rows()
    model = cb.LinearRegression(noise_sd=1500.0, intercept=True).bind(open_rows((X, y)))
    scales = [digits(2.5 * y.std() / X[:, k].std()) for k in range(3)]
    middle, width = digits(y.mean()), digits(2.5 * y.std())
    draws = np.random.default_rng(1).normal(size=(5, 4)) * [*scales, width]
    at_means = draws[:, :3] @ X.mean(axis=0) + draws[:, 3]
    expected = stats.norm(0.0, scales).logpdf(draws[:, :3]).sum(axis=1)
    expected += stats.norm(middle, width).logpdf(at_means)
    np.testing.assert_allclose(model.log_prior(draws), expected, rtol=1e-9)


@pytest.mark.parametrize("labels", [(0.0, 1.0), (-1.0, 1.0)])
def test_a_logistic_intercept_is_at_the_log_odds(labels):
    X, rng = rows()
    y = np.where(rng.uniform(size=len(X)) < 0.2, labels[1], labels[0])
    model = cb.LogisticRegression(intercept=True).bind(open_rows((X, y)))
    share = np.mean(y == 1.0)
    name, prior, source = model.priors()[-1]
    assert (name, source) == ("intercept", "default")
    middle = float(prior.removeprefix("Normal(").split(",")[0])
    assert middle == pytest.approx(np.log(share / (1.0 - share)), abs=0.02)
    assert model.priors()[0][1] == f"Normal(0, {digits(2.5 / X[:, 0].std()):g})"


def test_rows_count_as_often_as_they_say():
    X, y = linear_rows()
    counts = np.random.default_rng(2).integers(0, 4, size=len(y)).astype(float)
    weighted = cb.LinearRegression(intercept=True).bind(open_rows((X, y), counts=counts))
    repeated = np.repeat(np.arange(len(y)), counts.astype(int))
    written = cb.LinearRegression(intercept=True).bind(open_rows((X[repeated], y[repeated])))
    assert weighted.priors() == written.priors()


def test_the_column_of_a_formula_is_the_intercept():
    pandas = pytest.importorskip("pandas")
    X, y = linear_rows()
    frame = pandas.DataFrame({"carat": X[:, 0], "year": X[:, 1], "price": y})
    model, data = cb.from_formula("price ~ carat + year", frame, family="gaussian")
    by_formula = model.bind(data)
    by_hand = cb.LinearRegression(intercept=True).bind(open_rows((X[:, :2], y)))
    assert by_formula.priors()[0][1:] == by_hand.priors()[2][1:]
    assert by_formula.priors()[3] == by_hand.priors()[3] == (
        "noise_sd", f"HalfStudentT(4, {digits(y.std()):g})", "default"
    )  # fmt: skip
    theta = np.array([[4000.0, 7000.0, -3.0, 7.0]])
    np.testing.assert_allclose(
        by_formula.log_prior(theta), by_hand.log_prior(theta[:, [1, 2, 0, 3]]), rtol=1e-12
    )


@pytest.mark.filterwarnings("ignore:column")
@pytest.mark.parametrize(
    "column",
    [np.zeros(30), np.full(30, 7.0), np.arange(30), 1e200 * np.arange(30.0), np.full(30, -1e-9)],
    ids=["zeros", "constant", "integers", "huge", "tiny"],
)
def test_any_column_has_a_proper_prior(column):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=30), column])
    y = rng.integers(0, 2, size=30)
    model = cb.LogisticRegression(intercept=True).bind(open_rows((X, y)))
    theta = np.zeros((1, 3))
    assert np.isfinite(model.log_prior(theta)).all()
    assert np.isfinite(model.log_prior_gradient(theta[0])).all()
    # The column of ones that was asked for is the intercept, whatever else is constant.
    assert "means of all columns" in model.priors()[2][1]


@pytest.mark.filterwarnings("ignore:column")
def test_one_row_has_priors():
    data = open_rows((np.array([[3.0]]), np.array([5.0])))
    model = cb.LinearRegression(intercept=True).bind(data)
    assert np.isfinite(model.log_prior(np.array([[0.0, 5.0, 0.0]]))).all()


def test_priors_by_name_stand_beside_the_defaults():
    X, y = linear_rows()
    given = {"beta[1]": cb.Normal(1.0, 2.0), "Intercept": cb.Normal(-7.0, 3.0)}
    model = cb.LinearRegression(noise_sd=10.0, intercept=True, prior=given).bind(open_rows((X, y)))
    assert [row[2] for row in model.priors()] == ["default", "given", "default", "given"]
    # A given prior is of the intercept itself, not of the predictor at the columns' means.
    scales = [digits(2.5 * y.std() / X[:, k].std()) for k in (0, 2)]
    theta = np.array([[5.0, 2.0, 1e3, -6.0]])
    expected = stats.norm(0.0, scales).logpdf(theta[0, [0, 2]]).sum()
    expected += stats.norm(1.0, 2.0).logpdf(2.0) + stats.norm(-7.0, 3.0).logpdf(-6.0)
    assert model.log_prior(theta)[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("prior", "error", "message"),
    [
        ({"bta[1]": cb.Normal()}, ValueError, "did you mean 'beta\\[1\\]'"),
        ({"beta[0]": cb.HalfNormal()}, TypeError, "a coefficient may be negative"),
        ({"noise_sd": cb.Flat()}, ValueError, "prior of 'noise_sd' is flat"),
        ({"noise_sd": 3.0}, TypeError, "prior of 'noise_sd'"),
        ({3: cb.Normal()}, TypeError, "names of parameters"),
        ({"beta[0]": cb.Normal([0.0, 1.0])}, ValueError, "of one number"),
        (cb.HalfNormal(), TypeError, "of a positive number"),
        (1.0, TypeError, "must be a prior such as"),
    ],
)
def test_wrong_priors_are_refused(prior, error, message):
    with pytest.raises(error, match=message):
        cb.LinearRegression(prior=prior).bind(open_rows(linear_rows()))


@pytest.mark.parametrize(
    "model",
    [
        cb.LogisticRegression(intercept=True),
        cb.LinearRegression(intercept=True),
        cb.LinearRegression(
            prior={"beta[0]": cb.StudentT(3.0, 1.0, 9.0), "noise_sd": cb.HalfNormal(2e3)}
        ),
        cb.LinearRegression(noise_sd=2.0, prior=cb.DoubleExponential(0.0, 5.0)),
        cb.StudentTRegression(df=4.0, prior={"beta[2]": cb.Flat()}),
    ],
)
def test_bound_priors_come_back_from_a_file_and_stay(model):
    X, y = linear_rows()
    if isinstance(model, cb.LogisticRegression):
        y = (y > np.median(y)) * 1.0
    bound = model.bind(open_rows((X, y)))
    again = from_config(type(bound).__name__, bound.config())
    assert again.config() == bound.config() and again.priors() == bound.priors()
    draws = np.random.default_rng(0).normal(size=(3, bound.dim))
    np.testing.assert_array_equal(again.log_prior(draws), bound.log_prior(draws))
    # Other rows have another scale; the priors are those of the first.
    other = bound.bind(open_rows((10.0 * X[:50], y[:50])))
    np.testing.assert_array_equal(other.log_prior(draws), bound.log_prior(draws))
    assert str(bound) == repr(bound) and "y ~ " in repr(bound)
    assert all(name in repr(bound) for name, _, _ in bound.priors())


def test_fewer_columns_keep_their_priors():
    X, y = linear_rows()
    coreset = cb.build(cb.LinearRegression(intercept=True), (X, y), size=20, seed=0)
    changed = cb.refit(coreset, features=[0, 2], draws=100, chains=2, tune=100)
    before, after = dict((r[0], r[1:]) for r in coreset.model.priors()), changed.coreset.model
    assert len(after.priors()) == 4
    for (_, *rest), place in zip(after.priors()[:2], (0, 2), strict=True):
        assert tuple(rest) == coreset.model.priors()[place][1:]
    assert after.priors()[-1][1:] == before["noise_sd"]


def test_a_binomial_intercept_is_at_the_log_odds_of_a_trial():
    X, rng = rows()
    n = rng.integers(0, 9, len(X)).astype(float)
    y = rng.binomial(n.astype(int), 0.9).astype(float)
    data = {"X": np.column_stack([X, n, np.ones(len(X))]), "y": y}
    model = cb.BinomialRegression(trials=3).bind(open_rows(data))
    middle = float(model.priors()[-1][1].removeprefix("Normal(").split(",")[0])
    share = np.mean(y / np.maximum(n, 1.0))
    assert middle == pytest.approx(np.log(share / (1.0 - share)), abs=0.02)


def test_a_bound_model_is_written_with_the_name_of_its_target(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, rng = rows()
    frame = pandas.DataFrame({"a": X[:, 0], "bought": rng.integers(0, 2, len(X))})
    frame["spent"] = np.exp(rng.normal(size=len(X)))
    for target, family in (("bought", "bernoulli"), ("spent", "gamma")):
        model, data = cb.from_formula(f"{target} ~ a", frame, family=family)
        coreset = cb.build(model, data, size=12, progress=False)
        coreset.save(tmp_path / "c.parquet")
        for one in (coreset, cb.load(tmp_path / "c.parquet")):
            assert f"\n{target} ~ " in repr(one.model)
            assert one.model.statement().startswith(f"{target} ~ ")


def test_a_name_unlike_all_others_suggests_none():
    X, y = linear_rows()
    data = open_rows({"X": X, "y": y})
    with pytest.raises(ValueError, match="prior names 'ba', which is no parameter; the parameters"):
        cb.LinearRegression(prior={"ba": cb.Normal()}).bind(data)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"income": X[:, 0], "y": y})
    with pytest.raises(ValueError, match="'nope', which is no parameter; the parameters are"):
        cb.LinearRegression(prior={"nope": cb.Normal()}).bind(open_rows(frame, target="y"))


def test_a_cutpoint_does_not_depend_on_where_a_column_has_its_zero():
    """Under N(0, 5²) a year's coefficient was .03 where it is .1: its cutpoints are at 200."""
    rng = np.random.default_rng(12)
    year = rng.integers(1990, 2021, 400).astype(float)
    level = np.digitize(0.1 * (year - 2005.0) + rng.logistic(size=400), [-1.0, 0.5, 2.0])
    found = []
    for zero in (0.0, 2005.0):
        frame = pd.DataFrame({"year": year - zero, "y": level})
        model, rows = cb.from_formula("y ~ year", frame, family="ordinal")
        model = model.bind(rows)
        posterior = cb.Posterior(model, rows.take(np.arange(400)), np.ones(400))
        fit = cb.Laplace().fit(posterior)
        found.append((fit.mean[0], np.linalg.norm(fit.factor[0])))
    (raw, sd), (centred, _) = found
    assert abs(raw - centred) < 0.2 * sd and raw > 0.07
    priors = {name: prior for name, prior, _ in model.priors()}
    assert priors["cutpoint_1"] == "Normal(0, 5)"
