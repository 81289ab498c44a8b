"""Every sampler returns draws of π_w that say what they are worth."""

from functools import cache

import numpy as np
import pytest

import corebayes as cb
from corebayes.samplers.convergence import standard_error
from tests.contract.cases import MODELS, SAMPLERS, products, some_points

WEIGHTS = np.array([5.0, 0.0, 9.0, 2.5, 4.0])
EACH = pytest.mark.parametrize("sampler", [s[1] for s in SAMPLERS], ids=[s[0] for s in SAMPLERS])


def posterior_of(case):
    problem = case.problem()
    return cb.Posterior(problem.model, some_points(problem, 2, 9, 20, 33, 57).rows, WEIGHTS)


def gaussian():
    """A conjugate π_w and its moments."""
    posterior = posterior_of({case.name: case for case in MODELS}["linear"])
    return posterior, cb.Exact().fit(posterior)


def draw(sampler, posterior, number, seed=4, start=None):
    return sampler.draw(np.random.default_rng(seed), posterior, number, start)


@cache
def reference_moments(case):
    """Mean and covariance of π_w by importance sampling from a wide Laplace fit."""
    posterior = posterior_of(case)
    fit, dim = cb.Laplace().fit(posterior), posterior.dim
    rng = np.random.default_rng(11)
    df = 5.0
    z = rng.standard_normal((200_000, dim))
    t = z * np.sqrt(df / rng.chisquare(df, size=(len(z), 1)))
    draws = fit.mean + 1.1 * t @ fit.factor.T
    log_proposal = -0.5 * (df + dim) * np.log1p(np.sum(t * t, axis=1) / df)
    log_ratio = posterior.log_density(draws) - log_proposal
    ratio = np.exp(log_ratio - log_ratio.max())
    ratio /= ratio.sum()
    mean = ratio @ draws
    centred = draws - mean
    return mean, (centred * ratio[:, None]).T @ centred


@pytest.mark.parametrize(("case", "sampler"), products(SAMPLERS, models_each=2))
def test_moments(case, sampler):
    posterior = posterior_of(case)
    mean, covariance = reference_moments(case)
    found = draw(sampler, posterior, 4000)
    draws = found.equally_weighted(np.random.default_rng(0), 4000)
    sd = np.sqrt(np.diag(covariance))
    # Laplace is an approximation for rows this few; the others are exact up to their error.
    slack = {cb.Laplace: 0.45, cb.HitAndRun: 0.16}.get(type(sampler), 0.08)
    assert draws.shape == (4000, 3)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < slack * sd)
    assert np.all(np.abs(draws.std(axis=0) / sd - 1.0) < slack)


@pytest.mark.parametrize(("case", "sampler"), products(SAMPLERS, models_each=2, start=2))
def test_same_seed_same_draws_and_the_prior_without_rows(case, sampler):
    prior = posterior_of(case).prior
    first, second, other = (draw(sampler, prior, 500, seed) for seed in (7, 7, 8))
    assert np.array_equal(first.values, second.values)
    assert not np.any(first.values == other.values)
    prior_mean = [0.2, 0.2, 0.2] if case.name == "custom" else [0.2, -0.1, 0.4]
    assert np.allclose(first.flat.mean(axis=0), prior_mean, atol=0.5)


@EACH
def test_shapes_words_and_a_place_to_start_from(sampler):
    posterior, exact = gaussian()
    found = draw(sampler, posterior, 101, start=exact.mean + 0.1)
    chains, number, dim = found.values.shape
    assert dim == 3 and 101 <= chains * number < 101 + chains
    assert found.flat.shape == (chains * number, 3)
    assert np.array_equal(found.flat[:number], found.values[0])
    np.testing.assert_allclose(found.location, exact.mean, atol=1e-2)
    assert found.how and (chains == 1 or f"{chains} chains" in found.how)
    assert all(values.shape == (chains, number) for values in found.stats.values())
    thin = found.diagnosed().thinned(3)
    assert np.array_equal(thin.values, found.values[:, ::3])
    assert thin.max_rhat == 1.0 if found.independent else 0.9 < thin.max_rhat < 2.0
    if found.weights is not None:
        assert found.weights.shape == (chains, number) and found.pareto_k < 0.7
        assert found.weights.mean() == pytest.approx(1.0) and found.effective < chains * number


@EACH
def test_draws_are_independent_if_they_say_so(sampler):
    posterior, exact = gaussian()
    found = draw(sampler, posterior, 4000)
    z = np.linalg.solve(exact.factor, (found.flat - exact.mean).T).T.reshape(found.values.shape)
    z -= z.mean(axis=(0, 1))
    seen = [np.mean(z[:, lag:] * z[:, :-lag], axis=(0, 1)) / z.var(axis=(0, 1)) for lag in (1, 2)]
    if found.independent:
        assert np.max(np.abs(seen)) < 4.0 / np.sqrt(4000)
    elif isinstance(sampler, cb.HitAndRun):
        assert np.min(seen) > 0.1


# Thirty runs of NUTS take long; the tests of certificates have some.
@pytest.mark.parametrize("sampler", [s[1] for s in SAMPLERS if s[0] != "nuts"])
def test_standard_errors_are_right(sampler):
    """The scores of means over seeds have about unit variance, as the flag says to compute them."""
    posterior, exact = gaussian()
    scores = []
    for seed in range(30):
        found = draw(sampler, posterior, 600, seed)
        weights = np.ones(found.values.shape[:2]) if found.weights is None else found.weights
        for k in range(3):
            terms = weights * (found.values[:, :, k] - exact.mean[k])
            scores.append(terms.mean() / standard_error(terms, independent=found.independent))
    assert abs(np.mean(scores)) < 0.5 and np.std(scores) < 1.3
    matched = isinstance(sampler, cb.Laplace) and sampler.matched
    assert matched or np.std(scores) > 0.7


def test_weights_choose_draws_in_proportion():
    values = np.arange(8.0)[None, :, None]
    weights = np.array([[0.0, 0.0, 4.0, 0.0, 2.0, 1.0, 1.0, 0.0]])
    found = cb.Draws(values=values, location=np.zeros(1), weights=weights)
    chosen = found.equally_weighted(np.random.default_rng(0), 800)[:, 0]
    assert np.array_equal(np.unique(chosen), [2.0, 4.0, 5.0, 6.0])
    assert np.array_equal(np.bincount(chosen.astype(int)), [0, 0, 400, 0, 200, 100, 100])


def test_what_is_not_draws_is_refused():
    flat, place = np.zeros((5, 2)), np.zeros(2)
    with pytest.raises(ValueError, match=r"shape \(chains, draws, d\), got \(5, 2\)"):
        cb.Draws(values=flat, location=place)
    for weights in (np.ones(5), np.full((1, 5), 2.0)):
        with pytest.raises(ValueError, match=r"shape \(1, 5\) and the mean one"):
            cb.Draws(values=flat[None], location=place, weights=weights)
    problem = {case.name: case for case in MODELS}["logistic"].problem()
    with pytest.raises(TypeError, match="not conjugate"):
        draw(
            cb.Exact(), cb.Posterior(problem.model, problem.data.take(np.arange(2)), np.ones(2)), 10
        )


@pytest.mark.parametrize("case", MODELS, ids=[case.name for case in MODELS])
def test_the_posterior_is_prior_and_weighted_rows(case):
    posterior = posterior_of(case)
    model, rows = posterior.model, posterior.rows
    draws = np.random.default_rng(0).normal(size=(4, 3))
    expected = model.log_prior(draws) + WEIGHTS @ model.potentials(draws, rows)
    np.testing.assert_allclose(posterior.log_density(draws), expected, rtol=1e-12)
    np.testing.assert_allclose(posterior.prior.log_density(draws), model.log_prior(draws))
    theta = draws[0]
    value, gradient = posterior.value_and_gradient(theta)
    both = posterior.gradient_and_hessian(theta)
    assert value == pytest.approx(expected[0], rel=1e-12)
    steps = 1e-4 * np.eye(3)
    slope = [(posterior.value(theta + h) - posterior.value(theta - h)) / 2e-4 for h in steps]
    bend = [(posterior.gradient(theta + h) - posterior.gradient(theta - h)) / 2e-4 for h in steps]
    for found in (gradient, both[0], posterior.gradient(theta)):
        np.testing.assert_allclose(found, slope, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(both[1], bend, rtol=1e-4, atol=1e-3)


def test_a_density_that_is_no_number_counts_as_none():
    model = cb.CustomModel(
        lambda draws, block: np.where(draws[:, 0] > 0.0, draws[:, 0], np.nan)[None, :],
        lambda draws: np.where(draws[:, 0] < 9.0, 0.0, np.inf),
        1,
    )
    rows = {case.name: case for case in MODELS}["linear"].problem().data.take(np.arange(1))
    posterior = cb.Posterior(model, rows, np.ones(1))
    found = posterior.finite_log_density(np.array([[-1.0], [2.0], [9.5]]))
    assert np.array_equal(found, [-np.inf, 2.0, -np.inf])
