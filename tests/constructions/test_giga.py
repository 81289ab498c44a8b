"""GIGA against the formulas on dense matrices, and what theory says of its error."""

import numpy as np
import pytest
from scipy.optimize import nnls

import corebayes as cb
from corebayes.constructions import hilbert
from corebayes.diagnostics import dense_weights, laplace_kl
from corebayes.rows import open_rows
from tests.constructions.dense import CASES, dense, merged, paths, repeated
from tests.problems import coins


def giga(G, counts, num_steps):
    norms = np.linalg.norm(G, axis=1)
    units, total = G / norms[:, None], counts @ G
    length = np.linalg.norm(total)
    goal = total / length
    shares, x, history = np.zeros(len(G)), np.zeros(G.shape[1]), []
    for step in range(num_steps):
        cosines = units @ x
        sines = np.sqrt(np.maximum(1 - cosines**2, 0))
        usable = (sines > 1e-7) & (counts > 0)
        scores = np.where(
            usable, units @ (goal - (goal @ x) * x) / np.where(usable, sines, 1.0), -np.inf
        )
        best = int(np.argmax(scores))
        one = np.zeros(len(G))
        one[best] = 1.0
        if step == 0:
            shares = one
        else:
            gA = goal @ units[best] - (goal @ x) * (x @ units[best])
            gB = goal @ x - (goal @ units[best]) * (x @ units[best])
            shares = gB * shares + gA * one
        shares = shares / np.linalg.norm(shares @ units)
        x = shares @ units
        history.append(length * (goal @ x) * shares / norms)
    return history


@pytest.mark.parametrize("name", ["gaussian", "logistic", "poisson"])
@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("kept", [True, False])
def test_equals_the_formulas(name, counted, kept, monkeypatch):
    monkeypatch.setattr(hilbert, "KEPT_VALUES", hilbert.KEPT_VALUES if kept else 0)
    case = dense(name, counts=repeated(name)[1] if counted else None)
    history = paths(
        cb.GIGA(weighting=case.weighting, num_iterations=20, patience=1), case, None, 20
    )
    expected = giga(case.G, case.counts, 20)
    assert len(history) == 20
    for ours, theirs in zip(history, expected, strict=True):
        assert np.allclose(ours, theirs, rtol=1e-10, atol=1e-10)
    assert np.count_nonzero(history[-1]) < 20, "the case must choose a row again"


def test_error_never_rises_and_ends_far_below_the_first():
    case = dense("logistic", num_rows=200, num_draws=60)
    history = paths(cb.GIGA(weighting=case.weighting, num_iterations=300), case, None, 300)
    errors = np.array([case.error(weights) for weights in history])
    assert np.all(np.diff(errors) <= 0.0)
    assert errors[0] <= np.linalg.norm(case.total)
    assert errors[-1] < 0.1 * errors[0]


def test_keeping_the_vectors_saves_passes_not_bits(monkeypatch):
    data, model = CASES["logistic"].data(num_rows=300), CASES["logistic"].model
    kept = cb.build(model, data, size=20, method=cb.GIGA())
    monkeypatch.setattr(hilbert, "KEPT_VALUES", 0)
    passed = cb.build(model, data, size=20, method=cb.GIGA())
    assert np.array_equal(kept.indices, passed.indices)
    assert np.allclose(kept.weights, passed.weights, rtol=1e-9)
    # Beside what both take for π̂ and the total: one pass to keep all rows, or one a step.
    saved = passed.provenance["passes"] - kept.provenance["passes"]
    assert saved == len(passed.trace) - 1


def test_counts_equal_repeated_rows():
    data, counts, written = repeated("poisson")
    model, weighting = CASES["poisson"].model, dense("poisson").weighting
    method = cb.GIGA(weighting=weighting, num_iterations=15)
    counted = cb.build(model, data, size=20, counts=counts, method=method)
    plain = cb.build(model, written, size=20, method=method)
    assert np.allclose(dense_weights(counted), merged(plain, counts), rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_beats_uniform_and_refit_beats_both():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 5))
    y = coins(rng, X @ [1.0, -2.0, 0.5, 0.0, 0.7])
    data, kls = open_rows((X, y)), []
    for method in (cb.Uniform(), cb.GIGA(), cb.GIGA(refit=True)):
        trials = [
            laplace_kl(
                cb.build(
                    cb.LogisticRegression(prior=cb.Normal()), data, size=60, method=method, seed=s
                ),
                data,
            )
            for s in range(3)
        ]
        kls.append(np.median(trials))
    assert kls[2] < 0.3 * kls[1] < 0.3 * 0.1 * kls[0]


def test_refit_does_not_change_the_path():
    """Whenever it ends, the coreset is refitted; the rows are those of the method without."""
    case = dense("poisson", num_rows=60)
    plain = paths(cb.GIGA(weighting=case.weighting, num_iterations=12), case, None, 12)
    refit = paths(cb.GIGA(weighting=case.weighting, num_iterations=12, refit=True), case, None, 12)
    assert len(plain) == len(refit) == 12
    for before, after in zip(plain, refit, strict=True):
        support = np.flatnonzero(before)
        expected = np.zeros(60)
        expected[support] = nnls(case.G[support].T, case.total)[0]
        assert np.allclose(after, expected, rtol=1e-7, atol=1e-7 * expected.max())


def test_one_draw_dimension_ends_with_a_reason():
    """Two draws leave one direction: the first row matches the total, and nothing is left."""
    case = dense("logistic", num_draws=2)
    coreset = cb.build(
        CASES["logistic"].model,
        CASES["logistic"].data(num_rows=25),
        size=10,
        method=cb.GIGA(weighting=case.weighting),
    )
    assert coreset.size == 1
    assert "nothing is left to fit" in coreset.reason


def test_all_rows_constant_is_an_error():
    X = np.zeros((20, 2))
    for method in (cb.GIGA(), cb.FrankWolfe(), cb.OrthogonalPursuit()):
        with pytest.warns(UserWarning), pytest.raises(ValueError, match="constant in θ"):
            cb.build(
                cb.LogisticRegression(prior=cb.Normal()),
                (X, np.arange(20) % 2),
                size=5,
                method=method,
            )


def test_constant_rows_are_never_chosen():
    X, y = CASES["logistic"].data(num_rows=60)
    X = X.copy()
    X[::3] = 0.0
    for method in (cb.GIGA(), cb.FrankWolfe(), cb.OrthogonalPursuit(), cb.HardThresholding()):
        coreset = cb.build(CASES["logistic"].model, (X, y), size=30, method=method)
        assert np.all(coreset.indices % 3 != 0)
