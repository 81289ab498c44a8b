"""Models that no coreset can be made of are refused with the site and the reason."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro import factor, plate, sample

from corebayes.adapters.numpyro.adapter import from_numpyro
from corebayes.adapters.pymc.adapter import from_pymc
from tests.adapters.rows import make_rows
from tests.later import pymc as pm

pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link")
ROWS = make_rows(30)
X, Y, BINARY = ROWS["X"], ROWS["real"], ROWS["binary"]


def local_latent(X, y):
    with plate("rows", len(y)):
        z = sample("z", dist.Normal(0.0, 1.0))
        sample("y", dist.Normal(z, 1.0), obs=y)


def imputed(y, seen):
    mu = sample("mu", dist.Normal(0.0, 1.0))
    with plate("rows", len(y)):
        sample("y", dist.Normal(mu, 1.0), obs=y, obs_mask=seen)


def discrete(y):
    k = sample("k", dist.Bernoulli(0.5))
    with plate("rows", len(y)):
        sample("y", dist.Normal(k, 1.0), obs=y)


def centred(X, y):
    beta = sample("beta", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
    with plate("rows", len(y)):
        sample("y", dist.Normal((X - X.mean(axis=0)) @ beta, 1.0), obs=y)


def autoregressive(y):
    rho = sample("rho", dist.Normal(0.0, 1.0))
    before = jnp.concatenate([jnp.zeros(1), y[:-1]])
    with plate("rows", len(y)):
        sample("y", dist.Normal(rho * before, 1.0), obs=y)


def data_prior(y):
    mu = sample("mu", dist.Normal(y.mean(), 1.0))
    with plate("rows", len(y)):
        sample("y", dist.Normal(mu, 1.0), obs=y)


def one_event(y):
    mu = sample("mu", dist.Normal(0.0, 1.0))
    sample("y", dist.Normal(mu, 1.0).expand([len(y)]).to_event(1), obs=y)


def summed_factor(y):
    mu = sample("mu", dist.Normal(0.0, 1.0))
    factor("likelihood", -0.5 * jnp.sum((y - mu) ** 2))
    with plate("rows", len(y)):
        sample("y", dist.Normal(mu, 1.0), obs=y)


def subsampled(y):
    mu = sample("mu", dist.Normal(0.0, 1.0))
    with plate("rows", len(y), subsample_size=3) as rows:
        sample("y", dist.Normal(mu, 1.0), obs=y[rows])


def closed_over():
    mu = sample("mu", dist.Normal(0.0, 1.0))
    with plate("rows", len(Y)):
        sample("y", dist.Normal(mu, 1.0), obs=Y)


def fixed_plate(X):
    mu = sample("mu", dist.Normal(0.0, 1.0))
    with plate("rows", 30):
        sample("y", dist.Normal(X[:, 0] * mu, 1.0), obs=Y)


@pytest.mark.parametrize(
    ("model", "arguments", "message"),
    [
        (local_latent, (X, Y), r"site 'z' .*latent variable of each row"),
        (local_latent, (X[:, 0], Y), r"site 'z'"),
        (imputed, (Y, np.arange(30) > 3), r"site 'y' imputes observations"),
        (discrete, (Y,), r"site 'k' is discrete"),
        (centred, (X, Y), r"site 'y' depends on other rows: the log-likelihood of row \d+"),
        (autoregressive, (Y,), r"site 'y' depends on other rows"),
        (data_prior, (Y,), r"site 'mu' .*changes with the rows"),
        (one_event, (Y,), r"site 'y' puts all rows into one event"),
        (summed_factor, (Y,), r"site 'likelihood' .*changes with the rows"),
        (subsampled, (Y,), r"plate 'rows' takes a random subsample of 3"),
        (closed_over, (), r"given no arrays"),
        (fixed_plate, (X,), r"does not run on 5 of its 30 rows"),
        (lambda X, y=None: local_latent(X, X[:, 0]), (X,), r"site 'z'"),
    ],
)
def test_numpyro(model, arguments, message):
    with pytest.raises(ValueError, match=message):
        from_numpyro(model, *arguments)


def pymc_local(mu: Any) -> None:
    z = pm.Normal("z", mu, 1.0, shape=30)
    pm.Normal("y", z, 1.0, observed=Y)


def pymc_imputed(mu: Any) -> None:
    pm.Normal("y", mu, 1.0, observed=np.ma.masked_array(Y, np.arange(30) < 2))


def pymc_discrete(mu: Any) -> None:
    k = pm.Bernoulli("k", 0.5)
    pm.Normal("y", mu + k, 1.0, observed=Y)


def pymc_centred(mu: Any) -> None:
    x = pm.Data("x", X[:, 0])
    pm.Normal("y", mu * (x - x.mean()), 1.0, observed=Y)


def pymc_data_prior(mu: Any) -> None:
    x = pm.Data("x", X[:, 0])
    sigma = pm.HalfNormal("sigma", pm.math.exp(x.mean()))
    pm.Normal("y", mu * x, sigma, observed=Y)


def pymc_summed(mu: Any) -> None:
    pm.Potential("likelihood", -0.5 * pm.math.sum((pm.Data("x", X[:, 0]) - mu) ** 2))
    pm.Normal("y", mu, 1.0, observed=Y)


def pymc_one_density(mu: Any) -> None:
    pm.MvNormal("y", mu * np.ones(30), cov=np.eye(30), observed=Y)


def pymc_nothing(mu: Any) -> None:
    pm.Normal("other", mu, 1.0)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (pymc_local, r"variable 'z' .*as long as the 30 rows"),
        (pymc_imputed, r"variable 'y' has missing observations"),
        (pymc_discrete, r"variable 'k' is discrete"),
        (pymc_centred, r"site 'y' depends on other rows"),
        (pymc_data_prior, r"site 'sigma' .*changes with the rows"),
        (pymc_summed, r"site 'likelihood' .*changes with the rows"),
        (pymc_one_density, r"variable 'y' puts all rows into one density"),
        (pymc_nothing, r"no observed variable"),
    ],
)
@pytest.mark.filterwarnings("ignore:Data in y contains missing values")
def test_pymc(build, message):
    with pm.Model() as model:
        build(pm.Normal("mu", 0.0, 1.0))
    with pytest.raises(ValueError, match=message):
        from_pymc(model)
