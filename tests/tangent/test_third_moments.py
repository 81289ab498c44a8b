"""Third moments of potentials, and the Hessian of KL that they make."""

import numpy as np
import pytest

import corebayes as cb
from tests.contract.cases import MODELS, some_points

CASES = {case.name: case for case in MODELS}
WEIGHTS = np.array([9.0, 2.0, 21.0, 4.0])
POINTS = (3, 17, 40, 41)
HE = np.polynomial.hermite_e


def quadrature(dim=3, num_nodes=8):
    nodes, weights = HE.hermegauss(num_nodes)
    grid = np.stack(np.meshgrid(*[nodes] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    product = np.stack(np.meshgrid(*[weights] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    product = product.prod(axis=1)
    return grid, product / product.sum()


def ridge_values(vectors, z):
    """g_n(z) = Σ_k c_k |β|ᵏ He_k(β·z / |β|) / k!, one polynomial at a time."""
    values = np.zeros((len(vectors.beta), len(z)))
    for row, (beta, coefficients) in enumerate(zip(*vectors, strict=True)):
        length = np.linalg.norm(beta)
        for degree, c in enumerate(coefficients, start=1):
            factor = c * length**degree / np.prod(np.arange(1.0, degree + 1.0))
            basis = np.zeros(degree + 1)
            basis[degree] = 1.0
            values[row] += factor * HE.hermeval(z @ beta / length, basis)
    return values


@pytest.mark.parametrize("order", [1, 2, 3])
def test_ridge_polynomials_by_quadrature(order):
    problem = CASES["poisson"].problem()
    points = some_points(problem, *POINTS)
    space = cb.Hermite(order=order).space(np.random.default_rng(0), problem, points, WEIGHTS)
    block = problem.data.take(np.arange(12))
    vectors = space.embed(block)
    amounts = np.random.default_rng(1).normal(size=12)
    z, shares = quadrature()
    g = ridge_values(vectors, z)
    expected = (g * (shares * (amounts @ g))) @ g.T
    found = space.third_moments(vectors, space.combine(vectors, amounts))
    assert np.allclose(found, expected, rtol=1e-9, atol=1e-10 * max(np.abs(expected).max(), 1.0))
    assert order == 1 or np.abs(expected).max() > 1e-4


def test_draws_by_plain_averages():
    problem = CASES["logistic"].problem()
    points = some_points(problem, *POINTS)
    space = cb.MonteCarlo(num_draws=30).space(np.random.default_rng(0), problem, points, WEIGHTS)
    f = problem.model.potentials(space.draws, points.rows)
    g = f - f.mean(axis=1, keepdims=True)
    amounts = np.array([1.0, -2.0, 0.5, 3.0])
    expected = np.einsum("is,js,s->ij", g, g, amounts @ g) / 30
    vectors = space.embed(points.rows)
    found = space.third_moments(vectors, space.combine(vectors, amounts))
    assert np.allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("name", ["gaussian", "linear"])
def test_curvature_is_the_derivative_of_the_gradient(name):
    problem = CASES[name].problem()
    restriction = cb.ClosedForm().restrict(problem, some_points(problem, *POINTS))
    rng, step = np.random.default_rng(0), 1e-4
    gradient, _, third = curvature = restriction.curvature(rng, WEIGHTS)
    differences = [
        (
            restriction.gradient(rng, WEIGHTS + step * unit)
            - restriction.gradient(rng, WEIGHTS - step * unit)
        )
        / (2 * step)
        for unit in np.eye(4)
    ]
    scale = np.abs(curvature.metric).max()
    assert np.allclose(gradient, restriction.gradient(rng, WEIGHTS), rtol=1e-8)
    assert np.allclose(curvature.hessian, differences, rtol=1e-5, atol=1e-7 * scale)
    assert np.abs(third).max() > 0.01 * scale, "the third moments must matter here"


def test_scanned_geometries_see_the_same_curvature():
    """A linear model is the exact case of Hermite order 2."""
    problem = CASES["linear"].problem()
    points, rng = some_points(problem, *POINTS), np.random.default_rng(0)
    exact = cb.ClosedForm().restrict(problem, points).curvature(rng, WEIGHTS)
    hermite = cb.Hermite(order=2).restrict(problem, points).curvature(rng, WEIGHTS)
    for ours, theirs in zip(exact, hermite, strict=True):
        assert np.allclose(ours, theirs, rtol=1e-7, atol=1e-9 * np.abs(ours).max())
