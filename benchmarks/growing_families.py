"""Nights and shards of families that have constants, or several predictors: which keep to the bar.

    python -m benchmarks.growing_families                              # all of them, four seeds
    python -m benchmarks.growing_families gamma poisson --seeds 11 12 --nights 30 --rows 300

Of every family and seed: rows of one model, dealt to nights and to shards. KL(π_w ‖ π) against all
rows, certified, of the coreset after the last night and of that at the root of a tree of merges,
over the median of three builds of all rows at the same size. A line passes within 3 times. KL is
measured no finer than the FLOOR: what is below it counts as much as that.
"""

from __future__ import annotations

import argparse
import os
import time
from itertools import pairwise
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402
from benchmarks.growing import BRANCHES, kl_of  # noqa: E402
from benchmarks.mixed_families import FAMILIES, Truth  # noqa: E402

import corebayes as cb  # noqa: E402

FLOOR, BAR = 1e-7, 3.0
USUAL = ("poisson", "gamma", "student-t", "negative-binomial", "beta", "ordinal")


def rows_of(truth: Truth, seed: int, num_rows: int, num_columns: int) -> dict[str, np.ndarray]:
    """Columns, those that the family itself asks for, and targets; an intercept where it has none
    of its own."""
    rng, family = np.random.default_rng([seed, 17]), truth.family
    X = rng.normal(size=(num_rows, num_columns))
    row = {
        "trials": rng.integers(1, 9, num_rows) * 1.0,
        "event": (rng.random(num_rows) < 0.8) * 1.0,
    }
    own = {name: row[name] for name in family.row_columns}
    slopes = np.linspace(0.4, -0.3, num_columns)
    at = [value + X @ slopes / (1 + k) for k, value in enumerate(truth.linear)]
    at += [np.full(num_rows, value) for value in truth.constants]
    columns = {f"x{k}": X[:, k] for k in range(num_columns)}
    if not isinstance(family, cb.OrdinalRegression):
        columns["one"] = np.ones(num_rows)
    return {**columns, **own, "y": family.draw(rng, at, own)}


def part(columns: dict[str, np.ndarray], first: int, last: int) -> Any:
    import pandas

    return pandas.DataFrame({name: values[first:last] for name, values in columns.items()})


def after_nights(model: Any, parts: list[Any], size: int) -> cb.Coreset:
    coreset = cb.build(model, parts[0], target="y", size=size, seed=1)
    for night, rows in enumerate(parts[1:], start=2):
        coreset = cb.update(coreset, rows, size=size, seed=night)
    return coreset


def of_a_tree(model: Any, parts: list[Any], size: int) -> cb.Coreset:
    level = [cb.build(model, rows, target="y", size=size, seed=0) for rows in parts]
    while len(level) > 1:
        groups = [level[k : k + BRANCHES] for k in range(0, len(level), BRANCHES)]
        level = [cb.merge(some, size=size) if len(some) > 1 else some[0] for some in groups]
    return level[0]


def compared(kl: float, whole: float) -> str:
    if not np.isfinite(kl):
        return "withheld: fails"
    if max(kl, whole) < FLOOR:
        return "both below the floor"
    times = max(kl, FLOOR) / max(whole, FLOOR)
    return f"{times:6.2f}×{'' if times <= BAR else ' FAILS'}"


def measured(name: str, seed: int, asked: argparse.Namespace) -> None:
    truth = FAMILIES[name]
    model = truth.family
    num_rows = asked.rows * asked.nights
    columns = rows_of(truth, seed, num_rows, asked.columns)
    table = part(columns, 0, num_rows)
    dim = cb.build(model, table, target="y", size=1, reserve=0).model.dim
    # Fewer than match all quadratics: with these there is little to tell coresets apart by.
    size = asked.size or 3 * (dim + 1) * (dim + 2) // 8
    built = [cb.build(model, table, target="y", size=size, seed=k) for k in range(3)]
    found = [kl_of(one, table, asked.draws) for one in built]
    whole, withheld = float(np.nanmedian(found)), int(np.isnan(found).sum())
    print(
        f"{name} seed {seed}: {dim} parameters, {size} rows of {num_rows:,}, one build {whole:.1e}"
        + (f" ({withheld} of 3 withheld)" if withheld else "")
    )
    ways = {"nights": (after_nights, asked.nights), "tree": (of_a_tree, asked.shards)}
    for way, (grown, number) in ways.items():
        ends = np.linspace(0, num_rows, number + 1).astype(int)
        parts = [part(columns, *pair) for pair in pairwise(ends)]
        began = time.process_time()
        coreset = grown(model, parts, size)
        seconds = time.process_time() - began
        kl = kl_of(coreset, table, asked.draws)
        kept = 0 if coreset.reserve is None else coreset.reserve.size
        print(
            f"  {number} {'shards' if way == 'tree' else way}: KL {kl:.1e}, {compared(kl, whole)}; "
            f"reserve {kept}, {seconds:.0f} CPU s",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", default=USUAL, metavar="family")
    parser.add_argument("--rows", type=int, default=300, help="of a night")
    parser.add_argument("--nights", type=int, default=30)
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--columns", type=int, default=3)
    parser.add_argument(
        "--size", type=int, help="rows; three quarters of what match all quadratics"
    )
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4])
    asked = parser.parse_args()
    for name in asked.families:
        for seed in asked.seeds:
            measured(name, seed, asked)


if __name__ == "__main__":
    main()
