"""Section 4.2: log prices of houses by radial functions of where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import corebayes as cb
from corebayes.experiments.datasets import HousePrices, house_prices
from corebayes.experiments.experiment import Experiment, compared_methods, exact_sparse_vi
from corebayes.types import Array, Model

SIZES = (1, 2, 5, 10, 20, 30, *range(50, 301, 25))
QUICK_SIZES = (1, 2, 5, 10, 20, 30, 40, 60, 80, 100)
# The paper's data, and what stands in for it where it cannot be had.
SETS = ("uk_prices", "king_county_sales")
PLACES = {"uk_prices": "England and Wales, 2018", "king_county_sales": "King County, 2014–2015"}
# The scales of the radial functions, 0.2° to 2°, are made for a map of this size (England and
# Wales). Most of them hardly vary over a county of 0.6° by 1.2°, so the map of the stand-in is
# stretched to it.
EXTENT = (5.8, 8.0)


def experiment(*, quick: bool, name: str) -> Experiment:
    """N = 10,000, K = 301, T = 100, γ_t = 1/t, M = 300; quick: N = 2000, K = 61, M = 100."""
    sizes = QUICK_SIZES if quick else SIZES

    def load(name: str, path: Path | None, seed: int) -> tuple[Model, Any]:
        if path is None:
            raise ValueError(f"{name} is a file, and none was given")
        prices = sales(name, path, seed, quick=quick)
        return model_of(prices.y), (prices.features, prices.y)

    return Experiment(
        name="rbf",
        title=f"Radial basis regression of house prices ({PLACES[name]})",
        sets=(name,),
        files=(name,),
        sizes=sizes,
        methods=compared_methods(exact_sparse_vi(sizes[-1]), sizes[-1]),
        load=load,
        shared_run=True,
    )


def sales(name: str, path: Path, seed: int, *, quick: bool) -> HousePrices:
    """A subset of the sales and the radial functions, anew for every trial."""
    extent = None if name == SETS[0] else EXTENT
    num_rows, per_scale = (2000, 10) if quick else (10_000, 50)
    return house_prices(path, seed, num_rows=num_rows, per_scale=per_scale, extent=extent)


def model_of(y: Array) -> cb.LinearRegression:
    """μ_0, σ_0² and σ² are the mean, second moment and variance of the log prices."""
    prior = cb.Normal(float(y.mean()), float(np.sqrt(np.mean(y**2))))
    return cb.LinearRegression(noise_sd=float(y.std()), prior=prior)
