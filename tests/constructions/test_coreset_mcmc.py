"""Coreset MCMC: its gradient, its kernels and optimisers, and what they reach."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.constructions.coreset_mcmc import _stationary
from corebayes.diagnostics import laplace_kl
from tests.contract.cases import MODELS, some_points

CASES = {case.name: case for case in MODELS}


def test_gradient_by_the_formula():
    """ĝ = −(1/(K−1)) G_core (b̂ − wᵀG_core), centred across chains, b̂ = (N/U) Σ over U rows."""
    problem = CASES["logistic"].problem()
    weights = np.array([4.0, 9.0, 20.0])
    subset = some_points(problem, 3, 17, 40).at(weights)
    chains = np.random.default_rng(0).normal(size=(7, 3))
    method = cb.CoresetMCMC(gradient_rows=15)
    found = method._gradient(np.random.default_rng(5), problem, subset, chains)
    rows = np.sort(np.random.default_rng(5).choice(60, size=15, replace=False, shuffle=False))
    f = problem.model.potentials(chains, problem.data.take(np.arange(60)))
    G = f - f.mean(axis=1, keepdims=True)
    missing = 60 / 15 * G[rows].sum(axis=0) - weights @ G[subset.indices]
    assert np.allclose(found, -G[subset.indices] @ missing / 6, rtol=1e-10)


def test_gradient_is_unbiased():
    """Averaged over exact draws of few chains and subsamples: the exact gradient."""
    problem = CASES["linear"].problem()
    weights = np.array([4.0, 9.0, 20.0])
    subset = some_points(problem, 3, 17, 40).at(weights)
    exact = cb.ClosedForm().restrict(problem, subset).gradient(np.random.default_rng(0), weights)
    fit = cb.Exact().fit(cb.Posterior(problem.model, subset.rows, weights))
    rng, method = np.random.default_rng(1), cb.CoresetMCMC(gradient_rows=20)
    values = np.array(
        [method._gradient(rng, problem, subset, fit.draw(rng, 3)) for _ in range(4000)]
    )
    error = values.std(axis=0) / np.sqrt(len(values))
    assert np.all(np.abs(values.mean(axis=0) - exact) < 4 * error)
    assert np.all(error < 0.3 * np.abs(exact).max())


def independent(rng, posterior, fit, chains):
    """A user's kernel: for a conjugate model the exact posterior itself."""
    return cb.Exact().fit(posterior).draw(rng, len(chains))


OPTIMISERS = [cb.HotDoG(num_steps=1500), cb.Adam(num_steps=1500, rate=lambda t: 1.0 / np.sqrt(t))]


@pytest.mark.parametrize(
    ("update", "kernel"),
    [
        pytest.param(OPTIMISERS[0], cb.HitAndRun(), id="hot-dog-ours"),
        pytest.param(OPTIMISERS[1], independent, id="adam-theirs"),
        pytest.param(OPTIMISERS[0], independent, id="hot-dog-theirs", marks=pytest.mark.slow),
        pytest.param(OPTIMISERS[1], cb.HitAndRun(), id="adam-ours", marks=pytest.mark.slow),
    ],
)
def test_much_closer_than_uniform(update, kernel):
    case = CASES["linear"]
    data = case.data(num_rows=300)
    method = cb.CoresetMCMC(update=update, kernel=kernel)
    coreset = cb.build(case.model, data, size=40, method=method, seed=0)
    uniform = cb.build(case.model, data, size=40, method=cb.Uniform(), seed=0)
    problem = case.problem(num_rows=300)
    assert laplace_kl(coreset, problem.data) < 0.1 * laplace_kl(uniform, problem.data)
    assert coreset.reason == "1,500 iterations done" and len(coreset.trace) == 15


def test_batches_do_not_matter_with_a_kernel_that_needs_no_fit():
    case = CASES["linear"]
    weights = [
        cb.build(
            case.model,
            case.data(),
            size=10,
            method=cb.CoresetMCMC(
                update=cb.HotDoG(num_steps=60), kernel=independent, batch=batch, max_hot_start=0
            ),
        ).weights
        for batch in (7, 60)
    ]
    assert np.array_equal(*weights)


def test_hot_start_waits_for_a_trend_to_end():
    rng = np.random.default_rng(0)
    assert _stationary(rng.normal(size=(100, 5)))
    assert not _stationary(rng.normal(size=(100, 5)) + np.linspace(0, 5, 100)[:, None])

    steps = []

    def slow(rng, posterior, fit, chains):
        steps.append(chains)
        return fit.mean + 0.97 * (chains - fit.mean) + 10.0 * 0.97 ** len(steps)

    problem = CASES["linear"].problem()
    method = cb.CoresetMCMC(kernel=slow, batch=20, max_hot_start=30)
    method.init(np.random.default_rng(0), problem, 10)
    assert 20 < len(steps) <= 600


def test_refusals():
    with pytest.raises(ValueError, match="num_chains must be at least 2"):
        cb.CoresetMCMC(num_chains=1)
    problem = CASES["linear"].problem()
    with pytest.raises(ValueError, match="CoresetMCMC needs a size"):
        cb.CoresetMCMC().init(np.random.default_rng(0), problem, None)
