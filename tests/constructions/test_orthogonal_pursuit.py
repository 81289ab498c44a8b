"""OrthogonalPursuit against SciPy's nonnegative least squares on dense matrices."""

import numpy as np
import pytest
from scipy.optimize import nnls

import corebayes as cb
from corebayes.diagnostics import dense_weights, laplace_kl
from corebayes.rows import open_rows
from tests.constructions.dense import CASES, dense, merged, paths, repeated


def pursuit(G, counts, num_steps):
    norms = np.linalg.norm(G, axis=1)
    weights, history = np.zeros(len(G)), []
    total = counts @ G
    for _ in range(num_steps):
        scores = G @ (total - weights @ G) / norms
        scores[(weights > 0) | (counts == 0)] = -np.inf
        support = np.append(np.flatnonzero(weights), int(np.argmax(scores)))
        weights = np.zeros(len(G))
        weights[support] = nnls(G[support].T, total)[0]
        history.append(weights)
    return history


@pytest.mark.parametrize("name", ["gaussian", "logistic", "poisson"])
@pytest.mark.parametrize("counted", [False, True])
def test_equals_the_formulas(name, counted):
    case = dense(name, counts=repeated(name)[1] if counted else None)
    history = paths(cb.OrthogonalPursuit(weighting=case.weighting), case, 7, 7)
    expected = pursuit(case.G, case.counts, len(history))
    assert len(history) >= 4
    for ours, theirs in zip(history, expected, strict=True):
        assert np.allclose(ours, theirs, rtol=1e-8, atol=1e-10 * theirs.max())


def test_error_never_rises_and_is_below_gigas():
    case = dense("logistic", num_rows=200, num_draws=60)
    ours = paths(cb.OrthogonalPursuit(weighting=case.weighting), case, 40, 40)
    giga = paths(cb.GIGA(weighting=case.weighting, num_iterations=40), case, 40, 40)
    errors = np.array([case.error(weights) for weights in ours])
    assert np.all(np.diff(errors) <= 0.0)
    assert errors[-1] < 0.1 * case.error(giga[len(ours) - 1])


def test_ends_when_the_total_is_matched():
    """With 9 directions at 10 draws, 9 rows are enough, and more are not taken."""
    case = dense("poisson", num_rows=200, num_draws=10)
    coreset = cb.build(
        CASES["poisson"].model,
        CASES["poisson"].data(num_rows=200),
        size=50,
        method=cb.OrthogonalPursuit(weighting=case.weighting),
    )
    assert coreset.size <= 9
    assert coreset.reason == "nothing is left to fit that the fixed tangent space can see"


def test_counts_equal_repeated_rows():
    data, counts, written = repeated("logistic")
    model, weighting = CASES["logistic"].model, dense("logistic").weighting
    method = cb.OrthogonalPursuit(weighting=weighting)
    counted = cb.build(model, data, size=8, counts=counts, method=method)
    plain = cb.build(model, written, size=8, method=method)
    assert np.allclose(dense_weights(counted), merged(plain, counts), rtol=1e-8, atol=1e-8)


def test_exact_inner_products_match_the_posterior():
    """d(d+3)/2 + 1 = 10 points match every quadratic exactly (Carathéodory)."""
    for name in ("gaussian", "linear"):
        data = open_rows(CASES[name].data(num_rows=2_000))
        method = cb.OrthogonalPursuit(weighting=cb.FullPosterior(num_draws=None))
        coreset = cb.build(CASES[name].model, data, size=30, method=method)
        assert coreset.size <= 10
        assert laplace_kl(coreset, data) < 1e-10


def test_a_taken_row_is_never_taken_twice():
    """At far too little weight a taken row is the best aligned of all, and still not new."""
    case = dense("logistic")
    method, rng = cb.OrthogonalPursuit(weighting=case.weighting), np.random.default_rng(0)
    state, _ = method.step(rng, case.problem, method.init(rng, case.problem, 10))
    points = state.points.scaled(0.01)
    light = state._replace(points=points, iterate=points, residual=state.target.residual(points))
    after, _ = method.step(rng, case.problem, light)
    assert after.points.indices.size == 2
    assert np.unique(after.points.indices).size == 2
