"""What `correct` takes where no mixture covers the coreset posterior and it must go on by itself.

    python -m benchmarks.fallback [--seed 0]

Poisson and logistic regressions of 3,000 rows whose weights are off until KL(π_w ‖ π), as
half the variance of r at draws of π, is 1e-5; proposals around modes are forbidden, so moves are by
a local kernel. Passes over all rows and evaluations of them for each of 4 x 1,000 draws: at most 8
and 1.3.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import Any

import numpy as np

import corebayes as cb
from corebayes.exact import chains
from corebayes.samplers.laplace import full_posterior

KL = 1e-5


def problem(dim: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X, theta = rng.normal(size=(3000, dim)), 0.5 * rng.normal(size=dim)
    if seed % 2:
        y = rng.random(3000) < 1.0 / (1.0 + np.exp(-X @ theta))
        return cb.LogisticRegression(prior=cb.Normal()), (X, y.astype(float))
    y = rng.poisson(np.exp(0.5 * X @ theta))
    return cb.PoissonRegression(link="log", prior=cb.Normal()), (X, y.astype(float))


class Residual:
    """r of a coreset at draws of a Gaussian that is nearly π."""

    def __init__(self, model: Any, data: Any, seed: int) -> None:
        rows = cb.open(data).check()
        model, block = model.bind(rows), rows.take(np.arange(rows.num_rows))
        self.draws = full_posterior(model, data).draw(np.random.default_rng(seed), 1000)
        self.full = model.sum_potentials(self.draws, block, np.ones(len(block)))

    def kl(self, coreset: Any) -> float:
        """½ Var r, which is KL both ways where it is small."""
        ours = coreset.model.sum_potentials(self.draws, coreset.rows, coreset.weights)
        return 0.5 * float(np.var(self.full - ours))


def spoilt(coreset: Any, residual: Residual, seed: int) -> Any:
    """The coreset with weights off by as much as makes KL what is wanted."""
    noise = np.random.default_rng(seed).normal(size=coreset.size)

    def wrong(amount: float) -> Any:
        return replace(coreset, weights=coreset.weights * np.exp(amount * noise))

    low, high = 0.0, 1.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        far = residual.kl(wrong(middle)) > KL
        low, high = (low, middle) if far else (middle, high)
    return wrong(low)


def within(model: Any, data: Any, residual: Residual, seed: int) -> Any:
    """A coreset of as many rows as it takes to be nearer than wanted."""
    dim = data[0].shape[1]
    size = dim * (dim + 3) // 2 + 8
    while True:
        coreset = cb.build(model, data, size=size, seed=seed, progress=False)
        if residual.kl(coreset) < 0.5 * KL:
            return coreset
        size = int(1.5 * size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="added to the seed of every case")
    first = parser.parse_args().seed
    chains.covering_all = lambda *_: None
    for dim, number in [(2, 0), (5, 1), (10, 2), (5, 3), (10, 4), (3, 5), (7, 7)]:
        seed = first + number
        model, data = problem(dim, seed)
        residual = Residual(model, data, seed)
        coreset = spoilt(within(model, data, residual, seed), residual, seed)
        began = time.process_time()
        known = cb.correct(coreset, data, seed=seed, progress=False).posterior.attrs
        print(
            f"d = {dim:2}, seed {seed}, {coreset.size} rows, KL {residual.kl(coreset):.1e}: "
            f"{known['num_passes']} passes, "
            f"{known['evaluations_per_draw']:.2f} evaluations a draw, "
            f"{known['acceptance']:.2%} accepted, {time.process_time() - began:.1f} CPU s",
            flush=True,
        )


if __name__ == "__main__":
    main()
