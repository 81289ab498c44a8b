"""The paper's data sets for the benchmarks, from a folder that the caller names.

The folder holds the authors' published `.npz` files: `--data DIR`, or the environment variable
COREBAYES_DATA, or `../shared/data` beside this repository.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from corebayes.experiments import datasets
from corebayes.experiments.datasets import LOGISTIC, POISSON, gaussian

__all__ = [
    "LOGISTIC",
    "POISSON",
    "data_folder",
    "gaussian",
    "house_prices",
    "logistic",
    "regression",
]


def data_folder(given: str | None = None) -> Path:
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = datasets.data_folder(given) or beside
    if not folder.is_dir():
        raise SystemExit(
            f"no data folder at {folder}: give --data DIR or set COREBAYES_DATA to the folder "
            "with the paper's .npz files"
        )
    return folder


def regression(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """X with whitened covariates and the intercept column last, and y."""
    return datasets.regression(datasets.locate(name, folder))


def house_prices(
    folder: Path, seed: int, num_rows: int = 10_000
) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """Radial basis features (K = 301) and log prices, with the paper's priors from the data."""
    path = datasets.locate("king_county_sales", folder)
    prices = datasets.house_prices(path, seed, num_rows=num_rows)
    y = prices.y
    settings = {"mean": y.mean(), "second": np.mean(y**2), "variance": y.var()}
    return prices.features, y, settings


def logistic(seed: int, num_rows: int = 100_000, dim: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Generated logistic regression with correlated covariates."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(num_rows, dim)) @ (np.eye(dim) + 0.2 * rng.normal(size=(dim, dim)))
    y = rng.random(num_rows) < 1.0 / (1.0 + np.exp(-X @ np.linspace(-1.0, 1.5, dim)))
    return X, y.astype(float)
