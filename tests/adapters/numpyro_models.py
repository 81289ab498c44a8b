"""NumPyro models as users write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro import plate, sample
from numpyro.infer.util import constrain_fn, potential_energy

from corebayes.adapters.numpyro.adapter import from_numpyro
from tests.adapters.rows import NUM_GROUPS, Adapted


def logistic(X, y):
    beta = sample("beta", dist.Normal(0.0, 1.5).expand([X.shape[1]]).to_event(1))
    with plate("rows", X.shape[0]):
        sample("y", dist.Bernoulli(logits=X @ beta), obs=y)


def poisson(X, y, scale=1.0):
    alpha = sample("alpha", dist.Normal(0.0, scale))
    with plate("features", X.shape[1]):
        beta = sample("beta", dist.Laplace(0.0, scale))
    numpyro.deterministic("rate_at_zero", jnp.exp(alpha))
    eta = numpyro.deterministic("eta", alpha + X @ beta)
    with plate("rows", len(y)):
        sample("y", dist.Poisson(jnp.exp(0.5 * eta)), obs=y)


def linear(data):
    beta = sample("beta", dist.MultivariateNormal(jnp.zeros(3), 2.0 * jnp.eye(3)))
    sigma = sample("sigma", dist.HalfCauchy(1.0))
    with plate("rows", data["X"].shape[0]):
        sample("y", dist.Normal(data["X"] @ beta, sigma), obs=data["y"])


def robust(X, y):
    beta = sample("beta", dist.Normal(0.0, 1.0).expand([X.shape[1]]))
    sigma = sample("sigma", dist.LogNormal(0.0, 1.0))
    nu = sample("nu", dist.Gamma(2.0, 0.1))
    # No plate: the observations are a batch.
    sample("y", dist.StudentT(nu, X @ beta, sigma), obs=y)


def hierarchical(X, group, y, *, num_groups, num_rows):
    mu = sample("mu", dist.Normal(0.0, 1.0))
    tau = sample("tau", dist.HalfNormal(1.0))
    with plate("groups", num_groups):
        effect = sample("effect", dist.Normal(mu, tau))
    beta = sample("beta", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
    with plate("rows", num_rows):
        sample("y", dist.Bernoulli(logits=effect[group] + X @ beta), obs=y)


def constrained(label, share):
    probabilities = sample("probabilities", dist.Dirichlet(jnp.array([1.0, 2.0, 3.0])))
    mean = sample("mean", dist.Uniform(0.05, 0.95))
    size = sample("size", dist.Exponential(0.1))
    upper = sample("upper", dist.Uniform(0.0, size))
    numpyro.factor("pull", -0.1 * jnp.square(upper - 1.0))
    with plate("rows", label.shape[0]):
        sample("label", dist.Categorical(probabilities), obs=label)
        sample("share", dist.Beta(mean * size, (1.0 - mean) * size), obs=share)


def two_sites(X, y, count):
    beta = sample("beta", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
    slope = sample("slope", dist.Normal(0.0, 1.0))
    sigma = sample("sigma", dist.HalfNormal(1.0))
    eta = X @ beta
    with plate("rows", X.shape[0]):
        sample("y", dist.Normal(eta, sigma), obs=y)
        sample("count", dist.Poisson(jnp.exp(slope * eta)), obs=count)


def vector_valued(X, y):
    with plate("outcomes", 2):
        with plate("features", 3):
            beta = sample("beta", dist.Normal(0.0, 1.0))
        scale = sample("scale", dist.HalfNormal(1.0))
    factor = sample("factor", dist.LKJCholesky(2, 2.0))
    with plate("rows", X.shape[0]):
        sample("y", dist.MultivariateNormal(X @ beta, scale_tril=scale[:, None] * factor), obs=y)


def nested_plates(y):
    location = sample("location", dist.Normal(0.0, 1.0).expand([2]))
    with plate("rows", y.shape[0], dim=-2), plate("outcomes", 2, dim=-1):
        sample("y", dist.Normal(location, 0.8), obs=y)


def mixture(y):
    weights = sample("weights", dist.Dirichlet(jnp.ones(2)))
    location = sample("location", dist.Normal(jnp.array([-1.0, 1.0]), 1.0).to_event(1))
    with plate("rows", y.shape[0]):
        component = dist.Normal(location, 0.7)
        sample("y", dist.MixtureSameFamily(dist.Categorical(weights), component), obs=y)
        numpyro.factor("tilt", 0.1 * y * location[0])


# Name, model and how it is called.
CASES = [
    ("logistic", logistic, lambda r: ((r["X"], r["binary"]), {})),
    ("poisson", poisson, lambda r: ((r["X"],), {"y": r["count"], "scale": 2.0})),
    ("linear", linear, lambda r: (({"X": r["X"], "y": r["real"]},), {})),
    ("robust", robust, lambda r: ((jnp.asarray(r["X"]), r["heavy"]), {})),
    (
        "hierarchical",
        hierarchical,
        lambda r: (
            (r["X"], r["group"], r["grouped"]),
            {"num_groups": NUM_GROUPS, "num_rows": len(r["X"])},
        ),
    ),
    ("constrained", constrained, lambda r: ((r["label"], r["share"]), {})),
    ("two-sites", two_sites, lambda r: ((r["X"], r["real"], r["count"]), {})),
    ("vector-valued", vector_valued, lambda r: ((r["X"], r["pair"]), {})),
    ("nested-plates", nested_plates, lambda r: ((r["pair"],), {})),
    ("mixture", mixture, lambda r: ((r["real"],), {})),
]


def adapt(model: Callable[..., Any], call: Callable[..., Any], rows: dict[str, Any]) -> Adapted:
    """The model on these rows, and NumPyro's own answers."""
    args, kwargs = call(rows)
    adapted, data = from_numpyro(model, *args, **kwargs)

    energy = jax.jit(lambda values: potential_energy(model, args, kwargs, values))
    constrain = jax.jit(
        lambda values: constrain_fn(model, args, kwargs, values, return_deterministic=True)
    )

    def log_density(theta: Any) -> float:
        with jax.enable_x64(True):
            return -float(energy(adapted.split(jnp.asarray(theta))))

    def own_values(theta: Any) -> dict[str, Any]:
        with jax.enable_x64(True):
            own = constrain(adapted.split(jnp.asarray(theta)))
            return {name: np.asarray(value) for name, value in own.items()}

    return Adapted(adapted, data, log_density, own_values)
