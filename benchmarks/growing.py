"""Data that grows by the night, and shards that never meet: what merge-and-reduce costs in KL.

    python -m benchmarks.growing                 # thirty nights of 1e5 rows, and 64 shards
    python -m benchmarks.growing --rows 10000    # the same, smaller
    python -m benchmarks.growing --part nights --drift 0.15 --nights 12 --rows 20000
    python -m benchmarks.growing --part nights --dim 20 --sizes 231 --nights 10 --rows 30000

Nights: a coreset of the first night is updated with each following one, with the defaults and, if
asked, without any reserve; KL(π_w ‖ π) against all rows so far, certified.
Shards: coresets of 64 shards, merged eight by eight on worker processes, against one build of the
whole; in one round with the reserves that builds keep, in one round of nothing but the coresets,
and in two rounds of these, where the shards are built around a rough coreset of all of them.
The rows are those of `benchmarks.datasets.logistic` (d = 10, or --dim), or with --drift such whose
coefficients come and go by that much from night to night (d = 6), so that the posterior moves by
several standard deviations at a time. CPU seconds are of one core.
Other families: `benchmarks.growing_families`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from benchmarks.datasets import logistic

import corebayes as cb

MODEL = cb.LogisticRegression(prior=cb.Normal())
BRANCHES = 8
SHOWN = (1, 2, 3, 5, 10, 15, 20, 25, 30)


def kl_of(coreset: cb.Coreset, data: Any, draws: int) -> float:
    """KL(π_w ‖ π) as certified; NaN where it is withheld."""
    kl = cb.certify(coreset, data, draws=draws, seed=9).reverse_kl
    return float("nan") if kl is None else kl.value


def nights(
    X: np.ndarray,
    y: np.ndarray,
    num_nights: int,
    size: int,
    draws: int,
    *,
    shown: Sequence[int] = SHOWN,
    **options: Any,
) -> list[dict[str, float]]:
    """KL and CPU seconds after every night that is shown, and the last."""
    ends = np.linspace(0, len(X), num_nights + 1).astype(int)
    lines: list[dict[str, float]] = []
    coreset, spent = None, 0.0
    for night in range(1, num_nights + 1):
        rows = slice(ends[night - 1], ends[night])
        began = time.process_time()
        if coreset is None:
            coreset = cb.build(MODEL, (X[rows], y[rows]), size=size, seed=night, **options)
        else:
            coreset = cb.update(coreset, (X[rows], y[rows]), size=size, seed=night, **options)
        seconds = time.process_time() - began
        spent += seconds
        if night in shown or night == num_nights:
            so_far = slice(0, ends[night])
            kl = kl_of(coreset, (X[so_far], y[so_far]), draws)
            kept = 0 if coreset.reserve is None else coreset.reserve.size
            lines.append({"night": night, "kl": kl, "cpu": seconds, "reserve": kept})
            print(
                f"  night {night:>2}: KL {kl:.2e}, {seconds:.1f} CPU s, reserve {kept}", flush=True
            )
    print(f"  all nights {spent:.0f} CPU s")
    return lines


def drifting(
    seed: int, num_rows: int, num_nights: int, drift: float
) -> tuple[np.ndarray, np.ndarray]:
    """Nights that are not alike, one below the other."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(num_nights * num_rows, 6))
    X[:, -1] = 1.0
    night = np.repeat(np.arange(num_nights), num_rows)[:, None]
    theta = np.linspace(1.0, -1.0, 6) + drift * np.sin(np.arange(6) + 0.5 * night)
    y = rng.random(len(X)) < 1.0 / (1.0 + np.exp(-np.sum(X * theta, axis=1)))
    return X, y.astype(float)


def _build_shard(options: dict[str, Any], data: Any) -> cb.Coreset:
    return cb.build(MODEL, data, seed=0, progress=False, **options)


def _merge_some(
    size: int, around: cb.Coreset | None, some: list[cb.Coreset], names: list[str] | None
) -> cb.Coreset:
    if len(some) == 1:
        return some[0]
    return cb.merge(some, size=size, around=around, names=names, progress=False)


def shards(
    X: np.ndarray,
    y: np.ndarray,
    num_shards: int,
    size: int,
    draws: int,
    *,
    rounds: int = 1,
    **options: Any,
) -> dict[str, float]:
    """The tree: coresets of `size` rows of every shard, merged to `size` at the root."""
    pieces = list(zip(np.array_split(X, num_shards), np.array_split(y, num_shards), strict=True))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        around = None
        if rounds == 2:
            rough = list(pool.map(partial(_build_shard, {"size": size, **options}), pieces))
            around = cb.merge(rough, reserve=0, progress=False)
        asked = {"size": size, **(options if around is None else {"around": around})}
        level = list(pool.map(partial(_build_shard, asked), pieces))
        names = [f"site-{k}" for k in range(num_shards)]
        while len(level) > BRANCHES:
            starts = range(0, len(level), BRANCHES)
            some = [level[k : k + BRANCHES] for k in starts]
            called = [names[k : k + BRANCHES] if names else None for k in starts]
            level = list(pool.map(partial(_merge_some, size, around), some, called))
            # The leaves have been named.
            names = []
    root = cb.merge(level, size=size, reserve=0, names=names or None, progress=False)
    kl = kl_of(root, (X, y), draws)
    print(f"  KL {kl:.2e}; {root.origins[0]}", flush=True)
    return {"shards": num_shards, "rounds": rounds, "kl": kl}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="of a night")
    parser.add_argument("--nights", type=int, default=30)
    parser.add_argument("--dim", type=int, default=10, help="of nights that are alike")
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--sizes", type=int, nargs="+", default=[66, 100])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", choices=["nights", "shards", "both"], default="both")
    parser.add_argument("--last", action="store_true", help="KL of the last night only")
    parser.add_argument("--without", action="store_true", help="also without any reserve")
    parser.add_argument("--drift", type=float, default=0.0, help="of the coefficients")
    parser.add_argument("--json", help="where to write the figures")
    asked = parser.parse_args()
    if asked.drift:
        X, y = drifting(asked.seed, asked.rows, asked.nights, asked.drift)
    else:
        X, y = logistic(asked.seed, asked.rows * asked.nights, asked.dim)
    report: dict[str, Any] = {"arguments": vars(asked)}
    for size in asked.sizes:
        began = time.process_time()
        one = cb.build(MODEL, (X, y), size=size, seed=0)
        seconds = time.process_time() - began
        # Single builds differ by a factor of two from seed to seed.
        others = [cb.build(MODEL, (X, y), size=size, seed=seed) for seed in (1, 2)]
        whole = float(np.median([kl_of(each, (X, y), asked.draws) for each in (one, *others)]))
        print(
            f"size {size}: one build of {len(X):,} rows, KL {whole:.2e} (median of 3), "
            f"{seconds:.1f} CPU s"
        )
        found: dict[str, Any] = {"one": {"kl": whole, "cpu": seconds}}
        ways: dict[str, dict[str, Any]] = {"default": {}}
        if asked.without:
            ways["no reserve"] = {"reserve": 0}
        for name, options in ways.items() if asked.part != "shards" else ():
            print(f" {name}")
            shown = () if asked.last else SHOWN
            lines = nights(X, y, asked.nights, size, asked.draws, shown=shown, **options)
            print(f"  last night: {lines[-1]['kl'] / whole:.2f} times one build")
            found[name] = lines
        trees: dict[str, dict[str, Any]] = {
            "one round": {},
            "one round, no reserve": {"reserve": 0},
            "two rounds, no reserve": {"reserve": 0, "rounds": 2},
        }
        for name, options in trees.items() if asked.part != "nights" else ():
            print(f" {asked.shards} shards, {name}")
            tree = shards(X, y, asked.shards, size, asked.draws, **options)
            print(f"  tree: {tree['kl'] / whole:.2f} times one build", flush=True)
            found[name] = tree
        report[f"size {size}"] = found
    if asked.json:
        with open(asked.json, "w") as file:
            json.dump(report, file, indent=1)


if __name__ == "__main__":
    main()
