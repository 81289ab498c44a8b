"""What each constant of AnnealedSparseVI matters: KL and passes with half of it and twice of it.

    python -m benchmarks.annealed_constants [name …]

Prints ratios to the constants as they are, the geometric mean over five generated problems and two
seeds: 1.00 where nothing changes, below where the other value would be better.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import corebayes as cb
from corebayes.constructions.annealed import choose, grow, march, polish, view
from corebayes.diagnostics import laplace_kl
from corebayes.rows import open_rows

CONSTANTS = {
    march: ("TOO_FAR", "TOO_SHORT", "NEARLY_THERE", "FIRST_ROWS", "FIRST_SHARE"),
    choose: ("FIRST_PROMISE",),
    polish: ("SETTLED", "FURTHER", "STILL_FALLING", "WORTH_A_LOOK", "ENLARGED"),
    grow: ("FAR", "GROWTH", "CHOICE", "PATIENCE", "BEYOND"),
    view: ("WORTH_A_PASS",),
}
SEEDS = (1, 2)


def _regression(
    num_rows: int, dim: int, respond: Callable[[np.random.Generator, np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(num_rows, dim)) + 0.2
    return X, respond(rng, X @ np.linspace(-1.0, 1.0, dim)).astype(float)


def _coin(rng: np.random.Generator, eta: np.ndarray) -> np.ndarray:
    return rng.uniform(size=eta.size) < 1 / (1 + np.exp(-eta))


def _count(rng: np.random.Generator, eta: np.ndarray) -> np.ndarray:
    return rng.poisson(np.log1p(np.exp(eta)))


PROBLEMS: list[tuple[Any, Any, dict[str, Any]]] = [
    (cb.LogisticRegression(prior=cb.Normal()), _regression(30_000, 4, _coin), {"size": 12}),
    (cb.LogisticRegression(prior=cb.Normal()), _regression(6_000, 4, _coin), {"tol": 0.01}),
    (cb.LogisticRegression(prior=cb.Normal()), _regression(9_000, 20, _coin), {"size": 8}),
    (
        cb.PoissonRegression(link="softplus", prior=cb.Normal()),
        _regression(15_000, 5, _count),
        {"size": 15},
    ),
    (cb.GaussianMean(), _regression(5_000, 30, _coin)[0], {"size": 6}),
]


def measured() -> np.ndarray:
    """Logarithms of KL and of passes, for every problem and seed."""
    found: list[tuple[float, float]] = []
    for model, rows, options in PROBLEMS:
        for seed in SEEDS:
            coreset = cb.build(model, rows, seed=seed, **options)
            found.append((laplace_kl(coreset, open_rows(rows)), coreset.provenance["passes"]))
    return np.log(np.maximum(found, 1e-12))


@contextmanager
def changed(module: Any, name: str, factor: float) -> Iterator[None]:
    value = getattr(module, name)
    setattr(module, name, type(value)(value * factor))
    try:
        yield
    finally:
        setattr(module, name, value)


def main(wanted: list[str]) -> None:
    before = measured()
    print(f"{'':16s}{'KL, half':>10s}{'twice':>8s}{'passes, half':>14s}{'twice':>8s}")
    for module, names in CONSTANTS.items():
        for name in names:
            if wanted and name not in wanted:
                continue
            ratios: list[np.ndarray] = []
            for factor in (0.5, 2.0):
                with changed(module, name, factor):
                    ratios.append(np.exp((measured() - before).mean(axis=0)))
            half, twice = ratios
            print(f"{name:16s}{half[0]:10.2f}{twice[0]:8.2f}{half[1]:14.2f}{twice[1]:8.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
