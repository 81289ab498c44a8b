"""Covariances of the potentials against the paper's formulas, integration, and each other."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.diagnostics import gaussian_kl
from corebayes.problem import Problem
from corebayes.rows import open_rows
from corebayes.samplers.laplace import full_posterior
from corebayes.tangent.geometry import residual_of
from corebayes.tangent.hermite import HermiteSpace
from corebayes.tangent.monte_carlo import MonteCarloSpace
from corebayes.types import Gaussian
from tests.contract.cases import MODELS, some_points

CASES = {case.name: case for case in MODELS}
WEIGHTS = np.array([9.0, 0.0, 21.0, 4.0])
RNG = np.random.default_rng(0)


def at_points(name, geometry, seed=0):
    problem = CASES[name].problem(seed=seed)
    points = some_points(problem, 3, 17, 40, 41)
    return problem, points, geometry.space(np.random.default_rng(1), problem, points.at(WEIGHTS))


def posterior(problem, points):
    model = problem.model
    return model.posterior(model.statistics(points.rows, WEIGHTS))


def narrow_fit(problem):
    """A Gaussian as narrow as the posterior of a few hundred rows, where the series is short."""
    mean, factor = full_posterior(problem.model, problem.data)
    return Gaussian(mean, 0.4 * factor)


def test_gaussian_mean_equals_appendix_b():
    problem, points, space = at_points("gaussian", cb.ClosedForm())
    block = problem.data.take(np.arange(60))
    mean, factor = posterior(problem, points)
    root = np.linalg.cholesky(problem.model.covariance)
    whitened = np.linalg.solve(root, factor)
    psi = whitened @ whitened.T
    nu = np.linalg.solve(root, (block.X - mean).T)
    # Cov_w[f_n, f_m] = ν_mᵀ Ψ ν_n + ½ tr Ψᵀ Ψ
    expected = nu.T @ psi @ nu + 0.5 * np.trace(psi.T @ psi)
    assert np.allclose(space.gram(space.embed(block)), expected, rtol=1e-10)


def test_linear_regression_equals_appendix_b():
    problem, points, space = at_points("linear", cb.ClosedForm())
    block = problem.data.take(np.arange(60))
    mean, factor = posterior(problem, points)
    beta, nu = block.X @ factor, block.y - block.X @ mean
    products = beta @ beta.T
    # σ⁻⁴ (ν_n ν_m β_nᵀβ_m + ½ (β_nᵀβ_m)²)
    expected = (np.outer(nu, nu) * products + 0.5 * products**2) / 0.8**4
    assert np.allclose(space.gram(space.embed(block)), expected, rtol=1e-10)


@pytest.mark.parametrize("order", [2, 3])
def test_hermite_is_the_closed_form_on_linear_regression(order):
    problem, points, closed = at_points("linear", cb.ClosedForm())
    hermite = cb.Hermite(order=order).space(RNG, problem, points.at(WEIGHTS))
    block = problem.data.take(np.arange(60))
    expected = closed.gram(closed.embed(block))
    assert np.allclose(hermite.gram(hermite.embed(block)), expected, rtol=1e-10, atol=1e-12)
    residuals = [
        residual_of(geometry, problem, space, points.at(WEIGHTS))
        for geometry, space in ((cb.ClosedForm(), closed), (cb.Hermite(order=order), hermite))
    ]
    assert residuals[0] @ residuals[0] == pytest.approx(residuals[1] @ residuals[1], rel=1e-10)
    one = closed.project(closed.embed(block), residuals[0])
    other = hermite.project(hermite.embed(block), residuals[1])
    assert np.allclose(one, other, rtol=1e-10, atol=1e-10 * np.abs(one).max())


@pytest.mark.parametrize(
    "name", ["logistic", "poisson", "poisson-log", "student-t", "negative-binomial"]
)
def test_hermite_converges_to_two_dimensional_integration(name):
    """Cov[f_n, f_m] is an integral over (η_n, η_m); a fine product rule gives it directly."""
    problem = CASES[name].problem()
    model, block = problem.model, problem.data.take(np.arange(12))
    mean, factor = narrow_fit(problem)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    first, second = (grid.ravel() for grid in np.meshgrid(nodes, nodes))
    both = np.outer(weights, weights).ravel()
    beta, centre = block.X @ factor, block.X @ mean
    errors = {1: [], 2: [], 3: []}
    for n, m in [(0, 1), (2, 5), (7, 7), (3, 11)]:
        # β_n and β_m in an orthonormal basis of their span
        _, upper = np.linalg.qr(np.column_stack([beta[n], beta[m]]))
        values = []
        for row, column in ((n, 0), (m, 1)):
            eta = centre[row] + upper[0, column] * first + upper[1, column] * second
            y = np.full((1, 1), model.target(block)[row])
            values.append(model.log_density(eta[None, :].copy(), y, np.empty((1, eta.size)))[0])
        exact = both @ (values[0] * values[1]) - (both @ values[0]) * (both @ values[1])
        for order in errors:
            space = HermiteSpace(model.dim, order, model, mean, factor, 40)
            gram = space.gram(space.embed(block.take(np.array([n, m]))))
            errors[order].append(abs(gram[0, 1] - exact) / np.sqrt(gram[0, 0] * gram[1, 1]))
    worst = {order: max(values) for order, values in errors.items()}
    assert worst[3] < 0.01
    assert worst[3] < worst[2] < worst[1]


@pytest.mark.parametrize("name", ["gaussian", "linear", "logistic", "poisson"])
def test_monte_carlo_converges_to_the_space_without_noise(name):
    if name in ("gaussian", "linear"):
        problem, points, space = at_points(name, cb.ClosedForm())
        fit = posterior(problem, points)
    else:
        problem = CASES[name].problem()
        fit = narrow_fit(problem)
        space = HermiteSpace(problem.model.dim, 3, problem.model, *fit, 40)
    block = problem.data.take(np.arange(20))
    exact = space.gram(space.embed(block))
    scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    errors = []
    for num_draws in (2_000, 200_000):
        sampled = MonteCarloSpace(problem.model, fit.draw(np.random.default_rng(5), num_draws))
        errors.append(np.abs((sampled.gram(sampled.embed(block)) - exact) / scale).max())
    # The error of a correlation is about 1/√S; potentials have heavier tails than a Gaussian.
    assert errors[0] < 15 / np.sqrt(2_000)
    assert errors[1] < 15 / np.sqrt(200_000)


@pytest.mark.parametrize("name", ["gaussian", "linear"])
def test_gradient_is_the_derivative_of_the_exact_kl(name):
    problem, points, _ = at_points(name, cb.ClosedForm())
    model, full = problem.model, problem.full_posterior

    def kl(weights):
        return gaussian_kl(model.posterior(model.statistics(points.rows, weights)), full)

    weights = np.array([9.0, 3.0, 21.0, 4.0])
    gradient = cb.ClosedForm().restrict(problem, points).gradient(RNG, weights)
    steps = 1e-5 * np.eye(4)
    differences = [(kl(weights + step) - kl(weights - step)) / 2e-5 for step in steps]
    assert np.allclose(gradient, differences, rtol=1e-5)


@pytest.mark.parametrize("name", [pytest.param("gaussian", marks=pytest.mark.slow), "linear"])
def test_monte_carlo_gradient_is_unbiased(name):
    problem, points, _ = at_points(name, cb.ClosedForm())
    exact = cb.ClosedForm().restrict(problem, points).gradient(RNG, WEIGHTS)
    rng = np.random.default_rng(3)
    restriction = cb.MonteCarlo(num_draws=20).restrict(problem, points)
    draws = np.array([restriction.gradient(rng, WEIGHTS) for _ in range(3000)])
    # D divides by S, so its expectation is (S − 1)/S of the gradient
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - exact * 19 / 20) < 4 * error)


@pytest.mark.slow
def test_subsampled_gradient_is_unbiased():
    problem, points, _ = at_points("linear", cb.ClosedForm())
    exact = cb.ClosedForm().restrict(problem, points).gradient(RNG, WEIGHTS)
    rng = np.random.default_rng(3)
    restriction = cb.Hermite(order=2).restrict(problem, points, num_rows=15)
    draws = np.array([restriction.gradient(rng, WEIGHTS) for _ in range(2000)])
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - exact) < 4 * error)


@pytest.mark.parametrize("num_draws", [50, 60, 64])
def test_constant_potentials_have_no_direction(num_draws):
    X = np.random.default_rng(0).normal(size=(30, 2))
    X[[4, 11]] = 0.0
    data = open_rows((X, np.arange(30) % 2))
    model = cb.LogisticRegression(prior=cb.Normal()).bind(data)
    draws = np.random.default_rng(1).normal(size=(num_draws, 2))
    space = MonteCarloSpace(model, draws)
    norms = space.squared_norms(space.embed(data.take(np.arange(30))))
    assert np.array_equal(np.flatnonzero(norms == 0.0), [4, 11])
    problem = Problem(model, data)
    coreset = cb.build(
        cb.LogisticRegression(prior=cb.Normal()),
        data,
        size=20,
        method=cb.SparseVI(geometry=cb.MonteCarlo(num_draws=num_draws)),
    )
    assert not {4, 11} & set(coreset.indices.tolist())
    assert problem.data.num_rows == 30
