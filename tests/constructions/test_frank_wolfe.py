"""FrankWolfe against the formulas on dense matrices, and what theory says of its error."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.diagnostics import dense_weights
from tests.constructions.dense import CASES, dense, merged, paths, repeated


def frank_wolfe(G, counts, num_steps):
    norms = np.linalg.norm(G, axis=1)
    total, sigma = counts @ G, counts @ norms
    weights, history = np.zeros(len(G)), []
    for step in range(num_steps):
        scores = np.where(counts > 0, G @ (total - weights @ G) / norms, -np.inf)
        best = int(np.argmax(scores))
        corner = np.zeros(len(G))
        corner[best] = sigma / norms[best]
        if step == 0:
            weights = corner
        else:
            direction = (corner - weights) @ G
            gamma = direction @ (total - weights @ G) / (direction @ direction)
            weights = (1 - gamma) * weights + gamma * corner
        history.append(weights)
    return history


@pytest.mark.parametrize("name", ["gaussian", "logistic", "poisson"])
@pytest.mark.parametrize("counted", [False, True])
def test_equals_the_formulas(name, counted):
    case = dense(name, counts=repeated(name)[1] if counted else None)
    method = cb.FrankWolfe(weighting=case.weighting, num_iterations=20, patience=1)
    history = paths(method, case, None, 20)
    expected = frank_wolfe(case.G, case.counts, 20)
    assert len(history) == 20
    for ours, theirs in zip(history, expected, strict=True):
        assert np.allclose(ours, theirs, rtol=1e-10, atol=1e-10)
    assert np.count_nonzero(history[-1]) < 20, "the case must choose a row again"


def test_error_never_rises_and_goes_below_the_bound():
    """Campbell and Broderick 2019: the error is at most σ η̄ / √M, η̄ the diameter of the a_n."""
    case = dense("logistic", num_rows=200, num_draws=60)
    history = paths(cb.FrankWolfe(weighting=case.weighting, num_iterations=150), case, None, 150)
    errors = np.array([case.error(weights) for weights in history])
    norms = np.linalg.norm(case.G, axis=1)
    units = case.G / norms[:, None]
    diameter = np.sqrt(np.max(2.0 - 2.0 * units @ units.T))
    assert np.all(np.diff(errors) <= 0.0)
    assert np.all(errors <= norms.sum() * diameter / np.sqrt(np.arange(1, len(errors) + 1)))
    assert errors[-1] < 0.1 * np.linalg.norm(case.total)


def test_counts_equal_repeated_rows():
    data, counts, written = repeated("logistic")
    model, weighting = CASES["logistic"].model, dense("logistic").weighting
    method = cb.FrankWolfe(weighting=weighting, num_iterations=15)
    counted = cb.build(model, data, size=20, counts=counts, method=method)
    plain = cb.build(model, written, size=20, method=method)
    assert np.allclose(dense_weights(counted), merged(plain, counts), rtol=1e-9, atol=1e-9)


def test_refit_lowers_the_error_on_the_same_rows():
    case = dense("poisson", num_rows=60)
    plain = cb.FrankWolfe(weighting=case.weighting, num_iterations=12)
    refit = cb.FrankWolfe(weighting=case.weighting, num_iterations=12, refit=True)
    before, after = (paths(m, case, None, 12)[-1] for m in (plain, refit))
    assert set(np.flatnonzero(after)) <= set(np.flatnonzero(before))
    assert case.error(after) < 0.9 * case.error(before)
