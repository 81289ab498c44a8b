"""The ℓ1-penalised coreset: optimality conditions, and the same optimum by another program."""

import numpy as np
import pytest
from scipy.optimize import minimize

import corebayes as cb
from corebayes.diagnostics import gaussian_kl, laplace_kl
from tests.contract.cases import MODELS

CASES = {case.name: case for case in MODELS}
PRECISE = cb.NaturalGradient(num_steps=200, tolerance=1e-14)


def solved(name, share, *, size=30, num_rows=60, update=PRECISE):
    """The optimum at a share of λ_max, as weights of all rows, and the problem it solves."""
    problem = CASES[name].problem(num_rows=num_rows)
    method, rng = cb.L1(update=update, tolerance=1e-7, num_rounds=400), np.random.default_rng(0)
    state = method.init(rng, problem, size)
    found = method.solve(rng, problem, state, share * state.high)
    if found is None:
        return problem, state, share * state.high, None
    weights = np.zeros(num_rows)
    weights[found.indices] = found.weights
    return problem, state, share * state.high, weights


def gradient_of_all(problem, weights):
    """∇KL over every row, by a restriction to all of them."""
    rows = np.arange(problem.data.num_rows)
    points = problem.points(rows)
    return cb.ClosedForm().restrict(problem, points).gradient(np.random.default_rng(0), weights)


@pytest.mark.parametrize("share", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("name", ["gaussian", "linear"])
def test_optimality_conditions(name, share):
    problem, state, penalty, weights = solved(name, share)
    slopes = gradient_of_all(problem, weights) / state.scales + penalty
    active = weights > 0.0
    assert active.any() and not active.all()
    assert np.all(np.abs(slopes[active]) < 1e-3 * penalty)
    assert np.all(slopes[~active] > -1e-3 * penalty)


def test_potential_scales_are_prior_variances():
    problem, state, _, _ = solved("linear", 0.5)
    draws = problem.model.gaussian_prior.draw(np.random.default_rng(1), 40_000)
    potentials = problem.model.potentials(draws, problem.data.take(np.arange(8)))
    assert np.allclose(state.scales[:8], potentials.var(axis=1), rtol=0.1)


@pytest.mark.slow
def test_the_same_optimum_by_another_program():
    problem, state, penalty, weights = solved("linear", 0.05, num_rows=25)
    model, block = problem.model, problem.data.take(np.arange(25))

    def objective(w):
        fit = model.posterior(model.statistics(block, w))
        return gaussian_kl(fit, problem.full_posterior) + penalty * state.scales @ w

    best = minimize(
        objective,
        np.full(25, 0.5),
        jac=lambda w: gradient_of_all(problem, w) + penalty * state.scales,
        bounds=[(0, None)] * 25,
        method="L-BFGS-B",
        options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9},
    )
    assert objective(weights) == pytest.approx(best.fun, rel=1e-5)
    assert objective(weights) < 0.9 * objective(np.zeros(25))


def test_sgd_takes_proximal_gradient_steps():
    """(w − γ(∇KL + λf̃))₊ for the rows that enter, the paper's update."""
    problem = CASES["linear"].problem()
    method, rng = (
        cb.L1(update=cb.SGD(num_steps=1, rate=1e-4), num_rounds=1),
        np.random.default_rng(0),
    )
    state = method.init(rng, problem, 30)
    state = state._replace(points=problem.no_points())
    penalty = 0.2 * state.high
    points = method.solve(rng, problem, state, penalty)
    before = np.zeros(60)
    before[state.points.indices] = state.points.weights
    moved = before - 1e-4 * (gradient_of_all(problem, before) + penalty * state.scales)
    assert np.allclose(points.weights, moved[points.indices], rtol=1e-9)
    assert np.all(points.weights > 0.0) and points.size > 1


def test_nothing_pays_at_the_largest_penalty_and_too_many_return_early():
    _, _, _, weights = solved("linear", 1.0001)
    assert weights.sum() == pytest.approx(0.0, abs=1e-6)
    assert solved("linear", 1e-6, size=2)[3] is None


@pytest.mark.slow
@pytest.mark.parametrize("power", [1.0, 0.5])
def test_finds_the_size_and_fits_without_the_penalty(power):
    case = CASES["poisson"]
    data = case.data(num_rows=300)
    coreset, raw, uniform = (
        cb.build(case.model, data, size=15, method=method)
        for method in (
            cb.L1(scale_power=power),
            cb.L1(scale_power=power, refit=None),
            cb.Uniform(),
        )
    )
    rows = case.problem(num_rows=300).data
    assert 2 <= raw.size <= 15 and coreset.size <= 15
    assert "λ = " in coreset.reason
    assert laplace_kl(coreset, rows) < 0.5 * laplace_kl(raw, rows)
    assert laplace_kl(coreset, rows) < laplace_kl(uniform, rows)


def test_one_row_is_a_size():
    case = CASES["gaussian"]
    coreset = cb.build(case.model, case.data(), size=1, method=cb.L1())
    assert coreset.size == 1 and coreset.weights[0] > 0.0


def test_refusals():
    problem = CASES["linear"].problem()
    with pytest.raises(ValueError, match="L1 needs a size"):
        cb.L1().init(np.random.default_rng(0), problem, None)
    X = np.zeros((20, 2))
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="constant in θ"):
        cb.build(
            cb.LogisticRegression(prior=cb.Normal()), (X, np.arange(20) % 2), size=5, method=cb.L1()
        )
