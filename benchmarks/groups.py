"""Coresets of groups against their bar: a million rows, a thousand groups, thirty of them kept.

    python -m benchmarks.groups                     the bar
    python -m benchmarks.groups --rows 100000       fewer rows
    python -m benchmarks.groups --slopes            (1 + x | g): two effects a group

KL of the shared parameters is measured at draws of the coreset by the integrals of all groups over
all rows. Times are CPU seconds of this process.
"""

from __future__ import annotations

import argparse
import os
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402
from benchmarks.mixed import groups, labels  # noqa: E402

import corebayes as cb  # noqa: E402
from corebayes.rows import open_rows  # noqa: E402

KEPT, KL, SECONDS = 30, 1e-4, 120.0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--columns", type=int, default=5)
    parser.add_argument("--size", type=int, default=KEPT)
    parser.add_argument("--slopes", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    frame = _frame(rng, asked)
    effects = ("1", "x1") if asked.slopes else ("1",)
    model = cb.MixedRegression(
        family=cb.LogisticRegression(prior=cb.Normal()),
        terms=[cb.GroupTerm(group="g", effects=effects)],
    )
    rows = open_rows(frame, target="y")
    began = time.process_time()
    coreset = cb.build(model, rows, unit="group", size=asked.size, progress=False)
    built = time.process_time() - began
    began = time.process_time()
    idata = cb.sample(coreset)
    sampled = time.process_time() - began
    began = time.process_time()
    certificate = cb.certify(coreset, rows, tol=KL)
    certified = time.process_time() - began
    kl = certificate.upper if certificate.upper is not None else float("inf")
    print(f"{coreset!r} of {asked.rows:,} rows")
    print(f"KL of the shared parameters at most {kl:.2g} (bar {KL:g}): {_holds(kl <= KL)}")
    print(f"build {built:.1f} CPU s (bar {SECONDS:g}): {_holds(built <= SECONDS)}")
    print(f"sampling {sampled:.1f} CPU s, certificate {certified:.1f} CPU s")
    print(f"{idata.attrs['sampler']}, R̂ {idata.attrs['max_rhat']:.3f}")


def _frame(rng: np.random.Generator, asked: argparse.Namespace):
    import pandas

    X = rng.normal(size=(asked.rows, asked.columns))
    X[:, 0] = 1.0
    g = groups(rng, asked.rows, asked.groups)
    eta = (
        X @ rng.normal(scale=0.4, size=asked.columns) + rng.normal(scale=0.7, size=asked.groups)[g]
    )
    if asked.slopes:
        eta += rng.normal(scale=0.3, size=asked.groups)[g] * X[:, 1]
    names = ["one", *(f"x{k}" for k in range(1, asked.columns))]
    return pandas.DataFrame(X, columns=names).assign(g=g.astype(float), y=labels(rng, eta))


def _holds(held: bool) -> str:
    return "holds" if held else "does NOT hold"


if __name__ == "__main__":
    main()
