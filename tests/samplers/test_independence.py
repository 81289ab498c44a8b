"""Independence Metropolis: the mixture, what a pilot says, and draws that are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import digamma, polygamma
from scipy.stats import multivariate_normal, multivariate_t

import corebayes as cb
from corebayes.rows import open_rows
from corebayes.samplers.independence import autocorrelation_time
from corebayes.samplers.proposal import Component, Proposal
from corebayes.types import Gaussian


def test_the_mixture_is_what_it_says() -> None:
    rng = np.random.default_rng(0)
    fits = [Gaussian(rng.normal(size=3), rng.normal(size=(3, 3))) for _ in range(2)]
    proposal = Proposal((Component(fits[0], 3.0), Component(fits[1], 1.0, 6.0)))
    draws = proposal.draw(rng, 200_000)
    covariances = [fit.factor @ fit.factor.T for fit in fits]
    first = multivariate_normal(fits[0].mean, covariances[0])
    second = multivariate_t(fits[1].mean, covariances[1], df=6.0)
    expected = np.log(0.75 * first.pdf(draws[:50]) + 0.25 * second.pdf(draws[:50]))
    np.testing.assert_allclose(proposal.log_density(draws[:50]), expected, rtol=1e-9)
    mean = 0.75 * fits[0].mean + 0.25 * fits[1].mean
    spread = draws.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 5.0 * spread)
    # The second moment tells a t from a Gaussian: df / (df − 2).
    second_moment = 0.75 * covariances[0] + 0.25 * 1.5 * covariances[1]
    second_moment += 0.75 * np.outer(fits[0].mean, fits[0].mean)
    second_moment += 0.25 * np.outer(fits[1].mean, fits[1].mean)
    np.testing.assert_allclose(draws.T @ draws / len(draws), second_moment, rtol=0.05, atol=0.05)


def test_autocorrelation_time_against_its_definition() -> None:
    ratios = np.random.default_rng(0).normal(size=40) * 1.5
    ratios[3] = -np.inf
    weights = np.exp(ratios)
    leaving = np.array([np.mean(np.minimum(1.0, weights / w)) if w > 0 else 1.0 for w in weights])
    expected = np.sum(weights * (2.0 / leaving - 1.0)) / weights.sum()
    assert autocorrelation_time(ratios) == pytest.approx(expected, rel=1e-12)
    assert autocorrelation_time(np.full(10, 3.0)) == pytest.approx(1.0)
    assert autocorrelation_time(np.full(10, -np.inf)) == np.inf


def separable(rng: np.random.Generator) -> tuple[Any, np.ndarray, np.ndarray]:
    """Few rows that a plane separates, of large weight: half-lines of tails."""
    X = rng.normal(size=(4, 3))
    return cb.LogisticRegression(prior=cb.Normal(0.0, 3.0)), X, (X[:, 0] > 0).astype(float)


def few_counts(rng: np.random.Generator) -> tuple[Any, np.ndarray, np.ndarray]:
    """Nearly no events: skewed to the left."""
    X = np.column_stack([rng.normal(size=6), np.ones(6)])
    return cb.PoissonRegression(prior=cb.Normal(0.0, 2.0), link="log"), X, np.eye(6)[0]


def many_rows(rng: np.random.Generator) -> tuple[Any, np.ndarray, np.ndarray]:
    X = rng.normal(size=(300, 5))
    y = (rng.random(300) < 1.0 / (1.0 + np.exp(-X @ np.arange(5.0) / 3.0))).astype(float)
    return cb.LogisticRegression(prior=cb.Normal()), X, y


def posterior_of(make: Any) -> cb.Posterior:
    rng = np.random.default_rng(5)
    model, X, y = make(rng)
    data = open_rows((X, y))
    rows = data.take(np.arange(len(y)))
    return cb.Posterior(model.bind(data), rows, rng.uniform(0.5, 3.0, len(y)))


def reference(posterior: cb.Posterior) -> tuple[np.ndarray, np.ndarray]:
    """Many draws of a wide t and their normalised ratios."""
    fit = cb.Laplace().fit(posterior)
    wide = Proposal((Component(Gaussian(fit.mean, 1.5 * fit.factor), 1.0, 4.0),))
    draws = wide.draw(np.random.default_rng(1), 300_000)
    ratios = posterior.log_density(draws) - wide.log_density(draws)
    weights = np.exp(ratios - ratios.max())
    return draws, weights / weights.sum()


@pytest.mark.parametrize("make", [separable, few_counts, many_rows])
def test_moments_and_tails(make: Any) -> None:
    posterior = posterior_of(make)
    drawn = cb.Automatic().draw(np.random.default_rng(3), posterior, 40_000)
    assert drawn.how.startswith("independence") and drawn.acceptance is not None
    assert drawn.acceptance > 0.3 and drawn.diagnosed().max_rhat < 1.01
    places, weights = reference(posterior)
    for k in range(posterior.dim):
        mean = weights @ places[:, k]
        sd = np.sqrt(weights @ np.square(places[:, k] - mean))
        values = drawn.flat[:, k]
        assert abs(values.mean() - mean) < 0.04 * sd
        assert abs(values.std() / sd - 1.0) < 0.04
        order = np.argsort(places[:, k])
        below = np.cumsum(weights[order])
        for level in (0.01, 0.1, 0.9, 0.99):
            quantile = places[order, k][np.searchsorted(below, level)]
            share = np.mean(values <= quantile)
            assert abs(share - level) < 0.02 * np.sqrt(level * (1.0 - level)) * 2.0 + 0.002
    heights = posterior.log_density(drawn.flat).reshape(drawn.values.shape[:2])
    np.testing.assert_allclose(drawn.stats["lp"], heights, rtol=1e-9)


def test_what_the_mixture_does_not_cover_is_for_nuts() -> None:
    """log-concave, but nothing like a Gaussian: e^−|θ| in fifteen dimensions, cut on one side."""

    def log_likelihood(draws: np.ndarray, block: Any) -> np.ndarray:
        z = 30.0 * draws
        height = -np.sum(np.logaddexp(z, -2.0 * z), axis=1) + 1e-3 * np.sum(draws, axis=1)
        return np.broadcast_to(height, (len(block), len(draws)))

    data = open_rows({"x": np.zeros(1)})
    model = cb.CustomModel(
        log_likelihood, lambda draws: np.zeros(len(draws)), 15, log_concave=True
    ).bind(data)
    posterior = cb.Posterior(model, data.take(np.arange(1)), np.ones(1))
    independence = cb.Independence()
    pilot = independence.fit(np.random.default_rng(0), posterior)
    assert pilot is not None and not independence.covers(pilot)
    drawn = cb.Automatic(chains=2, num_tune=200).draw(np.random.default_rng(0), posterior, 400)
    assert drawn.how == "NUTS, 2 chains" and drawn.diagnosed().max_rhat < 1.05


def test_skewed_tails_are_for_wider_proposals() -> None:
    """Logarithms of gamma variables: proposals around the mode meet ratios that are too large."""

    def log_likelihood(draws: np.ndarray, block: Any) -> np.ndarray:
        height = np.sum(2.0 * draws - np.exp(draws), axis=1)
        return np.broadcast_to(height, (len(block), len(draws)))

    data = open_rows({"x": np.zeros(1)})
    model = cb.CustomModel(
        log_likelihood, lambda draws: np.zeros(len(draws)), 2, log_concave=True
    ).bind(data)
    posterior = cb.Posterior(model, data.take(np.arange(1)), np.ones(1))
    independence = cb.Independence()
    rng = np.random.default_rng(7)
    pilot = independence.fit(rng, posterior)
    assert pilot is not None
    narrow = independence.run(rng, posterior, pilot, 4000)
    assert narrow.pareto_k is not None and narrow.pareto_k > independence.max_pareto_k
    drawn = cb.Automatic().draw(np.random.default_rng(7), posterior, 4000)
    assert drawn.how == "independence Metropolis, 4 chains"
    np.testing.assert_allclose(drawn.flat.mean(axis=0), digamma(2.0), atol=0.06)
    np.testing.assert_allclose(drawn.flat.var(axis=0), polygamma(1, 2.0), rtol=0.15)


@pytest.mark.parametrize(("dim", "how"), [(2, "independence Metropolis"), (7, "NUTS")])
def test_modes_are_looked_for_where_that_is_cheap_else_it_is_for_nuts(dim: int, how: str) -> None:
    """Student's t noise is not log-concave."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, dim))
    data = open_rows((X, X @ np.linspace(1.0, -2.0, dim) + rng.standard_t(3, 40)))
    posterior = cb.Posterior(
        cb.StudentTRegression(df=4.0, scale=1.0, prior=cb.Normal()).bind(data),
        data.take(np.arange(40)),
        np.ones(40),
    )
    drawn = cb.Automatic(num_tune=200).draw(rng, posterior, 400)
    assert drawn.how == f"{how}, 4 chains" and drawn.values.shape == (4, 100, dim)
