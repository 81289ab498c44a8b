"""PyMC models as users write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corebayes.adapters.pymc.adapter import from_pymc
from tests.adapters.rows import NUM_GROUPS, Adapted
from tests.later import pymc as pm


def logistic(r):
    beta = pm.Normal("beta", 0.0, 1.5, shape=3)
    pm.Bernoulli("y", logit_p=r["X"] @ beta, observed=r["binary"])


def poisson(r):
    alpha = pm.Normal("alpha", 0.0, 1.0)
    beta = pm.Laplace("beta", 0.0, 1.0, shape=3)
    X = pm.Data("X", r["X"])
    pm.Deterministic("rate_at_zero", pm.math.exp(alpha))
    eta = pm.Deterministic("eta", alpha + pm.math.dot(X, beta))
    pm.Poisson("y", mu=pm.math.exp(0.5 * eta), observed=pm.Data("counts", r["count"]))


def linear(r):
    pm.modelcontext(None).add_coords({"feature": ["a", "b", "c"], "row": range(len(r["X"]))})
    beta = pm.Normal("beta", 0.0, 2.0, dims="feature")
    sigma = pm.HalfCauchy("sigma", 1.0)
    X = pm.Data("X", r["X"], dims=("row", "feature"))
    pm.Normal("y", pm.math.dot(X, beta), sigma, observed=r["real"], dims="row")


def robust(r):
    beta = pm.Normal("beta", 0.0, 1.0, shape=3)
    sigma = pm.LogNormal("sigma", 0.0, 1.0)
    nu = pm.Gamma("nu", 2.0, 0.1)
    pm.StudentT("y", nu=nu, mu=pm.math.dot(r["X"], beta), sigma=sigma, observed=r["heavy"])


def hierarchical(r):
    pm.modelcontext(None).add_coord("group", list("abcd"))
    assert NUM_GROUPS == 4
    mu = pm.Normal("mu", 0.0, 1.0)
    tau = pm.HalfNormal("tau", 1.0)
    offset = pm.Normal("offset", 0.0, 1.0, dims="group")
    effect = pm.Deterministic("effect", mu + tau * offset, dims="group")
    beta = pm.Normal("beta", 0.0, 1.0, shape=3)
    pm.Bernoulli("y", logit_p=effect[r["group"]] + r["X"] @ beta, observed=r["grouped"])


def constrained(r):
    probabilities = pm.Dirichlet("probabilities", np.array([1.0, 2.0, 3.0]))
    mean = pm.Uniform("mean", 0.05, 0.95)
    size = pm.Exponential("size", 0.1)
    upper = pm.Uniform("upper", 0.0, size)
    pm.Potential("pull", -0.1 * (upper - 1.0) ** 2)
    pm.Categorical("label", p=probabilities, observed=r["label"])
    pm.Beta("share", alpha=mean * size, beta=(1.0 - mean) * size, observed=r["share"])


def two_sites(r):
    beta = pm.Normal("beta", 0.0, 1.0, shape=3)
    slope = pm.Normal("slope", 0.0, 1.0)
    sigma = pm.HalfNormal("sigma", 1.0)
    eta = r["X"] @ beta
    pm.Normal("y", eta, sigma, observed=r["real"])
    pm.Poisson("count", pm.math.exp(slope * eta), observed=r["count"])


def vector_valued(r):
    beta = pm.Normal("beta", 0.0, 1.0, shape=(3, 2))
    scale = pm.HalfNormal("scale", 1.0, shape=2)
    factor = np.array([[1.0, 0.0], [0.6, 0.8]])
    pm.MvNormal("y", mu=r["X"] @ beta, chol=scale[:, None] * factor, observed=r["pair"])


def matrix_valued(r):
    location = pm.Normal("location", 0.0, 1.0, shape=2)
    pm.Normal("y", location, 0.8, observed=r["pair"])


def mixture(r):
    weights = pm.Dirichlet("weights", np.ones(2))
    location = pm.Normal("location", np.array([-1.0, 1.0]), 1.0)
    pm.NormalMixture("y", w=weights, mu=location, sigma=0.7, observed=r["real"])
    pm.Potential("tilt", 0.1 * r["real"] * location[0])


def ordered(r):
    beta = pm.Normal("beta", 0.0, 1.0, shape=3)
    transform, start = pm.distributions.transforms.ordered, np.array([-1.0, 1.0])
    cuts = pm.Normal("cuts", 0.0, 2.0, shape=2, transform=transform, initval=start)
    eta = pm.math.dot(pm.Data("X", r["X"]), beta)
    pm.OrderedLogistic("y", eta=eta, cutpoints=cuts, observed=r["label"])


CASES = [
    ("logistic", logistic),
    ("poisson", poisson),
    ("linear", linear),
    ("robust", robust),
    ("hierarchical", hierarchical),
    ("constrained", constrained),
    ("two-sites", two_sites),
    ("vector-valued", vector_valued),
    ("matrix-valued", matrix_valued),
    ("mixture", mixture),
    ("ordered", ordered),
]


def make(build: Callable[..., Any], rows: dict[str, Any]) -> pm.Model:
    with pm.Model() as model:
        build(rows)
    return model


def adapt(build: Callable[..., Any], rows: dict[str, Any]) -> Adapted:
    """The model on these rows, and PyMC's own answers."""
    model = make(build, rows)
    adapted, data = from_pymc(model)
    # Run by NumPy: nothing here is worth a C compiler.
    compiled = model.compile_logp(mode="FAST_COMPILE")
    variables = model.unobserved_value_vars
    inputs = {"inputs": model.value_vars, "on_unused_input": "ignore", "mode": "FAST_COMPILE"}
    values_of = model.compile_fn(variables, **inputs)

    def point(theta: Any) -> dict[str, Any]:
        values = adapted.split(theta)
        return {model.rvs_to_values[rv].name: values[rv.name] for rv in model.free_RVs}

    return Adapted(
        adapted,
        data,
        lambda theta: float(compiled(point(theta))),
        lambda theta: {v.name: x for v, x in zip(variables, values_of(point(theta)), strict=True)},
    )
