"""Hierarchies of other libraries: few derivatives of rows and prior, and coresets from them."""

from __future__ import annotations

import pickle
from functools import cache

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro import plate, sample

import corebayes as cb
from corebayes.adapters.jax_model import float64
from corebayes.adapters.numpyro.adapter import from_numpyro
from corebayes.adapters.pymc.adapter import from_pymc
from corebayes.arrow.layout import Layout
from corebayes.arrow.start import fitting_of
from corebayes.arrow.traced_prior import TracedPrior
from corebayes.models.custom.rescaling import Rescaling
from corebayes.models.structure import is_structured
from corebayes.samplers.posterior import Posterior
from corebayes.tangent.arrow.geometry import Arrow
from tests.later import pymc

pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link")

N, G = 1500, 8


def rows():
    rng = np.random.default_rng(2)
    g = rng.choice(G, size=N, p=rng.dirichlet(np.full(G, 3.0)))
    x = rng.normal(0.3, 1.0, size=N)
    eta = -0.4 + 0.6 * x + 0.7 * rng.normal(size=G)[g]
    return x, g, eta, rng


def logistic(x, g, y, G, non_centred):
    mu, beta = (sample(name, dist.Normal(0.0, 2.0)) for name in ("mu", "beta"))
    tau = sample("tau", dist.HalfNormal(1.0))
    if non_centred:
        b = mu + tau * sample("z", dist.Normal(0.0, 1.0).expand([G]).to_event(1))
    else:
        b = sample("b", dist.Normal(mu, tau).expand([G]).to_event(1))
    with plate("rows", x.shape[0]):
        sample("y", dist.Bernoulli(logits=beta * x + b[g]), obs=y)


def flat(x, g, y, G):
    beta = sample("beta", dist.ImproperUniform(dist.constraints.real, (), ()))
    sigma = sample("sigma", dist.ImproperUniform(dist.constraints.positive, (), ()))
    tau = sample("tau", dist.HalfCauchy(1.0))
    b = sample("b", dist.Normal(jnp.zeros((G, 2)), tau).to_event(2))
    with plate("rows", x.shape[0]):
        sample("y", dist.Normal(b[g][:, 0] + (beta + b[g][:, 1]) * x, sigma), obs=y)


@cache
def adapted(name):
    x, g, eta, rng = rows()
    if name == "flat":
        return from_numpyro(flat, x, g, eta + 0.5 * rng.normal(size=N), G)
    y = (rng.uniform(size=N) < 1.0 / (1.0 + np.exp(-eta))).astype(int)
    return from_numpyro(logistic, x, g, y, G, name == "non-centred")


SLOW = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param("centred", marks=SLOW), "non-centred", pytest.param("flat", marks=SLOW)]
)
def test_few_derivatives_are_those_of_everything(name):
    model, data = adapted(name)
    assert is_structured(model)
    layout, rng = Layout(model.structure), np.random.default_rng(0)
    at = rng.normal(scale=0.3, size=model.dim)
    block, rescaling = data.take(np.arange(40)), model.rescaling

    def terms(x):
        return model.row_terms(rescaling.traced(x), dict(block.fields))

    def prior(x):
        return model.prior_term(rescaling.traced(x)) + rescaling.traced_log_volume(x)

    with float64():
        slopes, bends = (np.asarray(jax.jit(d(terms))(at)) for d in (jax.jacrev, jax.hessian))
        prior_bend = np.asarray(jax.jit(jax.hessian(prior))(at))
    means, touch = model.row_means(at[None], block), model.touch(block)
    own = [term.positions[touch.groups[:, k]] for k, term in enumerate(model.structure.terms)]
    shared = np.broadcast_to(model.structure.shared, (40, model.structure.shared.size))
    places = np.concatenate([shared, *own], axis=1)
    n = np.arange(40)[:, None]
    first = np.einsum("nk,nkm->nm", means.first, touch.designs)
    np.testing.assert_allclose(first, slopes[n, places], atol=1e-10)
    second = np.einsum("nkm,nkj,njl->nml", touch.designs, means.second, touch.designs)
    exact = bends[n[:, :, None], places[:, :, None], places[:, None]]
    np.testing.assert_allclose(second, exact, atol=1e-9)
    # Nothing else is touched.
    assert np.count_nonzero(np.abs(bends) > 1e-12) <= 40 * places.shape[1] ** 2
    sums = TracedPrior(model, layout).sums(at)
    free = layout.wide_positions[: layout.num_touched]
    found = sums.wide_wide[: free.size, : free.size]
    np.testing.assert_allclose(found, prior_bend[np.ix_(free, free)], atol=1e-9)
    for group, own_places in enumerate(layout.own_positions):
        block_of = prior_bend[np.ix_(own_places, own_places)]
        np.testing.assert_allclose(sums.own_own[group], block_of, atol=1e-9)
        lean = prior_bend[np.ix_(own_places, free)]
        np.testing.assert_allclose(sums.own_wide[group][:, : free.size], lean, atol=1e-9)


def test_rescaled_coordinates_go_there_and_back():
    # As a model of two shared parameters, a log scale and effects in units of it has them.
    dim, tau, z = 3 + G, 2, np.arange(3, 3 + G)
    rescaling, rng = Rescaling(np.r_[np.full(3, -1), np.full(G, tau)]), np.random.default_rng(1)
    theta = rng.normal(size=(3, dim))
    x = rescaling.coordinates(theta)
    np.testing.assert_allclose(x[:, z], np.exp(theta[:, [tau]]) * theta[:, z])
    np.testing.assert_allclose(rescaling.theta(x), theta)
    with float64():
        jacobian = np.asarray(jax.jit(jax.jacfwd(rescaling.traced))(x[0]))
        volume = float(rescaling.traced_log_volume(x[0]))
    np.testing.assert_allclose(rescaling.factor(x[0], np.eye(dim)), jacobian, atol=1e-12)
    assert np.isclose(volume, np.linalg.slogdet(jacobian)[1])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["centred", pytest.param("non-centred", marks=SLOW)])
def test_a_coreset_has_the_same_posterior(name):
    model, data = adapted(name)
    coreset = cb.build(model, data, size=60)
    assert coreset.size <= 60 and "GroupedPursuit" in coreset.provenance["method"]
    certificate = cb.certify(coreset, data, tol=0.02, draws=400)
    assert certificate.certified, str(certificate)


@pytest.mark.slow
def test_both_forms_have_the_same_fit():
    """Up to the random numbers of rows, the two forms are one posterior."""
    means = []
    for name in ("centred", "non-centred"):
        model, data = adapted(name)
        coreset = cb.build(model, data, size=60)
        fitting = fitting_of(model)
        space = Arrow().space(
            np.random.default_rng(0), _problem(model, data), _points(coreset), None
        )
        assert fitting.layout.dim == model.dim
        split = model.split(space.location)
        effects = (
            split["b"] if name == "centred" else split["mu"] + np.exp(split["tau"]) * split["z"]
        )
        means.append(np.r_[split["beta"], split["tau"], effects])
    np.testing.assert_allclose(means[0], means[1], atol=0.1)


@pytest.mark.slow
def test_pymc_with_a_flat_prior_and_pickled():
    x, g, eta, rng = rows()
    with pymc.Model() as own:
        beta, sigma = pymc.Flat("beta"), pymc.HalfNormal("sigma", 2.0)
        tau = pymc.HalfNormal("tau", 1.0)
        b = pymc.Normal("b", 0.0, tau, shape=G)
        pymc.Normal("y", beta * x + b[g], sigma, observed=eta + 0.4 * rng.normal(size=N))
    model, data = from_pymc(own)
    coreset = cb.build(model, data, size=60)
    again = pickle.loads(cloudpickle.dumps(model))
    assert is_structured(again) and again.structure.describe() == model.structure.describe()
    draws = cb.NUTS(chains=2, num_tune=200).draw(
        np.random.default_rng(0), Posterior.of(coreset), 400
    )
    assert draws.num_divergences == 0
    sigma_at = int(model.split(np.arange(model.dim))["sigma"])
    assert abs(np.exp(draws.flat[:, sigma_at].mean()) - 0.4) < 0.05


@pytest.mark.slow
def test_a_custom_model_in_jax_is_grouped():
    x, g, eta, rng = rows()
    y = eta + 0.5 * rng.normal(size=N)

    def log_likelihood(draws, block):
        groups = block["X"][:, 1].astype(int)
        mean = block["X"][:, :1] * draws[:, 0] + draws[:, 2 : 2 + G].T[groups]
        return -2.0 * (block["y"][:, None] - mean) ** 2

    def log_prior(draws):
        v, b = draws[:, 1], draws[:, 2:]
        effects = -0.5 * jnp.sum((b * jnp.exp(-v)[:, None]) ** 2, axis=1) - G * v
        return effects - 0.5 * jnp.exp(2.0 * v) + v - 0.1 * draws[:, 0] ** 2

    model = cb.CustomModel(log_likelihood, log_prior, 2 + G)
    data = (np.column_stack([x, g]), y)
    coreset = cb.build(model, data, size=40)
    assert "GroupedPursuit" in coreset.provenance["method"]
    assert is_structured(coreset.model) and coreset.model.structure.scales.tolist() == [1]
    assert cb.certify(coreset, data, tol=0.02, draws=400).certified


def _problem(model, data):
    from corebayes.problem import Problem

    return Problem(model, data)


def _points(coreset):
    from corebayes.types import WeightedPoints

    return WeightedPoints(coreset.indices, coreset.rows, coreset.weights)
