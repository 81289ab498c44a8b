"""AnnealedSparseVI reaches posteriors that greedy steps from the prior do not."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.data import as_data
from corebayes.diagnostics import laplace_kl
from tests.contract.cases import MODELS

CASES = {case.name: case for case in MODELS}


def logistic_rows(num_rows, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(num_rows, 5)) @ (np.eye(5) + 0.3 * rng.normal(size=(5, 5)))
    return X, rng.uniform(size=num_rows) < 1 / (1 + np.exp(-X @ [1.5, -2.0, 0.5, 0.0, 0.7]))


@pytest.mark.parametrize("num_rows", [2_000, 60_000])
def test_as_many_points_as_quadratics_have_coefficients(num_rows):
    rows = logistic_rows(num_rows)
    coreset = cb.build(cb.LogisticRegression(), rows, size=21)
    assert coreset.size <= 21
    assert laplace_kl(coreset, as_data(rows)) < 1e-2
    assert coreset.provenance["passes"] < 20


def test_passes_do_not_grow_with_the_rows():
    passes = [
        cb.build(cb.LogisticRegression(), logistic_rows(n), size=21).provenance["passes"]
        for n in (30_000, 120_000)
    ]
    assert passes[1] < 1.5 * passes[0] + 1.0


@pytest.mark.parametrize("name", ["gaussian", "linear"])
def test_exact_for_conjugate_models(name):
    coreset = cb.build(CASES[name].model, CASES[name].data(num_rows=3_000), size=10)
    assert coreset.size <= 10
    assert coreset.trace[-1]["kl"] < 1e-7


def test_a_tolerance_alone_chooses_the_size():
    rows = logistic_rows(5_000)
    coreset = cb.build(cb.LogisticRegression(), rows, tol=0.02)
    assert coreset.reason == f"certified KL(π_w ‖ π) ≤ 0.02, twice, with {coreset.size} rows"
    assert coreset.size <= 40


@pytest.mark.parametrize("size", [1, 2, 5])
def test_tiny_sizes_work(size):
    coreset = cb.build(cb.LogisticRegression(), logistic_rows(2_000), size=size)
    assert 1 <= coreset.size <= size


def test_counts_equal_repeated_rows():
    X, y = logistic_rows(1_500)
    counts = np.random.default_rng(1).integers(0, 4, size=1_500)
    repeated = np.repeat(np.arange(1_500), counts)
    coreset = cb.build(cb.LogisticRegression(), (X, y), size=21, counts=counts.astype(float))
    everything = as_data((X[repeated], y[repeated]))
    same = cb.types.Coreset(
        coreset.indices, coreset.weights, coreset.rows, coreset.model, repeated.size, repeated.size
    )
    assert laplace_kl(same, everything) < 1e-2


def test_a_posterior_far_from_the_prior_is_reached_only_by_temperature():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 10))
    y = rng.random(60_000) < 1 / (1 + np.exp(-2.0 * X @ np.linspace(-1.0, 1.5, 10)))
    model, kls = cb.LogisticRegression(prior=cb.Normal(0.0, 10.0)), []
    for warming in (4.0, 1e9):
        method = cb.AnnealedSparseVI(warming=warming)
        kls.append(laplace_kl(cb.build(model, (X, y), size=66, method=method), as_data((X, y))))
    assert kls[0] < 1e-2 < 1.0 < kls[1]


@pytest.mark.parametrize("num_rows", [1, 3, 8])
def test_fewer_rows_than_parameters(num_rows):
    X, y = logistic_rows(num_rows)
    with pytest.warns(UserWarning, match="linearly dependent|proportional|same"):
        coreset = cb.build(cb.LogisticRegression(), (np.hstack([X, X]), y), size=num_rows)
    assert 1 <= coreset.size <= num_rows
