from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from corebayes.models.priors.scale import (
    Beta,
    Exponential,
    Gamma,
    HalfNormal,
    HalfStudentT,
    OnLine,
    Reciprocal,
    scale_prior_from_config,
)


def half_t(df, scale):
    """|t|·scale; SciPy has no such distribution of its own."""
    t = stats.t(df, scale=scale)
    return lambda x: np.log(2.0) + t.logpdf(x)


PRIORS = [
    (HalfNormal(), stats.halfnorm().logpdf),
    (HalfNormal(0.3), stats.halfnorm(scale=0.3).logpdf),
    (HalfStudentT(3.0, 2.5), half_t(3.0, 2.5)),
    (HalfStudentT(1.0, 0.7), stats.halfcauchy(scale=0.7).logpdf),
    (Gamma(2.0, 0.1), stats.gamma(2.0, scale=10.0).logpdf),
    (Gamma(0.4, 3.0), stats.gamma(0.4, scale=1.0 / 3.0).logpdf),
    (Exponential(2.0), stats.expon(scale=0.5).logpdf),
    (Reciprocal(HalfStudentT(1.0, 4.0)), stats.halfcauchy(scale=0.25).logpdf),
    (Reciprocal(Gamma(3.0, 2.0)), stats.invgamma(3.0, scale=2.0).logpdf),
]
priors = pytest.mark.parametrize(("prior", "log_density"), PRIORS, ids=lambda p: str(p)[:24])


@priors
def test_density_with_the_jacobian(prior, log_density):
    u = np.linspace(-7.0, 3.0, 25).reshape(5, 5)
    np.testing.assert_allclose(prior.log_density(u), log_density(np.exp(u)) + u, rtol=1e-12)


@priors
def test_density_integrates_to_one(prior, log_density):
    u = np.linspace(-60.0, 30.0, 200_001)
    assert np.exp(prior.log_density(u)).sum() * (u[1] - u[0]) == pytest.approx(1.0, abs=1e-6)


@priors
def test_derivatives(prior, log_density):
    u, step = np.linspace(-4.0, 2.0, 13), 1e-5
    first = (prior.log_density(u + step) - prior.log_density(u - step)) / (2.0 * step)
    second = (prior.gradient(u + step) - prior.gradient(u - step)) / (2.0 * step)
    np.testing.assert_allclose(prior.gradient(u), first, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(prior.hessian(u), second, rtol=1e-6, atol=1e-8)


@priors
def test_draws_have_the_density(prior, log_density):
    draws = prior.draw(np.random.default_rng(3), 20_000)
    u = np.linspace(-80.0, 40.0, 200_001)
    cumulative = np.cumsum(np.exp(prior.log_density(u))) * (u[1] - u[0])
    assert draws.shape == (20_000,)
    assert stats.kstest(draws, lambda x: np.interp(x, u, cumulative)).pvalue > 0.001


@priors
def test_far_out_nothing_is_nan(prior, log_density):
    u = np.array([-1e300, -800.0, 400.0, 800.0, 1e300])
    assert not np.isnan(prior.log_density(u)).any()
    assert not np.isnan(prior.gradient(u)).any()
    assert not np.isnan(prior.hessian(u)).any()
    assert np.isfinite(prior.draw(np.random.default_rng(0), 1000)).all()


@priors
def test_config_makes_it_again(prior, log_density):
    again = scale_prior_from_config(json.loads(json.dumps(prior.config())))
    assert again == prior


def test_what_is_refused():
    with pytest.raises(ValueError, match="scale must be positive and finite, got 0"):
        HalfNormal(0.0)
    with pytest.raises(TypeError, match="df must be a number, got 'a'"):
        HalfStudentT("a")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="'Normal' is no prior of a scale"):
        scale_prior_from_config({"kind": "Normal"})


@pytest.mark.parametrize(
    "prior", [*(prior for prior, _ in PRIORS), Beta(2.0, 3.5), OnLine(-0.4, 0.3)], ids=str
)
def test_the_mode_is_where_nothing_is_gained(prior):
    mode = np.array(prior.mode)
    assert float(prior.gradient(mode)) == pytest.approx(0.0, abs=1e-10)
    around = prior.log_density(mode + np.array([-0.1, 0.1]))
    assert np.all(around < prior.log_density(mode))


def test_a_number_on_the_line_is_normal():
    u = np.linspace(-2.0, 2.0, 9)
    prior = OnLine(-0.4, 0.3)
    np.testing.assert_allclose(prior.log_density(u), stats.norm(-0.4, 0.3).logpdf(u), rtol=1e-12)
    np.testing.assert_allclose(prior.gradient(u), -(u + 0.4) / 0.09)
    np.testing.assert_allclose(prior.hessian(u), -1.0 / 0.09)
