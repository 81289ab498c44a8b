"""Which rows alone tell some coefficients, and coresets that keep them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import corebayes as cb
from corebayes.build.rare import rare_levels
from corebayes.build.stand_ins import in_coreset
from corebayes.problem import Problem
from corebayes.rows import open_rows

RARE = {"a": 1, "b": 2, "c": 3, "d": 5, "e": 8, "f": 15}


def visits(num_rows, family, seed, rare=RARE, common="L"):
    """Twelve common levels, and rare ones whose rows all agree."""
    rng = np.random.default_rng(seed)
    level = rng.integers(12, size=num_rows)
    place = np.array([f"{common}{k:02d}" for k in level], dtype=object)
    x = rng.normal(size=num_rows)
    eta = -0.5 + 0.5 * x + 0.1 * (level - 6)
    trials = np.full(num_rows, 1 if family == "bernoulli" else 4)
    if family in ("bernoulli", "binomial"):
        y = rng.binomial(trials, 1.0 / (1.0 + np.exp(-eta)))
    else:
        y = rng.poisson(np.exp(eta))
    start, order = 0, rng.permutation(num_rows)
    for name, number in rare.items():
        rows = order[start : start + number]
        place[rows] = name
        y[rows] = trials[rows] * rng.integers(2) if family in ("bernoulli", "binomial") else 0
        start += number
    return pd.DataFrame({"y": y, "x": x, "place": place, "n": trials})


def found(X, *, intercept=False):
    """The problem, and its rare levels."""
    y = (np.arange(len(X)) % 3 == 0).astype(float)
    rows = open_rows((X, y))
    model = cb.LogisticRegression(prior=cb.Normal(0.0, 5.0), intercept=intercept).bind(rows)
    problem = Problem(model, rows)
    return problem, rare_levels(problem, model)


def numbers(rare):
    return sorted(np.concatenate([level.indices for level in rare.levels]).tolist())


def coded(how):
    """Levels of 900, 400, 4 and 2 rows, and a slope."""
    rng = np.random.default_rng(1)
    level = rng.permutation(np.repeat([0, 1, 2, 3], [900, 400, 4, 2]))
    dummies = (level[:, None] == np.arange(4)).astype(float)
    x = rng.normal(size=(len(level), 1))
    ones = np.ones((len(level), 1))
    designs = {
        "dummies": np.hstack([ones, x, dummies[:, 1:]]),
        "a rare reference": np.hstack([ones, x, dummies[:, :3]]),
        "standardised": np.hstack(
            [ones, x, (dummies[:, 1:] - dummies[:, 1:].mean(0)) / dummies[:, 1:].std(0)]
        ),
        "to sum": np.hstack([ones, x, dummies[:, 1:] - dummies[:, :1]]),
        "one for each": np.hstack([x, dummies]),
        "dependent": np.hstack([ones, x, dummies]),
    }
    return level, designs[how]


@pytest.mark.filterwarnings("ignore:.*linearly dependent")
@pytest.mark.parametrize(
    "how",
    ["dummies", "a rare reference", "standardised", "to sum", "one for each", "dependent"],
)
def test_rare_levels_are_found_however_they_are_coded(how):
    level, X = coded(how)
    _, rare = found(X)
    # The rarest first.
    found_levels = [one.indices.tolist() for one in rare.levels]
    assert found_levels == [np.flatnonzero(level == k).tolist() for k in (3, 2)]
    # Without these columns the other rows see all that they saw.
    columns = rare.columns(rare.levels)
    rest = X[level < 2]
    assert columns.size == 2
    without = np.delete(rest, columns, axis=1)
    assert np.linalg.matrix_rank(without) == np.linalg.matrix_rank(rest)


@pytest.mark.slow
def test_whole_levels_are_kept_the_rarest_first():
    level, X = coded("dummies")
    problem, rare = found(X)
    ((_, kept, nats),) = in_coreset(problem, rare, 2)
    assert nats == 0.0
    assert kept.indices.tolist() == np.flatnonzero(level == 3).tolist()
    assert in_coreset(problem, rare, 1) == []


def test_outliers_are_no_rare_levels():
    X = np.random.default_rng(0).standard_t(1.5, size=(500, 4))
    assert found(X)[1] is None


def test_an_intercept_of_the_model_counts_as_a_column():
    level, X = coded("a rare reference")
    _, rare = found(X[:, 1:], intercept=True)
    assert numbers(rare) == np.flatnonzero(level >= 2).tolist()


@pytest.mark.parametrize(
    ("family", "common", "num_rows"),
    [
        ("bernoulli", "L", 5_000),
        pytest.param("bernoulli", "common", 30_000, marks=pytest.mark.slow),
        pytest.param("poisson", "L", 20_000, marks=pytest.mark.slow),
        pytest.param("binomial", "L", 5_000, marks=pytest.mark.slow),
    ],
)
def test_rows_of_levels_that_agree_are_kept_and_the_coreset_is_certified(family, common, num_rows):
    # "common" comes after the rare "a", which is then the reference of all others.
    frame = visits(num_rows, family, seed=num_rows, common=common)
    formula = "p(y, n) ~ x + place" if family == "binomial" else "y ~ x + place"
    model, rows = cb.from_formula(formula, frame, family=family)
    coreset = cb.build(model, rows, size=200, seed=1)
    kept = frame["place"].isin(RARE).to_numpy()[coreset.indices]
    assert kept.sum() == sum(RARE.values())
    assert np.all(coreset.weights[kept] == 1.0)
    assert coreset.size <= 200
    assert coreset.provenance["passes"] <= 16.0
    certificate = cb.certify(coreset, rows, seed=2)
    assert certificate.certified
    assert certificate.reverse_kl.value < 1e-3


@pytest.mark.parametrize("family", [pytest.param("bernoulli", marks=pytest.mark.slow), "poisson"])
def test_few_rows_stand_for_levels_that_are_too_large_to_be_kept(family):
    large = {"a": 2, "b": 15, "c": 40, "d": 90}
    frame = visits(20_000, family, seed=5, rare=large)
    model, rows = cb.from_formula("y ~ x + place", frame, family=family)
    coreset = cb.build(model, rows, size=60, seed=1)
    kept = frame["place"].to_numpy()[coreset.indices]
    for name, number in large.items():
        own = coreset.weights[kept == name]
        assert 0 < own.size <= 10
        # About the rows that they stand for: the slope in x is as small as it is.
        assert abs(own.sum() / number - 1.0) < 0.3
    assert coreset.size <= 60
    assert coreset.provenance["passes"] <= 16.0
    certificate = cb.certify(coreset, rows, seed=2)
    assert certificate.certified
    assert certificate.reverse_kl.value < 1e-3


def test_counted_rows_are_kept_with_their_counts():
    level, X = coded("dummies")
    y = (np.arange(len(X)) % 3 == 0).astype(float)
    counts = 1.0 + np.arange(len(X)) % 2
    model = cb.LogisticRegression(prior=cb.Normal(0.0, 50.0))
    coreset = cb.build(model, (X, y), counts=counts, size=60)
    kept = level[coreset.indices] >= 2
    assert kept.sum() == 6
    assert np.array_equal(coreset.weights[kept], counts[coreset.indices[kept]])


@pytest.mark.slow
def test_a_tolerance_is_reached_and_a_start_goes_on():
    frame = visits(5_000, "bernoulli", seed=4)
    model, rows = cb.from_formula("y ~ x + place", frame, family="bernoulli")
    coreset = cb.build(model, rows, tol=0.05, seed=1)
    assert coreset.reason.startswith("certified")
    larger = cb.build(model, rows, size=coreset.size + 20, start=coreset, seed=1)
    assert set(RARE) <= set(frame["place"].to_numpy()[larger.indices])
    assert cb.certify(larger, rows, seed=3).certified


def test_a_construction_of_choice_sees_all_rows():
    level, X = coded("dummies")
    y = (np.arange(len(X)) % 3 == 0).astype(float)
    model = cb.LogisticRegression(prior=cb.Normal(0.0, 5.0))
    coreset = cb.build(model, (X, y), size=20, method=cb.Uniform())
    assert (level[coreset.indices] >= 2).sum() < 6


@pytest.mark.slow
def test_a_path_keeps_them_too():
    model, rows = cb.from_formula("y ~ x + place", visits(2500, "bernoulli", 0), family="bernoulli")
    sizes = [8, 60, 90]
    path = cb.build_path(model, rows, sizes=sizes, progress=False)
    assert len(path) == 3
    for size, coreset in zip(sizes, path, strict=True):
        assert coreset.size <= size
    assert path[-1].provenance["passes"] < 16
    assert cb.certify(path[1], rows, seed=1).certified
