"""Every sampler of every model draws from π_w: moments against self-normalised integration."""

import numpy as np
import pytest

import corebayes as cb
from tests.contract.cases import SAMPLERS, products, some_points

WEIGHTS = np.array([5.0, 0.0, 9.0, 2.5, 4.0])


def reference_moments(model, rows):
    """Mean and covariance of π_w by importance sampling from a wide Laplace fit."""
    fit = cb.Laplace().fit(model, rows, WEIGHTS)
    rng = np.random.default_rng(11)
    df = 5.0
    z = rng.standard_normal((200_000, model.dim))
    t = z * np.sqrt(df / rng.chisquare(df, size=(len(z), 1)))
    draws = fit.mean + 1.1 * t @ fit.factor.T
    log_target = model.sum_potentials(draws, rows, WEIGHTS) + model.log_prior(draws)
    log_proposal = -0.5 * (df + model.dim) * np.log1p(np.sum(t * t, axis=1) / df)
    ratio = np.exp(log_target - log_proposal - (log_target - log_proposal).max())
    ratio /= ratio.sum()
    mean = ratio @ draws
    centred = draws - mean
    return mean, (centred * ratio[:, None]).T @ centred


@pytest.mark.parametrize(("case", "sampler"), products(SAMPLERS))
def test_moments(case, sampler):
    problem = case.problem()
    points = some_points(problem, 2, 9, 20, 33, 57)
    mean, covariance = reference_moments(problem.model, points.rows)
    draws, location = sampler.draw(
        np.random.default_rng(4), problem.model, points.rows, WEIGHTS, 4000
    )
    sd = np.sqrt(np.diag(covariance))
    # Laplace is an approximation for rows this few; the other two are exact up to their error.
    slack = 0.45 if isinstance(sampler, cb.Laplace) else 0.08
    assert draws.shape == (4000, 3) and location.shape == (3,)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < slack * sd)
    assert np.all(np.abs(draws.std(axis=0) / sd - 1.0) < slack)


@pytest.mark.parametrize(("case", "sampler"), products(SAMPLERS))
def test_same_seed_same_draws_and_the_prior_without_rows(case, sampler):
    problem = case.problem()
    nothing = problem.no_points().rows
    first, _ = sampler.draw(np.random.default_rng(7), problem.model, nothing, np.empty(0), 500)
    second, _ = sampler.draw(np.random.default_rng(7), problem.model, nothing, np.empty(0), 500)
    assert np.array_equal(first, second)
    prior_mean = [0.2, 0.2, 0.2] if case.name == "custom" else [0.2, -0.1, 0.4]
    assert np.allclose(first.mean(axis=0), prior_mean, atol=0.5)
