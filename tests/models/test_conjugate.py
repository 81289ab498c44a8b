"""Exact posteriors against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from corebayes.models import (
    GaussianMean,
    LinearRegression,
    LogisticRegression,
    Normal,
    PoissonRegression,
)
from corebayes.models.conjugate import Conjugate
from corebayes.models.custom.finite_differences import difference_gradient, difference_hessian
from corebayes.rows import open_rows

PRIOR = Normal([0.4, -0.3, 0.1], [[1.5, 0.2, 0.0], [0.2, 0.7, -0.1], [0.0, -0.1, 2.0]])
COVARIANCE = np.array([[0.5, 0.2, 0.1], [0.2, 1.5, -0.3], [0.1, -0.3, 2.5]])

MODELS = [
    GaussianMean(prior=PRIOR),
    GaussianMean([0.3, 1.0, 4.0], prior=PRIOR),
    GaussianMean(COVARIANCE, prior=PRIOR),
    LinearRegression(0.7, prior=PRIOR),
]
IDS = ["mean-unit", "mean-diagonal", "mean-matrix", "linear"]
models = pytest.mark.parametrize("model", MODELS, ids=IDS)


def problem(model, num_rows=25, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(num_rows, 3)) * [1.0, 2.0, 0.5] + [1.0, 0.0, -2.0]
    y = X @ [0.5, -1.0, 2.0] + rng.normal(size=num_rows)
    data = open_rows(X if isinstance(model, GaussianMean) else (X, y))
    return model.bind(data), data.take(np.arange(0, num_rows)), rng.uniform(0.0, 3.0, size=num_rows)


def log_posterior(model, block, weights):
    return lambda draws: model.sum_potentials(draws, block, weights) + model.log_prior(draws)


@models
def test_posterior_is_the_normalised_product(model):
    model, block, weights = problem(model)
    posterior = model.posterior(model.statistics(block, weights))
    covariance = posterior.factor @ posterior.factor.T
    draws = np.random.default_rng(1).normal(size=(20, 3))
    # A Gaussian with the same log density up to a constant is the posterior.
    ratio = log_posterior(model, block, weights)(draws) - stats.multivariate_normal(
        posterior.mean, covariance
    ).logpdf(draws)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)


@models
def test_posterior_is_where_the_slopes_say(model):
    model, block, weights = problem(model)
    posterior = model.posterior(model.statistics(block, weights))
    gradient, hessian = model.gradient_and_hessian(posterior.mean, block, weights)
    np.testing.assert_allclose(gradient + model.log_prior_gradient(posterior.mean), 0.0, atol=1e-11)
    precision = -(hessian + model.log_prior_hessian(posterior.mean))
    np.testing.assert_allclose(
        precision @ posterior.factor @ posterior.factor.T, np.eye(3), atol=1e-11
    )


@models
def test_slopes_are_those_of_the_potentials(model):
    model, block, weights = problem(model)
    theta = np.array([0.3, -0.8, 0.5])
    sums = lambda draws: model.sum_potentials(draws, block, weights)  # noqa: E731
    gradient, hessian = model.gradient_and_hessian(theta, block, weights)
    np.testing.assert_allclose(gradient, difference_gradient(sums, theta), rtol=1e-8)
    np.testing.assert_allclose(hessian, difference_hessian(sums, theta), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(model.gradient(theta, block, weights), gradient)
    np.testing.assert_array_equal(model.hessian(theta, block, weights), hessian)


@models
@given(seed=st.integers(0, 2**32 - 1), split=st.integers(0, 25))
@settings(max_examples=25)
def test_statistics_add_up(model, seed, split):
    model, block, weights = problem(model, seed=seed)
    whole = model.statistics(block, weights)
    first = model.statistics(block.take(slice(0, split)), weights[:split])
    second = model.statistics(block.take(slice(split, None)), weights[split:])
    for total, one, other in zip(whole, first, second, strict=True):
        np.testing.assert_allclose(total, one + other, rtol=1e-10, atol=1e-10)
    # Linear in the weights, also when they are differences.
    less = model.statistics(block, weights - 2.0)
    for total, plain, difference in zip(whole, model.statistics(block), less, strict=True):
        np.testing.assert_allclose(total - 2.0 * plain, difference, rtol=1e-9, atol=1e-9)


@models
def test_weights_are_repetitions(model):
    model, block, _ = problem(model)
    counts = np.random.default_rng(2).integers(0, 4, size=len(block))
    repeated = block.take(np.repeat(np.arange(len(block)), counts))
    one = model.posterior(model.statistics(block, counts.astype(float)))
    other = model.posterior(model.statistics(repeated))
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-12)
    np.testing.assert_allclose(
        one.factor @ one.factor.T, other.factor @ other.factor.T, rtol=1e-10, atol=1e-15
    )


@models
def test_no_rows_give_the_prior(model):
    model, block, _ = problem(model)
    posterior = model.posterior(model.statistics(block.take(slice(0, 0)), np.empty(0)))
    prior = model.gaussian_prior
    np.testing.assert_allclose(posterior.mean, prior.mean, rtol=1e-13)
    np.testing.assert_allclose(
        posterior.factor @ posterior.factor.T, prior.covariance, rtol=1e-12, atol=1e-14
    )


@models
def test_draws_have_the_posterior_moments(model):
    model, block, weights = problem(model)
    posterior = model.posterior(model.statistics(block, weights))
    draws = posterior.draw(np.random.default_rng(3), 50_000)
    covariance = posterior.factor @ posterior.factor.T
    scale = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((draws.mean(axis=0) - posterior.mean) / scale, 0.0, atol=0.02)
    np.testing.assert_allclose(
        np.cov(draws.T) / np.outer(scale, scale), covariance / np.outer(scale, scale), atol=0.03
    )


def test_mean_potentials_and_base_are_the_log_density():
    model, block, _ = problem(MODELS[2])
    draws = np.random.default_rng(4).normal(size=(5, 3))
    values = model.potentials(draws, block) + model.log_base(block)[:, None]
    for s, theta in enumerate(draws):
        expected = stats.multivariate_normal(theta, COVARIANCE).logpdf(block.X)
        np.testing.assert_allclose(values[:, s], expected, rtol=1e-12)
    out = np.empty((25, 5))
    assert model.potentials(draws, block, out) is out
    assert model.parameter_names == ("mean[0]", "mean[1]", "mean[2]")


def test_mean_potentials_far_from_zero_keep_their_digits():
    rng = np.random.default_rng(5)
    X, draws = rng.normal(size=(10, 2)), rng.normal(size=(4, 2))
    near = GaussianMean(0.5).bind(open_rows(X))
    far = GaussianMean(0.5).bind(open_rows(X + 2.0**30))
    np.testing.assert_allclose(
        far.potentials(draws + 2.0**30, open_rows(X + 2.0**30).take(np.arange(10))),
        near.potentials(draws, open_rows(X).take(np.arange(10))),
        rtol=1e-5,
    )


@pytest.mark.parametrize("scale", [1.0, 1e9])
def test_huge_weights_on_dependent_columns_stay_positive_definite(scale):
    x = np.array([[1.0, 1.0 / 3.0, 0.7]])
    with pytest.warns(UserWarning, match="proportional"):
        model = LinearRegression(1e-4, prior=Normal()).bind(open_rows((scale * x, [2.0 * scale])))
    statistics = model.statistics(
        open_rows((scale * x, [2.0 * scale])).take(np.array([0])), np.array([1e7])
    )
    posterior = model.posterior(statistics)
    assert np.all(np.isfinite(posterior.factor))
    assert x[0] @ posterior.mean == pytest.approx(2.0, rel=1e-6)
    variances = np.linalg.eigvalsh(posterior.factor @ posterior.factor.T)
    # Two directions that the row does not see keep the prior's variance of one.
    np.testing.assert_allclose(variances[1:], 1.0, rtol=1e-3)


def test_who_is_conjugate():
    assert isinstance(GaussianMean(), Conjugate)
    assert isinstance(LinearRegression(noise_sd=1.0, prior=Normal()), Conjugate)
    assert not isinstance(LogisticRegression(prior=Normal()), Conjugate)
    assert not isinstance(PoissonRegression(link="softplus", prior=Normal()), Conjugate)
