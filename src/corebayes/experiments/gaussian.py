"""Section 4.1: the mean of a 200-dimensional Gaussian, where everything is in closed form."""

from __future__ import annotations

from pathlib import Path

import corebayes as cb
from corebayes.experiments.datasets import gaussian
from corebayes.experiments.experiment import Experiment, compared_methods, exact_sparse_vi
from corebayes.types import Array, Model

SIZES = (1, 2, 5, 10, 15, 20, *range(30, 201, 10))
# As far as the paper goes: up to M = d.
QUICK_SIZES = (1, 2, 5, 10, 15, 20, 25, 30, 40, 50)
# μ_0 = 0 and Σ_0 = Σ = I.
MODEL = cb.GaussianMean(1.0)


def experiment(*, quick: bool) -> Experiment:
    """d = 200, N = 1000, T = 100, γ_t = 1/t, M = 200; quick: d = 50, N = 300, M = 50."""
    sizes = QUICK_SIZES if quick else SIZES

    def load(name: str, path: Path | None, seed: int) -> tuple[Model, Array]:
        return MODEL, rows(seed, quick=quick)

    return Experiment(
        name="gaussian",
        title="Synthetic Gaussian",
        sets=("gaussian",),
        sizes=sizes,
        methods=compared_methods(exact_sparse_vi(sizes[-1]), sizes[-1]),
        load=load,
        shared_run=True,
    )


def rows(seed: int, *, quick: bool) -> Array:
    """x_n ~ N(θ, I) for one θ ~ N(0, I), anew for every trial."""
    return gaussian(seed, num_rows=300, dim=50) if quick else gaussian(seed)
