from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from corebayes.models import LogisticRegression, Normal
from corebayes.models.custom.finite_differences import difference_gradient, difference_hessian

COVARIANCE = np.array([[1.5, 0.6, 0.0], [0.6, 0.7, -0.1], [0.0, -0.1, 2.0]])

PRIORS = [
    (Normal(), np.zeros(3), np.eye(3)),
    (Normal(0.5, 2.0), np.full(3, 0.5), 4.0 * np.eye(3)),
    (Normal([1.0, -2.0, 0.3], [0.1, 10.0, 3.0]), [1.0, -2.0, 0.3], np.diag([0.01, 100.0, 9.0])),
    (Normal([1.0, -2.0, 0.3], COVARIANCE), [1.0, -2.0, 0.3], COVARIANCE),
    (Normal(2.0, COVARIANCE.tolist()), np.full(3, 2.0), COVARIANCE),
]
priors = pytest.mark.parametrize(("prior", "mean", "covariance"), PRIORS)


@priors
def test_density_and_derivatives(prior, mean, covariance):
    bound = prior.bind(3)
    draws = np.random.default_rng(0).normal(size=(6, 3)) + mean
    expected = stats.multivariate_normal(mean, covariance).logpdf(draws)
    np.testing.assert_allclose(bound.log_density(draws), expected, rtol=1e-12)
    theta = draws[0]
    np.testing.assert_allclose(
        bound.gradient(theta), difference_gradient(bound.log_density, theta), rtol=1e-7, atol=1e-9
    )
    np.testing.assert_allclose(
        bound.hessian(theta), difference_hessian(bound.log_density, theta), rtol=1e-5, atol=1e-5
    )


@priors
def test_matrices_belong_together(prior, mean, covariance):
    bound = prior.bind(3)
    np.testing.assert_allclose(bound.mean, mean)
    np.testing.assert_allclose(bound.covariance, covariance)
    np.testing.assert_allclose(bound.factor @ bound.factor.T, covariance, atol=1e-14)
    np.testing.assert_allclose(bound.precision @ covariance, np.eye(3), atol=1e-12)
    np.testing.assert_array_equal(bound.factor, np.tril(bound.factor))


@priors
def test_draws_have_the_moments(prior, mean, covariance):
    draws = prior.bind(3).draw(np.random.default_rng(1), 40_000)
    scale = np.sqrt(np.diag(covariance))
    assert draws.shape == (40_000, 3)
    np.testing.assert_allclose((draws.mean(axis=0) - mean) / scale, 0.0, atol=0.02)
    np.testing.assert_allclose(
        np.cov(draws.T) / np.outer(scale, scale), covariance / np.outer(scale, scale), atol=0.03
    )


@given(st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_any_positive_definite_covariance(dim, seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(dim, dim)) + 2.0 * np.eye(dim)
    covariance = root @ root.T + 0.01 * np.eye(dim)
    bound = Normal(rng.normal(size=dim), covariance).bind(dim)
    x = rng.normal(size=(1, dim))
    expected = stats.multivariate_normal(bound.mean, covariance).logpdf(x)
    np.testing.assert_allclose(bound.log_density(x), expected, rtol=1e-7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 0.0), "prior sd must be positive, got 0.0"),
        ((0.0, [1.0, -2.0]), r"prior sd\[1\] must be positive, got -2.0"),
        ((0.0, np.nan), "prior sd must be positive, got nan"),
        ((0.0, np.inf), "flat prior is refused"),
        ((0.0, [1.0, np.inf]), r"prior sd\[1\] is infinite: a flat prior is refused"),
        ((0.0, [[np.inf, 0.0], [0.0, 1.0]]), r"covariance\[0, 0\] is inf"),
        ((np.nan, 1.0), "mean must be finite"),
        (([0.0, np.inf], 1.0), "mean must be finite"),
        (([[0.0]], 1.0), "mean must be a number or a vector"),
        ((0.0, [[1.0, 0.5], [0.4, 1.0]]), r"symmetric: \[0, 1\] is 0.5 but \[1, 0\] is 0.4"),
        ((0.0, [[1.0, 2.0], [2.0, 1.0]]), "positive definite, its smallest eigenvalue is -1"),
        ((0.0, [[1.0, 1.0]]), r"square matrix, got shape \(1, 2\)"),
        ((0.0, np.ones((2, 2, 2))), "square matrix"),
        (([0.0, 0.0], [1.0, 1.0, 1.0]), "mean has 2 entries but sd_or_cov has 3"),
    ],
)
def test_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Normal(*arguments)


@pytest.mark.parametrize(
    ("prior", "argument"),
    [
        (Normal([0.0, 1.0]), "mean"),
        (Normal(0.0, [1.0, 2.0]), "sd_or_cov"),
        (Normal(0.0, np.eye(2)), "sd_or_cov"),
    ],
)
def test_wrong_dimension(prior, argument):
    with pytest.raises(ValueError, match=f"prior's {argument} is for 2 parameters, .* has 3"):
        prior.bind(3)


def test_arrays_are_copied_and_read_only():
    mean = np.zeros(2)
    prior = Normal(mean)
    mean[0] = 5.0
    np.testing.assert_array_equal(prior.bind(2).mean, np.zeros(2))
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(prior.mean)[0] = 1.0


def test_a_prior_must_be_one():
    with pytest.raises(TypeError, match="prior must be a prior such as Normal"):
        LogisticRegression(prior=2.0)
