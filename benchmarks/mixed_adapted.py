"""Hierarchies as people have written them, adapted: gathers in NumPyro and PyMC, and Bambi's.

    python -m benchmarks.mixed_adapted [NAME ...] [--rows 20000] [--groups 20] [--seed 0]

Logistic intercepts of groups, centred (b ~ Normal(0, τ), η = xβ + b[g]) and not (η = xβ + τ·z[g]),
built and certified to .02 nats, then drawn by NUTS; and Bambi's model of flights with carriers and
origins. Which parameters a row touches is found, not told. Times are CPU seconds of this process,
compilation included; a case passes when it is certified and has no divergences.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402
from benchmarks.mixed import design, groups, labels  # noqa: E402

import corebayes as cb  # noqa: E402

TOL = 0.02


class Rows(NamedTuple):
    X: np.ndarray
    g: np.ndarray
    y: np.ndarray
    num_groups: int


def generated(asked: argparse.Namespace) -> Rows:
    rng = np.random.default_rng(asked.seed)
    X, _ = design(rng, asked.rows, 3)
    g = groups(rng, asked.rows, asked.groups)
    eta = X @ [-0.5, 0.4, 0.3] + 0.7 * rng.normal(size=asked.groups)[g]
    return Rows(X, g, labels(rng, eta), asked.groups)


def from_numpyro(rows: Rows, *, centred: bool) -> tuple[Any, Any]:
    import numpyro
    import numpyro.distributions as dist

    def model(X: Any, g: Any, y: Any = None) -> None:
        beta = numpyro.sample("beta", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
        tau = numpyro.sample("tau", dist.HalfNormal(1.0))
        with numpyro.plate("groups", rows.num_groups):
            b = numpyro.sample("b", dist.Normal(0.0, tau if centred else 1.0))
        effect = b[g] if centred else tau * b[g]
        with numpyro.plate("rows", X.shape[0]):
            numpyro.sample("y", dist.Bernoulli(logits=X @ beta + effect), obs=y)

    return cb.from_numpyro(model, X=rows.X, g=rows.g, y=rows.y)


def from_pymc(rows: Rows, *, centred: bool) -> tuple[Any, Any]:
    import pymc as pm

    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 1.0, shape=3)
        tau = pm.HalfNormal("tau", 1.0)
        b = pm.Normal("b", 0.0, tau if centred else 1.0, shape=rows.num_groups)
        X, g = pm.Data("X", rows.X), pm.Data("g", rows.g)
        effect = b[g] if centred else tau * b[g]
        pm.Bernoulli("y", logit_p=pm.math.dot(X, beta) + effect, observed=rows.y)
    return cb.from_pymc(model)


def from_bambi() -> tuple[Any, Any]:
    import bambi
    from benchmarks.mixed_flights import departures

    flights = departures()
    for name in ("distance", "temp", "hour"):
        flights[name] = (flights[name] - flights[name].mean()) / flights[name].std()
    flights["late"] = flights["late"].astype(int)
    formula = "late ~ distance + temp + (1 | carrier) + (1 + hour | origin)"
    return cb.from_bambi(bambi.Model(formula, flights, family="bernoulli"))


CASES: dict[str, Callable[[Rows], tuple[Any, Any]]] = {
    "numpyro": lambda rows: from_numpyro(rows, centred=True),
    "numpyro-non-centred": lambda rows: from_numpyro(rows, centred=False),
    "pymc": lambda rows: from_pymc(rows, centred=True),
    "pymc-non-centred": lambda rows: from_pymc(rows, centred=False),
    "bambi-flights": lambda _: from_bambi(),
}


def measure(name: str, make: Callable[[], tuple[Any, Any]], seed: int) -> bool:
    began = time.process_time()
    model, data = make()
    adapted = time.process_time()
    coreset = cb.build(model, data, tol=TOL, seed=seed, progress=False)
    built = time.process_time()
    found = cb.certify(coreset, data, tol=TOL, seed=seed + 1)
    certified = time.process_time()
    drawn = cb.sample(coreset, draws=500, chains=4, seed=seed)
    sampled = time.process_time()
    divergences = int(drawn.attrs.get("num_divergences", 0))
    good = bool(found.certified) and divergences == 0
    kl, verdict = found.reverse_kl, "certified" if found.certified else "not certified"
    words = "withheld" if kl is None else f"{kl.value:.1e} ± {kl.standard_error:.0e}"
    print(
        f"{'pass' if good else 'FAIL'}  {name}: {coreset.size:,} of {coreset.num_rows:,} rows, "
        f"{coreset.model.dim} parameters; KL {words}, {verdict} at {TOL:g}; "
        f"adapt {adapted - began:.1f} s, "
        f"build {built - adapted:.1f} s, certify {certified - built:.1f} s, 4 × 500 draws "
        f"{sampled - certified:.1f} s, {divergences} divergences",
        flush=True,
    )
    return good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(CASES))
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--groups", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    rows = generated(asked)
    results = [
        measure(name, partial(CASES[name], rows), asked.seed) for name in asked.names or CASES
    ]
    print(f"{sum(results)} of {len(results)} pass")


if __name__ == "__main__":
    main()
