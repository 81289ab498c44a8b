"""Families and several group terms as people write them by hand in PyMC and NumPyro.

    python -m benchmarks.mixed_by_hand [NAME ...] [--rows 20000] [--groups 20] [--seed 0]
    python -m benchmarks.mixed_by_hand negative-binomial-numpyro --groups 0 --columns 12

A name is FAMILY-LIBRARY, or FAMILY-LIBRARY-non-centred; `terms` is a logistic model of
(1 | a) + (1 | c) + (1 + x | d), also by formula and from Bambi. Without groups it is a regression
whose rows see all parameters through one predictor and a few constants. Built and certified to .02
nats, then drawn, as in `benchmarks.mixed_adapted`, which says what passes.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import partial
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402
from benchmarks.mixed import groups, labels  # noqa: E402
from benchmarks.mixed_adapted import measure  # noqa: E402

import corebayes as cb  # noqa: E402

TERMS = "y ~ x + z + (1 | a) + (1 | c) + (1 + x | d)"
CUTS = np.array([-1.0, 0.2, 1.4])


def table(family: str, asked: argparse.Namespace) -> dict[str, Any]:
    """Columns X, groups if there are any, and y."""
    rng = np.random.default_rng(asked.seed)
    N, G, p = asked.rows, asked.groups, asked.columns
    X = rng.normal(size=(N, p))
    eta = 0.4 + X @ np.resize([0.5, -0.3], p) / np.sqrt(0.5 * p)
    g = groups(rng, N, G) if G else None
    if g is not None:
        eta += 0.5 * rng.normal(size=G)[g]
    if family == "terms":
        c, d = groups(rng, N, G), groups(rng, N, G)
        eta += 0.4 * rng.normal(size=G)[c]
        eta += (0.5 * rng.normal(size=G))[d] + 0.3 * rng.normal(size=G)[d] * X[:, 0]
        return {"X": X, "a": g, "c": c, "d": d, "y": labels(rng, eta - 1.0)}
    draw = {
        "gaussian": lambda: eta + 0.8 * rng.normal(size=N),
        "student-t": lambda: eta + 0.7 * rng.standard_t(4.0, size=N),
        "gamma": lambda: rng.gamma(3.0, np.exp(eta) / 3.0),
        "poisson": lambda: rng.poisson(np.exp(eta)),
        "negative-binomial": lambda: rng.poisson(np.exp(eta) * rng.gamma(2.0, 0.5, size=N)),
        "ordinal": lambda: (rng.logistic(size=N) + eta)[:, None].__gt__(CUTS).sum(axis=1),
    }[family]
    return {"X": X, **({} if g is None else {"g": g}), "y": draw()}


def from_pymc(family: str, centred: bool, asked: argparse.Namespace) -> tuple[Any, Any]:
    import pymc as pm

    data = table(family, asked)
    names = [name for name in data if name not in ("X", "y")]

    def effect(name: str) -> Any:
        tau = pm.HalfNormal(f"tau_{name}", 1.0)
        b = pm.Normal(f"b_{name}", 0.0, tau if centred else 1.0, shape=asked.groups)
        return b if centred else tau * b

    with pm.Model() as model:
        X = pm.Data("X", data["X"])
        index = {name: pm.Data(name, data[name]) for name in names}
        beta = pm.Normal("beta", 0.0, 1.0, shape=asked.columns)
        eta = pm.math.dot(X, beta)
        if family != "ordinal":
            eta = eta + pm.Normal("alpha", 0.0, 2.0)
        for name in names:
            eta = eta + effect(name)[index[name]]
        if family == "terms":
            eta = eta + effect("d_slope")[index["d"]] * X[:, 0]
            pm.Bernoulli("y", logit_p=eta, observed=data["y"])
        elif family == "gaussian":
            pm.Normal("y", eta, pm.HalfNormal("sigma", 2.0), observed=data["y"])
        elif family == "student-t":
            sigma, nu = pm.HalfNormal("sigma", 2.0), pm.Gamma("nu", 2.0, 0.1)
            pm.StudentT("y", nu=nu, mu=eta, sigma=sigma, observed=data["y"])
        elif family == "gamma":
            shape = pm.HalfNormal("shape", 5.0)
            pm.Gamma("y", alpha=shape, beta=shape / pm.math.exp(eta), observed=data["y"])
        elif family == "poisson":
            pm.Poisson("y", mu=pm.math.exp(eta), observed=data["y"])
        elif family == "negative-binomial":
            size = pm.Exponential("size", 0.5)
            pm.NegativeBinomial("y", mu=pm.math.exp(eta), alpha=size, observed=data["y"])
        else:
            cuts = pm.Normal(
                "cuts",
                0.0,
                2.0,
                shape=3,
                transform=pm.distributions.transforms.ordered,
                initval=CUTS,
            )
            pm.OrderedLogistic("y", eta=eta, cutpoints=cuts, observed=data["y"])
    return cb.from_pymc(model)


def from_numpyro(family: str, centred: bool, asked: argparse.Namespace) -> tuple[Any, Any]:
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    data = table(family, asked)
    names = [name for name in data if name not in ("X", "y")]

    def effect(name: str) -> Any:
        tau = numpyro.sample(f"tau_{name}", dist.HalfNormal(1.0))
        with numpyro.plate(f"groups_{name}", asked.groups):
            b = numpyro.sample(f"b_{name}", dist.Normal(0.0, tau if centred else 1.0))
        return b if centred else tau * b

    def likelihood(eta: Any) -> Any:
        if family == "terms":
            return dist.Bernoulli(logits=eta)
        if family == "gaussian":
            return dist.Normal(eta, numpyro.sample("sigma", dist.HalfNormal(2.0)))
        if family == "student-t":
            nu = numpyro.sample("nu", dist.Gamma(2.0, 0.1))
            return dist.StudentT(nu, eta, numpyro.sample("sigma", dist.HalfNormal(2.0)))
        if family == "gamma":
            shape = numpyro.sample("shape", dist.HalfNormal(5.0))
            return dist.Gamma(shape, shape / jnp.exp(eta))
        if family == "poisson":
            return dist.Poisson(jnp.exp(eta))
        if family == "negative-binomial":
            size = numpyro.sample("size", dist.Exponential(0.5))
            return dist.NegativeBinomial2(jnp.exp(eta), size)
        steps = dist.Normal(0.0, 2.0).expand([3]).to_event(1)
        ordered = dist.transforms.OrderedTransform()
        cuts = numpyro.sample("cuts", dist.TransformedDistribution(steps, ordered))
        return dist.OrderedLogistic(eta, cuts)

    def model(X: Any, y: Any = None, **index: Any) -> None:
        beta = numpyro.sample("beta", dist.Normal(0.0, 1.0).expand([asked.columns]).to_event(1))
        eta = X @ beta
        if family != "ordinal":
            eta = eta + numpyro.sample("alpha", dist.Normal(0.0, 2.0))
        for name in names:
            eta = eta + effect(name)[index[name]]
        if family == "terms":
            eta = eta + effect("d_slope")[index["d"]] * X[:, 0]
        given = likelihood(eta)
        with numpyro.plate("rows", X.shape[0]):
            numpyro.sample("y", given, obs=y)

    return cb.from_numpyro(model, **data)


def frame_of_terms(asked: argparse.Namespace) -> Any:
    import pandas as pd

    data = table("terms", asked)
    columns = {name: data[name] for name in ("a", "c", "d", "y")}
    return pd.DataFrame({"x": data["X"][:, 0], "z": data["X"][:, 1], **columns}).astype(
        {"y": int, "a": str, "c": str, "d": str}
    )


def from_formula(asked: argparse.Namespace) -> tuple[Any, Any]:
    return cb.from_formula(TERMS, frame_of_terms(asked), family="bernoulli")


def from_bambi(asked: argparse.Namespace) -> tuple[Any, Any]:
    import bambi

    return cb.from_bambi(bambi.Model(TERMS, frame_of_terms(asked), family="bernoulli"))


FAMILIES = (
    "student-t",
    "terms",
    "negative-binomial",
    "ordinal",
    "gamma",
    "gaussian",
    "poisson",
)
LIBRARIES: dict[str, Callable[..., tuple[Any, Any]]] = {"pymc": from_pymc, "numpyro": from_numpyro}
CASES: dict[str, Callable[[argparse.Namespace], tuple[Any, Any]]] = {
    f"{family}-{library}{'' if centred else '-non-centred'}": partial(make, family, centred)
    for family in FAMILIES
    for library, make in LIBRARIES.items()
    for centred in (True, False)
}
CASES |= {"terms-formula": from_formula, "terms-bambi": from_bambi}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(CASES))
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--groups", type=int, default=20)
    parser.add_argument("--columns", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    results = [
        measure(name, partial(CASES[name], asked), asked.seed) for name in asked.names or CASES
    ]
    print(f"{sum(results)} of {len(results)} pass")


if __name__ == "__main__":
    main()
