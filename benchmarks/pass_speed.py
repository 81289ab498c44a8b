"""One pass over the rows against the naive NumPy version, in one run.

    python -m benchmarks.pass_speed [--rows 300000] [--draws 100] [--rounds 2]

Each version runs in its own process, so that its peak memory above the data can be read off, and
they take turns: the best of three runs in each round counts. Sums and row correlations of logistic
potentials, then one Hermite pass of order 2; ratios are of CPU seconds on one thread. Beside each
pass stand limits that are measured in the same run on one core: reading the rows once at the speed
of memory, its products of matrices at the speed of a large one, and one exponential and one
logarithm for every potential at the speed of NumPy's in a near cache. The bars are in units of
the sum of these: how many times a naive pass takes depends on the machine's `logaddexp`, which has
been anything from 20 to 60 ns a value. Where NumPy's exp and log are vector instructions (AVX-512)
NumPy alone is about as quick as compiled loops, and most of a pass is centring and sums.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

# Times the sum of its limits that a pass may take.
MOST = 5.0


def make_rows(num_rows: int, dim: int = 10) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((num_rows, dim))
    theta = np.linspace(-1.0, 1.0, dim)
    return X, np.where(rng.random(num_rows) < 1.0 / (1.0 + np.exp(-X @ theta)), 1.0, -1.0)


def naive(X: np.ndarray, y: np.ndarray, draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The textbook version: the whole N × S matrix of potentials."""
    Z = y[:, None] * X
    potentials = -np.logaddexp(0, -Z @ draws.T)
    centred = potentials - potentials.mean(axis=1, keepdims=True)
    total = centred.sum(axis=0)
    correlations = centred @ total / np.sqrt((centred**2).sum(axis=1))
    return total, correlations


@dataclass(frozen=True)
class SumsAndScores:
    """Both questions of SparseVI in one pass: Σ g_n, and the best-aligned row for a residual."""

    best: Any

    @property
    def block_rows(self) -> int:
        return self.best.block_rows

    def answer(self, block: Any, numbers: np.ndarray) -> tuple[np.ndarray, Any]:
        vectors = self.best.space.embed(block, reuse=True)
        total = self.best.space.combine(vectors, block.multiplicity())
        return total, self.best.answer_embedded(vectors, block, numbers)

    def merge(self, first: tuple[Any, Any], second: tuple[Any, Any]) -> tuple[Any, Any]:
        return first[0] + second[0], self.best.merge(first[1], second[1])


def pass_of(name: str, X: np.ndarray, y: np.ndarray, draws: np.ndarray) -> Callable[[], Any]:
    """The pass to time: a total, then every row's alignment with it."""
    if name == "naive":
        return lambda: naive(X, y, draws)
    import corebayes as cb
    from corebayes.problem import Problem
    from corebayes.rows import open_rows
    from corebayes.samplers.laplace import full_posterior
    from corebayes.scan.query import BestRows
    from corebayes.tangent.geometry import scanned_total
    from corebayes.tangent.hermite import HermiteSpace
    from corebayes.tangent.monte_carlo import MonteCarloSpace

    data = open_rows((X, y))
    problem = Problem(cb.LogisticRegression(prior=cb.Normal()).bind(data), data)
    if name == "hermite":
        mean, factor = full_posterior(problem.model, data)
        hermite = HermiteSpace(problem.model.dim, 2, problem.model, mean, factor, 16)
        return lambda: scanned_total(problem, hermite)
    space = MonteCarloSpace(problem.model, draws)
    direction = scanned_total(problem, space).element
    best = BestRows(space, direction, num_best=1, exclude=np.empty(0, dtype=np.int64))
    return lambda: problem.ask(SumsAndScores(best))


def machine_limits() -> dict[str, float]:
    """Bytes a second that a sum over a large array reads, flops a second of a large product, and
    pairs of an exponential and a logarithm a second, of values that stay in a near cache."""
    values, matrix = np.ones(1 << 25), np.ones((1500, 1500))
    few, out, repeats = np.linspace(0.1, 3.0, 8192), np.empty(8192), 50
    memory, product, functions = list[float](), list[float](), list[float]()
    for _ in range(3):
        began = time.process_time()
        for _ in range(repeats):
            np.exp(few, out=out)
            np.log(few, out=out)
        functions.append(time.process_time() - began)
        began = time.process_time()
        values.sum()
        memory.append(time.process_time() - began)
        began = time.process_time()
        matrix @ matrix
        product.append(time.process_time() - began)
    return {
        "bandwidth": values.nbytes / min(memory),
        "flops": 2.0 * 1500.0**3 / min(product),
        "functions": few.size * repeats / min(functions),
    }


def limits_of(name: str, num_rows: int, num_draws: int, machine: dict[str, float]) -> list[float]:
    """Seconds to read X and y once, for the products of matrices of a pass, and for an exponential
    and a logarithm of every potential (which a Hermite pass, of few nodes a row, is without)."""
    dim = 10
    # Two products with β in a Hermite space; else η, and centred potentials with one element.
    products = 4.0 * dim**2 if name == "hermite" else 2.0 * num_draws * (dim + 1)
    read = 8.0 * num_rows * (dim + 1) / machine["bandwidth"]
    pairs = 0 if name == "hermite" else num_rows * num_draws
    return [read, num_rows * products / machine["flops"], pairs / machine["functions"]]


def measure(name: str, num_rows: int, num_draws: int) -> None:
    X, y = make_rows(num_rows)
    draws = np.linspace(-1.0, 1.0, 10) + 0.01 * np.random.default_rng(1).normal(
        size=(num_draws, 10)
    )
    small = pass_of(name, X[:5000], y[:5000], draws)
    small()
    run = pass_of(name, X, y, draws)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = []
    cpu = []
    for _ in range(3):
        began, cpu_began = time.perf_counter(), time.process_time()
        run()
        seconds.append(time.perf_counter() - began)
        cpu.append(time.process_time() - cpu_began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    megabytes = (peak - before) / 1024
    print(json.dumps({"seconds": min(seconds), "cpu": min(cpu), "megabytes": megabytes}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure == "machine":
        print(json.dumps({"seconds": 0.0, **machine_limits()}))
        return
    if arguments.measure:
        measure(arguments.measure, arguments.rows, arguments.draws)
        return
    results: dict[str, dict[str, float]] = {}
    # Machines have slow spells, so the versions take turns and each keeps its best.
    passes = [("machine", "0"), ("naive", "0"), ("numpy", "0"), ("numba", "1"), ("hermite", "1")]
    for name, numba in arguments.rounds * passes:
        command = [sys.executable, __file__, "--measure", name]
        command += ["--rows", str(arguments.rows), "--draws", str(arguments.draws)]
        one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        environment = os.environ | one_thread | {"COREBAYES_NUMBA": numba}
        output = subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True
        )
        result = json.loads(output.stdout)
        best = results.get(name)
        if name == "machine" and best is not None:
            results[name] = {key: max(best[key], value) for key, value in result.items()}
        elif best is None or result["cpu"] < best["cpu"]:
            results[name] = result
    report(results, arguments)


def report(results: dict[str, dict[str, float]], arguments: argparse.Namespace) -> None:
    slow = results["naive"]["cpu"]
    print(f"N = {arguments.rows:,}, S = {arguments.draws}, d = 10, {os.cpu_count()} cores")
    machine = results["machine"]
    print(
        f"one core: {machine['bandwidth'] / 1e9:.1f} GB/s from memory, "
        f"{machine['flops'] / 1e9:.0f} GF/s in products of matrices, "
        f"{1e9 / machine['functions']:.1f} ns for an exponential and a logarithm"
    )
    print(
        f"{'pass':34} {'seconds':>8} {'CPU s':>6} {'ratio':>7} {'reading':>8} {'products':>9} "
        f"{'exp, log':>9} {'MB above the data':>18}"
    )
    names = {
        "naive": "naive logaddexp, N × S",
        "numpy": "corebayes, NumPy alone",
        "numba": "corebayes, numba installed",
        "hermite": "corebayes, Hermite order 2",
    }
    times: dict[str, float] = {}
    for name, label in names.items():
        result = results[name]
        ratio = slow / result["cpu"]
        limits = limits_of(name, arguments.rows, arguments.draws, machine)
        times[name] = result["cpu"] / sum(limits)
        read, products, functions = limits
        print(
            f"{label:34} {result['seconds']:8.3f} {result['cpu']:6.2f} {ratio:6.1f}x {read:8.3f} "
            f"{products:9.3f} {functions:9.3f} {result['megabytes']:18.0f}"
        )
    draws_worth = results["hermite"]["cpu"] / (slow / arguments.draws)
    checks = [
        (f"NumPy alone within {MOST:g} times its limits: {times['numpy']:.1f}",
         times["numpy"] <= MOST),
        (f"numba within {MOST:g} times its limits: {times['numba']:.1f}", times["numba"] <= MOST),
        (f"2.5 times quicker than naive: {slow / results['numba']['cpu']:.1f}",
         slow / results["numba"]["cpu"] >= 2.5),
        (f"Hermite pass at most 15 naive draws: {draws_worth:.1f}", draws_worth <= 15),
        (
            "at most 200 MB",
            max(results[n]["megabytes"] for n in ("numpy", "numba", "hermite")) <= 200,
        ),
    ]  # fmt: skip
    for text, good in checks:
        print(f"    {'pass' if good else 'FAIL'}  {text}")
    raise SystemExit(0 if all(good for _, good in checks) else 1)


if __name__ == "__main__":
    main()
