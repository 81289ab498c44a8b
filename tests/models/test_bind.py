"""What is fixed and what is refused when a model meets its data."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import corebayes as cb
from corebayes.data.arrays import ArrayData
from corebayes.models import (
    GaussianMean,
    LinearRegression,
    LogisticRegression,
    NegativeBinomialRegression,
    Normal,
    PoissonRegression,
    StudentTRegression,
)
from corebayes.rows import open_rows
from tests.models.cases import FAMILIES, NAMES
from tests.opened import read


def rows(num_rows=50, seed=0):
    return np.random.default_rng(seed).normal(size=(num_rows, 3))


def sharded(X, y, shard_rows=7, **fields):
    arrays = {"X": X, "y": np.asarray(y)}
    return open_rows(ArrayData(fields=arrays, shard_rows=shard_rows, **fields))


@pytest.mark.parametrize("labels", [[0.0, 1.0], [-1.0, 1.0], [False, True], [0, 1]])
def test_label_forms_mean_the_same(labels):
    X, truth = rows(), np.random.default_rng(1).integers(0, 2, size=50)
    data = open_rows((X, np.array(labels)[truth]))
    model = LogisticRegression(prior=Normal()).bind(data)
    block = read(data, 0, 50)
    np.testing.assert_array_equal(model.target(block), 2.0 * truth - 1.0)
    draws = np.random.default_rng(2).normal(size=(3, 3))
    signed = (2 * truth - 1)[:, None] * (X @ draws.T)
    np.testing.assert_allclose(
        model.potentials(draws, block), -np.log1p(np.exp(-signed)), rtol=1e-12
    )


@pytest.mark.parametrize("label", [-1.0, 0.0, 1.0])
def test_one_class_is_enough(label):
    model = LogisticRegression(prior=Normal()).bind(open_rows((rows(), np.full(50, label))))
    assert model.dim == 3


@pytest.mark.parametrize(("usual", "odd"), [(0.0, -1.0), (-1.0, 0.0)])
@pytest.mark.parametrize("row", [5, 35, 40])
@pytest.mark.parametrize("shard_rows", [7, 100])
def test_mixed_labels_are_refused(usual, odd, row, shard_rows):
    y = np.where(np.arange(50) % 3 == 0, 1.0, usual)
    y[row] = odd
    with pytest.raises(ValueError, match=f"row {row}, column 'y': {odd} .*have {usual:g} for"):
        LogisticRegression(prior=Normal()).bind(sharded(rows(), y, shard_rows))


BAD_TARGETS = [
    (LogisticRegression(prior=Normal()), 2.0, "0 and 1, or -1 and 1"),
    (LogisticRegression(prior=Normal()), 0.5, "0 and 1, or -1 and 1"),
    (PoissonRegression(link="softplus", prior=Normal()), -1.0, "counts must be 0, 1, 2"),
    (PoissonRegression(link="log", prior=Normal()), 1.5, "counts must be 0, 1, 2"),
    (NegativeBinomialRegression(dispersion=1.0, prior=Normal()), -3.0, "counts must be 0, 1, 2"),
]


@pytest.mark.parametrize(("model", "value", "rule"), BAD_TARGETS)
def test_a_bad_target_is_named(model, value, rule):
    y = np.ones(50)
    y[[33, 41]] = value
    name = type(model).__name__
    with pytest.raises(ValueError, match=f"row 33, column 'y': {value!r} .* {name}: .*{rule}"):
        model.bind(sharded(rows(), y))
    with pytest.raises(ValueError, match="row 33, column 'sales'"):
        model.bind(sharded(rows(), y, target_name="sales"))


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_a_target_that_is_no_number_is_named_before_what_the_family_says(value):
    y = np.ones(50)
    y[[3, 33]] = 7.0, value
    with pytest.raises(ValueError, match=f"row 33, y is {value}; 1 of 50 rows"):
        LogisticRegression(prior=Normal()).bind(sharded(rows(), y))


@pytest.mark.parametrize(("model", "value", "rule"), BAD_TARGETS)
def test_rows_that_count_zero_times_are_not_checked(model, value, rule):
    y = np.ones(50)
    y[33] = value
    counts = np.ones(50)
    counts[33] = 0.0
    assert model.bind(sharded(rows(), y, counts=counts)).dim == 3
    counts[[33, 4]] = 2.0, 0.0
    with pytest.raises(ValueError, match="row 33"):
        model.bind(sharded(rows(), y, counts=counts))


@pytest.mark.parametrize("family", FAMILIES, ids=NAMES)
def test_names_and_dimension(family):
    data = family.data()
    model = family.model
    with pytest.raises(ValueError, match=r"call model.bind\(data\) first"):
        _ = model.dim
    bound = model.bind(data)
    assert bound.parameter_names == ("beta[0]", "beta[1]", "beta[2]")
    assert bound.dim == 3
    assert model.bound is None
    frame = pd.DataFrame(read(data, 0, 40).X, columns=["age", "height", "dose"])
    frame["outcome"] = read(data, 0, 40).y
    known = replace(model, intercept=True, prior=Normal())
    named = known.bind(open_rows(frame, target="outcome"))
    assert named.parameter_names == ("age", "height", "dose", "intercept")
    again = pickle.loads(pickle.dumps(bound))
    draws = np.ones((2, 3))
    np.testing.assert_array_equal(again.log_prior(draws), bound.log_prior(draws))


def test_other_refusals():
    X, y = rows(), np.ones(50)
    with pytest.raises(ValueError, match="no field 'y'"):
        LogisticRegression(prior=Normal()).bind(open_rows(X))
    with pytest.raises(ValueError, match="no field 'X'"):
        LogisticRegression(prior=Normal()).bind(open_rows({"x": X, "y": y}))
    with pytest.raises(ValueError, match="X must have two axes and y one"):
        LogisticRegression(prior=Normal()).bind(open_rows({"X": X, "y": np.ones((50, 2))}))
    with pytest.raises(ValueError, match="no rows"):
        LogisticRegression(prior=Normal()).bind(sharded(X[:0], y[:0]))
    with pytest.raises(ValueError, match="already called 'intercept'"):
        frame = pd.DataFrame(X, columns=["a", "intercept", "b"]).assign(y=y)
        LogisticRegression(intercept=True, prior=Normal()).bind(open_rows(frame, target="y"))
    with pytest.raises(ValueError, match=r"prior's mean is for 3 parameters, .* has 4"):
        LogisticRegression(intercept=True, prior=Normal([0.0, 0.0, 1.0])).bind(open_rows((X, y)))
    with pytest.raises(ValueError, match="takes rows X alone, the data has X, y"):
        GaussianMean().bind(open_rows((X, y)))
    with pytest.raises(ValueError, match="cov is for 2 columns, but X has 3"):
        GaussianMean([1.0, 2.0]).bind(open_rows(X))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: PoissonRegression(link="sqrt", prior=Normal()),
            ValueError,
            "'log' or 'softplus', got 'sqrt'",
        ),
        (
            lambda: StudentTRegression(df=0.0, scale=1.0, prior=Normal()),
            ValueError,
            "df must be positive and finite, got 0.0",
        ),
        (
            lambda: StudentTRegression(scale=-1.0, df=4.0, prior=Normal()),
            ValueError,
            "scale must be positive",
        ),
        (
            lambda: StudentTRegression(df=np.inf, scale=1.0, prior=Normal()),
            ValueError,
            "df must be positive and finite",
        ),
        (
            lambda: NegativeBinomialRegression(dispersion=np.nan, prior=Normal()),
            ValueError,
            "dispersion must be",
        ),
        (
            lambda: NegativeBinomialRegression(dispersion="1", prior=Normal()),
            TypeError,
            "must be a number",
        ),
        (lambda: LinearRegression(0.0, prior=Normal()), ValueError, "noise_sd must be positive"),
        (
            lambda: LinearRegression(True, prior=Normal()),
            TypeError,
            "noise_sd must be a number, got True",
        ),
        (lambda: GaussianMean(-1.0), ValueError, "cov must be positive, got -1.0"),
        (lambda: GaussianMean([[1.0, 2.0], [2.0, 1.0]]), ValueError, "cov must be positive def"),
        (lambda: GaussianMean([[1.0, 0.1], [0.0, 1.0]]), ValueError, "cov must be symmetric"),
    ],
)
def test_constants_are_checked_when_given(make, error, message):
    with pytest.raises(error, match=message):
        make()


def deficient(kind):
    X = np.random.default_rng(3).normal(size=(60, 5)) * [1.0, 100.0, 1e-3, 5.0, 1.0] + 1.0
    if kind == "zero":
        X[:, 2] = 0.0
    elif kind == "same":
        X[:, 4] = X[:, 1]
    elif kind == "proportional":
        X[:, 4] = -3.0 * X[:, 2]
    elif kind == "constant":
        X[:, 3] = 7.0
    elif kind == "dependent":
        X[:, 0] = X[:, 2] - 0.5 * X[:, 3]
    elif kind == "several":
        X[:, 0] = 0.0
        X[:, 4] = X[:, 1]
    return X


@pytest.mark.parametrize(
    ("kind", "intercept", "message"),
    [
        ("zero", False, "^column 'c' is all zero: "),
        ("same", False, "^columns 'b' and 'e' are the same up to sign: "),
        ("proportional", False, "^columns 'c' and 'e' are proportional up to sign: "),
        ("constant", True, "^columns 'd' and 'intercept' are proportional up to sign: "),
        ("dependent", False, "^columns 'a', 'c' and 'd' are linearly dependent: "),
        ("several", True, "^column 'a' is all zero; columns 'b' and 'e' are the same up to sign: "),
    ],
)
def test_dependent_columns_give_one_warning(kind, intercept, message):
    X = deficient(kind)
    y = np.random.default_rng(4).normal(size=60)
    data = sharded(X, y, column_names=tuple("abcde"))
    with pytest.warns(UserWarning, match=message) as caught:
        model = LinearRegression(intercept=intercept, noise_sd=1.0, prior=Normal()).bind(data)
    assert len(caught) == 1
    posterior = model.posterior(model.statistics(read(data, 0, 60)))
    design = model.design(read(data, 0, 60))
    expected = np.linalg.solve(design.T @ design + np.eye(model.dim), design.T @ y)
    np.testing.assert_allclose(design @ posterior.mean, design @ expected, rtol=1e-6, atol=1e-8)


def test_only_rows_that_count_decide_the_rank():
    X = deficient("same")
    X[10, 4] += 1.0
    counts = np.ones(60)
    y = np.zeros(60)
    LinearRegression(noise_sd=1.0, prior=Normal()).bind(sharded(X, y, counts=counts))
    counts[10] = 0.0
    with pytest.warns(UserWarning, match="'beta\\[1\\]' and 'beta\\[4\\]' are the same"):
        LinearRegression(noise_sd=1.0, prior=Normal()).bind(sharded(X, y, counts=counts))


@pytest.mark.parametrize("intercept", [False, True])
def test_a_design_that_is_only_badly_scaled_gives_no_warning(intercept):
    rng = np.random.default_rng(5)
    year = 2000.0 + rng.integers(0, 25, size=500)
    X = np.column_stack([year, year + 1e-2 * rng.normal(size=500), 1e-9 * rng.normal(size=500)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LinearRegression(intercept=intercept, noise_sd=1.0, prior=Normal()).bind(
            sharded(X, rng.normal(size=500), 64)
        )


def test_more_columns_than_rows_warns():
    with pytest.warns(UserWarning, match="and 10 more are linearly dependent"):
        LinearRegression(noise_sd=1.0, prior=Normal()).bind(
            sharded(np.random.default_rng(6).normal(size=(8, 20)), np.ones(8))
        )


def test_features_too_large_to_square_are_no_error():
    X = rows() * 1e200
    assert LinearRegression(noise_sd=1.0, prior=Normal()).bind(sharded(X, np.ones(50))).dim == 3


def test_a_formula_model_does_not_say_that_it_has_no_intercept():
    model, _ = cb.from_formula("y ~ x", pd.DataFrame({"y": [0.0, 1, 1], "x": [1.0, 2, 4]}))
    assert "intercept" not in repr(model)
    assert repr(cb.LinearRegression(intercept=True)) == "LinearRegression(intercept=True)"
