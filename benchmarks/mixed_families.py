"""Every family with groups, to a tolerance: rows, KL, divergences and CPU seconds.

    python -m benchmarks.mixed_families [NAME ...] [--rows 20000] [--groups 30] [--tol 0.05]
                                        [--terms intercept slope] [--seed 0] [--again 1]

(1 | g) and (1 + x | g) of unbalanced groups, all constants of the family learned. A line passes
when `build(tol=)` ends within --seconds, each of --again certificates at other seeds agrees, and
NUTS of the coreset has no divergences. Times are CPU seconds of this process, compilation included.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any, NamedTuple

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402
from benchmarks.mixed import groups, sample  # noqa: E402

import corebayes as cb  # noqa: E402

TERMS = {"intercept": ("1",), "slope": ("1", "x1"), "only-slope": ("x1",)}


class Truth(NamedTuple):
    """A family, and where its linear predictors and constants are (these on the line)."""

    family: Any
    linear: tuple[float, ...]
    constants: tuple[float, ...] = ()


FAMILIES = {
    "gaussian": Truth(cb.LinearRegression(), (0.5,), (0.5,)),
    "student-t": Truth(cb.StudentTRegression(), (0.5,), (0.3, 1.4)),
    "logistic": Truth(cb.LogisticRegression(), (-0.6,)),
    "probit": Truth(cb.ProbitRegression(), (-0.3,)),
    "cloglog": Truth(cb.CloglogRegression(), (-0.6,)),
    "poisson": Truth(cb.PoissonRegression(link="log"), (0.4,)),
    "softplus": Truth(cb.PoissonRegression(link="softplus"), (1.0,)),
    "negative-binomial": Truth(cb.NegativeBinomialRegression(), (0.8,), (-0.5,)),
    "binomial": Truth(cb.BinomialRegression(trials="trials"), (0.4,)),
    "gamma": Truth(cb.GammaRegression(), (0.4,), (0.7,)),
    "beta": Truth(cb.BetaRegression(), (0.4,), (1.7,)),
    "exponential": Truth(cb.ExponentialRegression(event="event"), (0.4,)),
    "weibull": Truth(cb.WeibullRegression(event="event"), (0.4,), (0.4,)),
    "lognormal": Truth(cb.LogNormalRegression(event="event"), (0.4,), (-0.2,)),
    "ordinal": Truth(cb.OrdinalRegression(categories=(1, 2, 3, 4)), (0.0,), (-1.0, 0.1, 0.2)),
    "ordinal-probit": Truth(
        cb.OrdinalRegression(categories=(1, 2, 3), link="probit"), (0.0,), (-0.5, 0.1)
    ),
    "categorical": Truth(cb.CategoricalRegression(categories=(0, 1, 2)), (0.3, -0.4)),
    "zero-inflated-poisson": Truth(cb.ZeroInflatedPoissonRegression(), (0.9,), (-1.0,)),
    "zero-inflated-negative-binomial": Truth(
        cb.ZeroInflatedNegativeBinomialRegression(), (1.2,), (-1.0, -1.0)
    ),
    "hurdle-poisson": Truth(cb.HurdlePoissonRegression(), (0.9,), (-0.6,)),
    "hurdle-negative-binomial": Truth(cb.HurdleNegativeBinomialRegression(), (1.2,), (-1.0, -0.6)),
}


def made(truth: Truth, effects: tuple[str, ...], asked: argparse.Namespace) -> tuple[Any, Any]:
    """A mixed model of the family, and rows of it as a table."""
    import pandas

    rng, family = np.random.default_rng(asked.seed), truth.family
    N, G = asked.rows, asked.groups
    X, g = rng.normal(size=(N, 2)), groups(rng, N, G)
    row = {
        "trials": rng.integers(1, 9, N) * 1.0,
        "event": (rng.uniform(size=N) < 0.8) * 1.0,
    }
    at = [np.full(N, value) for value in truth.linear]
    for k, eta in enumerate(at):
        eta += X @ [0.3, -0.2 / (1 + k)]
        for name in effects:
            eta += 0.4 * rng.normal(size=G)[g] * (1.0 if name == "1" else X[:, 0])
    at += [np.full(N, value) for value in truth.constants]
    own = {name: row[name] for name in family.row_columns}
    columns = {"x1": X[:, 0], "x2": X[:, 1], "g": g * 1.0, **own, "y": family.draw(rng, at, own)}
    ordinal = isinstance(family, cb.OrdinalRegression)
    table = pandas.DataFrame(columns if ordinal else {"one": 1.0, **columns})
    term = cb.GroupTerm(group="g", effects=effects)
    return cb.MixedRegression(family=family, terms=[term]), table


def measure(name: str, terms: str, asked: argparse.Namespace) -> bool:
    model, table = made(FAMILIES[name], TERMS[terms], asked)
    began = time.process_time()
    try:
        coreset = cb.build(model, table, target="y", tol=asked.tol, seed=asked.seed, progress=False)
    except Exception as error:
        print(f"FAIL  {name}, {terms}: {type(error).__name__}: {error}", flush=True)
        return False
    built = time.process_time() - began
    began = time.process_time()
    again = [
        cb.certify(coreset, table, target="y", tol=asked.tol, seed=asked.seed + 1 + k)
        for k in range(asked.again)
    ]
    each = (time.process_time() - began) / max(asked.again, 1)
    began = time.process_time()
    drawn = sample(coreset, asked.seed)
    sampled = time.process_time() - began
    agree = sum(one.certified for one in again)
    kls = [np.nan if one.reverse_kl is None else one.reverse_kl.value for one in again]
    good = built <= asked.seconds and agree == len(again) and drawn.num_divergences == 0
    print(
        f"{'pass' if good else 'FAIL'}  {name}, {terms}: {coreset.size:,} of {len(table):,} rows, "
        f"{coreset.model.dim} parameters; KL {np.median(kls):.1e} to {np.max(kls):.1e}, certified "
        f"{agree} of {len(again)}; build {built:.1f} s, certify {each:.1f} s, draws "
        f"{sampled:.1f} s, {drawn.num_divergences} divergences, R̂ {drawn.max_rhat:.3f}",
        flush=True,
    )
    return bool(good)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(FAMILIES))
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--groups", type=int, default=30)
    parser.add_argument("--tol", type=float, default=0.05)
    parser.add_argument("--terms", nargs="+", choices=TERMS, default=["intercept", "slope"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--again", type=int, default=1, help="certificates at other seeds")
    asked = parser.parse_args()
    results = [
        measure(name, terms, asked) for name in asked.names or FAMILIES for terms in asked.terms
    ]
    print(f"{sum(results)} of {len(results)} pass")


if __name__ == "__main__":
    main()
