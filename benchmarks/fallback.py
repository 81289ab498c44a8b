"""What `correct` takes where no mixture covers the coreset posterior and it must go on by itself.

    python -m benchmarks.fallback

Poisson and logistic regressions of 3,000 rows whose weights are off until KL(π_w ‖ π), between
Laplace fits, is 1e-5; proposals around modes are forbidden, so moves are by a local kernel. Passes
over all rows and evaluations of them for each of 4 x 1,000 draws: at most 8 and 1.3.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

import corebayes as cb
from corebayes.diagnostics import gaussian_kl
from corebayes.exact import chains
from corebayes.samplers.laplace import Laplace, full_posterior
from corebayes.samplers.posterior import Posterior

KL = 1e-5


def problem(dim: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X, theta = rng.normal(size=(3000, dim)), 0.5 * rng.normal(size=dim)
    if seed % 2:
        y = rng.random(3000) < 1.0 / (1.0 + np.exp(-X @ theta))
        return cb.LogisticRegression(prior=cb.Normal()), (X, y.astype(float))
    y = rng.poisson(np.exp(0.5 * X @ theta))
    return cb.PoissonRegression(link="log", prior=cb.Normal()), (X, y.astype(float))


def spoilt(coreset: Any, data: Any, seed: int) -> Any:
    """The coreset with weights off by as much as makes KL what is wanted."""
    full = full_posterior(coreset.model, data)
    noise = np.random.default_rng(seed).normal(size=coreset.size)
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        wrong = replace(coreset, weights=coreset.weights * np.exp(middle * noise))
        far = gaussian_kl(Laplace().fit(Posterior.of(wrong)), full) > KL
        low, high = (low, middle) if far else (middle, high)
    return replace(coreset, weights=coreset.weights * np.exp(low * noise))


def main() -> None:
    chains.covering = lambda *_: None
    for dim, seed in [(2, 0), (5, 1), (10, 2), (5, 3), (10, 4), (3, 5), (7, 7)]:
        model, data = problem(dim, seed)
        size = dim * (dim + 3) // 2 + 8
        good = cb.build(model, data, size=size, seed=seed, progress=False)
        coreset = spoilt(good, data, seed)
        began = time.process_time()
        known = cb.correct(coreset, data, seed=seed, progress=False).posterior.attrs
        print(
            f"d = {dim:2}, seed {seed}: {known['num_passes']} passes, "
            f"{known['evaluations_per_draw']:.2f} evaluations a draw, "
            f"{known['acceptance']:.2%} accepted, {time.process_time() - began:.1f} CPU s",
            flush=True,
        )


if __name__ == "__main__":
    main()
