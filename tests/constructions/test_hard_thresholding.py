"""HardThresholding against the formulas on dense matrices."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.diagnostics import laplace_kl
from corebayes.rows import open_rows
from tests.constructions.dense import CASES, dense, paths, repeated
from tests.problems import coins


def a_iht_2(G, counts, size, num_steps):
    total = counts @ G
    weights, last, tau, history = np.zeros(len(G)), np.zeros(len(G)), 0.0, []

    def slopes(at):
        return np.where(counts > 0, 2.0 * G @ (total - at @ G), 0.0)

    def step(values):
        return values @ values / (2.0 * np.sum((values @ G) ** 2))

    for _ in range(num_steps):
        y = weights + tau * (weights - last)
        ascent = slopes(y)
        off = np.where(y != 0, 0.0, np.abs(ascent))
        chosen = (y != 0) | (off >= np.sort(off)[-size])
        moved = np.maximum(y + step(np.where(chosen, ascent, 0.0)) * ascent, 0.0)
        moved[np.argsort(-moved)[size:]] = 0.0
        ascent = np.where(moved > 0, slopes(moved), 0.0)
        moved = np.maximum(moved + step(ascent) * ascent, 0.0)
        last, weights = weights, moved
        change = (weights - last) @ G
        tau = (total - weights @ G) @ change / (change @ change)
        history.append(weights)
    return history


@pytest.mark.parametrize("name", ["gaussian", "logistic", "poisson"])
@pytest.mark.parametrize("counted", [False, True])
def test_equals_the_formulas(name, counted):
    case = dense(name, counts=repeated(name)[1] if counted else None)
    method = cb.HardThresholding(weighting=case.weighting)
    history = paths(method, case, 6, 12)
    expected = a_iht_2(case.G, case.counts, 6, len(history))
    assert len(history) >= 10
    for ours, theirs in zip(history, expected, strict=True):
        assert np.allclose(ours, theirs, rtol=1e-9, atol=1e-10 * theirs.max())


def test_ends_where_the_weights_are_best_for_their_rows():
    case = dense("logistic", num_rows=100, num_draws=80)
    method = cb.HardThresholding(weighting=case.weighting, tolerance=1e-9, num_iterations=5000)
    weights = paths(method, case, 6, 5000)[-1]
    support = weights > 0
    slopes = case.G[support] @ (case.total - weights @ case.G)
    scale = np.linalg.norm(case.G[support], axis=1) * np.linalg.norm(case.total)
    assert np.count_nonzero(support) <= 6
    assert np.all(np.abs(slopes) < 1e-6 * scale)


def test_beats_uniform_and_frank_wolfe():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 8))
    y = coins(rng, X @ np.linspace(-1.0, 1.5, 8))
    data = open_rows((X, y))
    kls = [
        laplace_kl(
            cb.build(cb.LogisticRegression(prior=cb.Normal()), data, size=60, method=method), data
        )
        for method in (cb.Uniform(), cb.FrankWolfe(), cb.HardThresholding())
    ]
    assert kls[2] < 0.2 * kls[1] < 0.2 * 0.1 * kls[0]


def test_counts_of_two_double_the_weights():
    data, model = CASES["poisson"].data(num_rows=25), CASES["poisson"].model
    method = cb.HardThresholding(weighting=dense("poisson").weighting, num_iterations=8)
    once = cb.build(model, data, size=6, method=method)
    twice = cb.build(model, data, size=6, method=method, counts=np.full(25, 2.0))
    assert np.array_equal(once.indices, twice.indices)
    assert np.allclose(twice.weights, 2.0 * once.weights, rtol=1e-10)


def test_reasons():
    data, model = CASES["logistic"].data(num_rows=60), CASES["logistic"].model
    short = cb.build(model, data, size=10, method=cb.HardThresholding(num_iterations=3))
    assert short.reason == "3 steps done" and len(short.trace) == 3
    still = cb.build(model, data, size=10, method=cb.HardThresholding(num_iterations=5000))
    assert still.reason == "the weights move by less than 1e-05 of their length"
    with pytest.raises(ValueError, match="HardThresholding needs a size"):
        cb.build(model, data, tol=0.1, method=cb.HardThresholding())
    X = np.zeros((20, 2))
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="constant in θ"):
        cb.build(
            cb.LogisticRegression(prior=cb.Normal()),
            (X, np.arange(20) % 2),
            size=5,
            method=cb.HardThresholding(),
        )
