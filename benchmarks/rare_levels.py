"""Levels of a category with a handful of rows that all agree, under default priors.

    python -m benchmarks.rare_levels [--families bernoulli,poisson] [--rows 5000,20000]
        [--size 300] [--seeds 3] [--reference]

The formula is y ~ x + place with twelve common levels and rare ones of 1, 2, 3, 5, 8, 15 and 30
rows whose targets all agree (all zeros for counts), so that their coefficients have a posterior as
wide as the prior on one side. With --reference a rare level is the one that all others are compared
with. Printed for each seed: rows, kept rows, passes, KL(π_w ‖ π) of a certificate with its error,
CPU seconds of build and certificate; then how many were certified, and the most passes.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import pandas as pd

import corebayes as cb

RARE = {"a": 1, "b": 2, "c": 3, "d": 5, "e": 8, "f": 15, "g": 30}
TRIALS = 5


def visits(num_rows: int, family: str, seed: int, *, reference: bool) -> pd.DataFrame:
    """Rows of twelve common levels and of the rare ones."""
    rng = np.random.default_rng(seed)
    level = rng.integers(12, size=num_rows)
    # Upper case comes before the names of the rare levels, lower case after "a".
    place = np.array([f"{'common' if reference else 'L'}{k:02d}" for k in level], dtype=object)
    x = rng.normal(size=num_rows)
    eta = -0.5 + 0.5 * x + 0.1 * (level - 6)
    chance, mean = 1.0 / (1.0 + np.exp(-eta)), np.exp(eta)
    agreed = {"bernoulli": 1, "binomial": TRIALS}.get(family, 0)
    y = {
        "bernoulli": lambda: rng.binomial(1, chance),
        "binomial": lambda: rng.binomial(TRIALS, chance),
        "poisson": lambda: rng.poisson(mean),
        "negativebinomial": lambda: rng.negative_binomial(3.0, 3.0 / (3.0 + mean)),
    }[family]()
    start, order = 0, rng.permutation(num_rows)
    for name, number in RARE.items():
        rows = order[start : start + number]
        place[rows], y[rows] = name, agreed * rng.integers(2)
        start += number
    return pd.DataFrame({"y": y, "x": x, "place": place, "n": TRIALS})


def one(num_rows: int, family: str, seed: int, size: int, *, reference: bool) -> tuple[bool, float]:
    """Whether the coreset was certified, and its passes."""
    frame = visits(num_rows, family, seed, reference=reference)
    formula = "p(y, n) ~ x + place" if family == "binomial" else "y ~ x + place"
    began = time.process_time()
    model, rows = cb.from_formula(formula, frame, family=family)
    coreset = cb.build(model, rows, size=size, seed=seed, progress=False)
    built = time.process_time()
    found = cb.certify(coreset, rows, seed=seed + 1)
    ended = time.process_time()
    kept = int(frame["place"].isin(RARE).to_numpy()[coreset.indices].sum())
    kl = found.reverse_kl
    shown = "withheld" if kl is None else f"{kl.value:.1e} ± {kl.standard_error:.0e}"
    passes = float(coreset.provenance["passes"])
    print(
        f"{family:16s} {num_rows:9,d} rows, seed {seed}: {coreset.size:4d} rows, {kept:3d} kept, "
        f"{passes:4.1f} passes, KL {shown}, build {built - began:5.1f} s, "
        f"certificate {ended - built:5.1f} s{'' if found.certified else ', NOT CERTIFIED'}",
        flush=True,
    )
    return found.certified, passes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--families", default="bernoulli,poisson,binomial,negativebinomial")
    parser.add_argument("--rows", default="5000,20000,300000")
    parser.add_argument("--size", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--reference", action="store_true")
    asked = parser.parse_args()
    results = list[tuple[bool, float]]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for family in asked.families.split(","):
            for num_rows in map(int, asked.rows.split(",")):
                results += [
                    one(num_rows, family, seed, asked.size, reference=asked.reference)
                    for seed in range(asked.seeds)
                ]
    certified, passes = zip(*results, strict=True)
    print(f"certified {sum(certified)} of {len(results)}, passes at most {max(passes):.1f}")


if __name__ == "__main__":
    main()
