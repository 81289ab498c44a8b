"""GLMs of many parameters whose rows touch all of them, against their bars.

    python -m benchmarks.dense [d50 d100 skewed rare | all] [--seed 0]

CPU seconds of `build` alone on one core; KL by the certificate (importance weights of draws of the
coreset's posterior with all rows). `skewed` and `rare` are posteriors that quadratics do not
describe: 10,000 × 44 logistic rows at growing sizes, and 1e5 × 60 rows of which 50 columns have
about 20 ones.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import corebayes as cb
from corebayes.coreset import Coreset

Rows = tuple[np.ndarray, np.ndarray]
Check = tuple[str, bool]


class Built(NamedTuple):
    coreset: Coreset
    cpu_seconds: float
    certificate: Any

    @property
    def kl(self) -> float:
        """The certificate's, infinite where it is withheld."""
        kl = self.certificate.reverse_kl
        return np.inf if kl is None else float(kl.value)

    @property
    def agrees(self) -> bool:
        """Whether its own KL is within three times of the certificate's, as far as that is known:
        to two standard errors."""
        kl, own = self.certificate.reverse_kl, self.coreset.trace[-1]["kl"]
        if kl is None:
            return False
        noise = 2.0 * kl.standard_error
        return max(kl.value - noise, 0.0) / 3.0 <= own <= 3.0 * (kl.value + noise)

    def line(self) -> str:
        kl = self.certificate.reverse_kl
        seen = self.coreset.trace[-1]["kl"]
        shown = "withheld" if kl is None else f"{kl.value:.2g} ± {kl.standard_error:.1g}"
        return (
            f"{self.coreset.size:6d} rows, KL {shown} certified, {seen:.2g} its own, "
            f"{self.coreset.provenance['passes']:.1f} passes, {self.cpu_seconds:.1f} CPU s"
        )


def built(rows: Rows, tol: float = 0.1, **options: Any) -> Built:
    """To a size, or without one to the tolerance that is certified."""
    options = options or {"tol": tol}
    began = time.process_time()
    coreset = cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, progress=False, **options)
    seconds = time.process_time() - began
    return Built(coreset, seconds, cb.certify(coreset, rows, tol=tol))


def labels(rng: np.random.Generator, X: np.ndarray, theta: np.ndarray) -> np.ndarray:
    return (rng.random(len(X)) < 1.0 / (1.0 + np.exp(-X @ theta))).astype(np.float64)


def normal_rows(seed: int, num_rows: int, dim: int) -> Rows:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((num_rows, dim))
    return X, labels(rng, X, rng.standard_normal(dim) / np.sqrt(dim))


def rare_rows(
    seed: int, num_rows: int = 100_000, common: int = 10, rare: int = 50, ones: int = 20
) -> Rows:
    """Common columns, the first of them ones, and indicators of rare categories."""
    rng = np.random.default_rng(seed)
    X = np.zeros((num_rows, common + rare))
    X[:, 0] = 1.0
    X[:, 1:common] = rng.standard_normal((num_rows, common - 1))
    X[:, common:] = rng.random((num_rows, rare)) < ones / num_rows
    theta = np.concatenate([[-1.0], 0.5 * rng.standard_normal(common + rare - 1)])
    return X, labels(rng, X, theta)


def dense(num_rows: int, dim: int, limit: float, seconds: float, seed: int) -> list[Check]:
    size = dim * (dim + 3) // 2 + 1
    result = built(normal_rows(seed, num_rows, dim), tol=max(limit, 0.01), size=size)
    print(f"\nLogistic, N = {num_rows:,}, d = {dim}, size {size:,} asked\n{result.line()}")
    return [
        (f"d = {dim}: KL {result.kl:.1e}, at most {limit:g}", result.kl <= limit),
        (f"d = {dim}: {result.coreset.size:,} rows, at most {size:,}", result.coreset.size <= size),
        (f"d = {dim}: {result.cpu_seconds:.1f} CPU s, at most {seconds:g}",
         result.cpu_seconds <= seconds),
        (f"d = {dim}: its own KL within 3 times of the certificate's", result.agrees),
    ]  # fmt: skip


def skewed(seed: int) -> list[Check]:
    rows = normal_rows(seed, 10_000, 44)
    print("\nLogistic, N = 10,000, d = 44")
    results = [built(rows, size=size) for size in (500, 1000, 1500)]
    return falling("10,000 × 44", results)


def rare(seed: int) -> list[Check]:
    rows = rare_rows(seed)
    print("\nLogistic, N = 100,000, d = 60, 50 rare categories")
    result = built(rows, tol=0.02)
    print(f"tol .02: {result.line()}")
    checks = [
        (f"rare: KL {result.kl:.1e} certified at .02", bool(result.certificate.certified)),
        (f"rare: {result.coreset.size} rows, at most 1,500", result.coreset.size <= 1500),
        (f"rare: {result.cpu_seconds:.1f} CPU s, at most 60", result.cpu_seconds <= 60.0),
    ]
    results = [built(rows, size=size) for size in (400, 800, 1500)]
    return checks + falling("rare", results)


def falling(name: str, results: list[Built]) -> list[Check]:
    for result in results:
        print(result.line())
    kls = [result.kl for result in results]
    within = all(result.agrees for result in results)
    return [
        (f"{name}: more rows, lower KL", all(b < a for a, b in itertools.pairwise(kls))),
        (f"{name}: its own KL within 3 times of the certificate's", within),
    ]


PARTS: dict[str, Callable[[int], list[Check]]] = {
    "d50": lambda seed: dense(100_000, 50, 1e-3, 8.0, seed),
    "d100": lambda seed: dense(1_000_000, 100, 1e-2, 180.0, seed),
    "skewed": skewed,
    "rare": rare,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", default=["all"])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    names = list(PARTS) if "all" in arguments.parts else arguments.parts
    # Whoever is first pays for imports and compiled kernels.
    cb.build(
        cb.LogisticRegression(prior=cb.Normal()), normal_rows(1, 3000, 5), size=20, progress=False
    )
    checks = [check for name in names for check in PARTS[name](arguments.seed)]
    for text, good in checks:
        print(f"    {'pass' if good else 'FAIL'}  {text}")
    raise SystemExit(0 if all(good for _, good in checks) else 1)


if __name__ == "__main__":
    main()
