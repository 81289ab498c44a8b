"""SparseVI is Algorithm 1: against a brute-force version written from the paper's lines."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.problem import Problem
from corebayes.rows import open_rows
from tests.contract.cases import MODELS, some_points

CASES = {case.name: case for case in MODELS}


class Script:
    """A sampler that hands out prepared draws, so that two programs see the same ones."""

    def __init__(self, batches):
        self.batches = list(batches)

    def draw(self, rng, posterior, num_draws, start=None):
        values = self.batches.pop(0)[None]
        return cb.Draws(values=values, location=np.zeros(posterior.dim), independent=True)


def algorithm_1(potentials, batches, num_iterations, num_steps, rate):
    """Algorithm 1 of the paper, line by line, on full N-vectors."""
    batches, weights, active = list(batches), np.zeros(len(potentials(batches[0]))), []
    history = []
    draws = batches.pop(0)
    for _ in range(num_iterations):
        f = potentials(draws)
        g = f - f.mean(axis=1, keepdims=True)
        covariance = g @ g.T / f.shape[1]
        correlation = covariance @ (1 - weights) / np.sqrt(np.diag(covariance))
        score = np.array([abs(c) if n in active else c for n, c in enumerate(correlation)])
        best = int(np.argmax(score))
        if best not in active:
            active.append(best)
        history.append(best)
        for t in range(1, num_steps + 1):
            f = potentials(batches.pop(0))
            g = f - f.mean(axis=1, keepdims=True)
            D = -g @ (g.T @ (1 - weights)) / f.shape[1]
            for n in active:
                weights[n] = max(weights[n] - rate / t * D[n], 0.0)
        active = [n for n in active if weights[n] > 0]
        draws = batches.pop(0)
    return weights, history


@pytest.mark.parametrize("name", ["logistic", "poisson", "gaussian"])
def test_equals_the_paper_line_by_line(name):
    problem = CASES[name].problem(num_rows=25)
    rng = np.random.default_rng(0)
    iterations, steps = 8, 6
    batches = rng.normal(scale=0.7, size=(1 + iterations * (steps + 1), 40, 3))
    block = problem.data.take(np.arange(25))
    expected, history = algorithm_1(
        lambda draws: problem.model.potentials(draws, block), batches, iterations, steps, 0.05
    )
    method = cb.SparseVI(
        geometry=cb.MonteCarlo(num_draws=40, sampler=Script(batches)),
        update=cb.SGD(num_steps=steps, rate=0.05),
    )
    state = method.init(rng, problem, iterations)
    for _ in range(iterations):
        state, _ = method.step(rng, problem, state)
    weights = np.zeros(25)
    weights[state.points.indices] = state.points.weights
    assert len(set(history)) < len(history), "the case must select an active row again"
    assert np.allclose(weights, expected, rtol=1e-9, atol=1e-12)


def test_natural_gradient_never_raises_the_exact_kl():
    problem = CASES["linear"].problem(num_rows=200)
    method, rng = cb.SparseVI(), np.random.default_rng(0)
    state = method.init(rng, problem, 30)
    kls = []
    for _ in range(15):
        state, info = method.step(rng, problem, state)
        kls.append(info.kl.value)
        if info.done:
            break
    assert np.all(np.diff(kls) <= 1e-9)
    assert kls[-1] < 1e-6


def test_reaches_the_posterior_when_all_quadratics_are_matched():
    """d(d+3)/2 + 1 points match every quadratic exactly (Carathéodory)."""
    case = CASES["gaussian"]
    coreset = cb.build(case.model, case.data(num_rows=500), size=40, method=cb.SparseVI())
    assert coreset.size <= 10
    assert coreset.trace[-1]["kl"] < 1e-10


def test_schedules_can_be_functions():
    data = CASES["gaussian"].data()
    by_number = cb.build(
        cb.GaussianMean(), data, size=5, method=cb.SparseVI(update=cb.SGD(rate=0.1))
    )
    by_function = cb.build(
        cb.GaussianMean(), data, size=5, method=cb.SparseVI(update=cb.SGD(rate=lambda t: 0.1 / t))
    )
    assert np.array_equal(by_number.weights, by_function.weights)


def test_all_rows_constant_is_an_error():
    X = np.zeros((20, 2))
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="constant in θ"):
        cb.build(
            cb.LogisticRegression(prior=cb.Normal()),
            (X, np.arange(20) % 2),
            size=5,
            method=cb.SparseVI(),
        )


def test_separable_rows_stay_finite():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    rows = (X, X[:, 0] > 0)
    coreset = cb.build(
        cb.LogisticRegression(prior=cb.Normal()), rows, size=30, method=cb.SparseVI()
    )
    data = open_rows(rows)
    problem = Problem(coreset.model, data)
    exact = cb.samplers.laplace.full_posterior(problem.model, data)
    fit = cb.Laplace().fit(cb.Posterior.of(coreset))
    assert np.all(np.isfinite(fit.mean))
    assert cb.diagnostics.gaussian_kl(fit, exact) < 0.1


def test_an_active_row_with_too_much_weight_is_the_one_to_move():
    """Its correlation with the residual is −1: |corr| selects it, corr would not."""
    data = open_rows(np.linspace(-0.1, 0.1, 41))
    problem = Problem(cb.GaussianMean().bind(data), data)
    method, rng = cb.SparseVI(), np.random.default_rng(0)
    start = method.init(rng, problem, 20)
    heavy = some_points(problem, 20).at(np.array([200.0]))
    heavy = method._look(rng, problem, heavy, 20, start)
    after, _ = method.step(rng, problem, heavy)
    assert np.array_equal(after.points.indices, [20])
    assert after.points.weights[0] == pytest.approx(41.0, rel=0.01)
