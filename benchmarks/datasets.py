"""The paper's data sets, read from a folder that the caller names.

The folder holds the authors' published `.npz` files: `--data DIR`, or the environment variable
COREBAYES_DATA, or `../shared/data` beside this repository.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from corebayes.models import paper_radial_basis, radial_basis

LOGISTIC = ("synth_lr", "ds1", "phishing")
POISSON = ("synth_poiss", "biketrips", "airportdelays")


def data_folder(given: str | None = None) -> Path:
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(given or os.environ.get("COREBAYES_DATA") or beside)
    if not folder.is_dir():
        raise SystemExit(
            f"no data folder at {folder}: give --data DIR or set COREBAYES_DATA to the folder "
            "with the paper's .npz files"
        )
    return folder


def regression(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """X with whitened covariates and the intercept column last, and y."""
    stored = np.load(folder / f"{name}.npz")
    X, y = stored["X"].astype(float), stored["y"].astype(float).ravel()
    covariates = X[:, :-1] - X[:, :-1].mean(axis=0)
    covariance = np.atleast_2d(np.cov(covariates, rowvar=False)) + 1e-12 * np.eye(X.shape[1] - 1)
    X[:, :-1] = np.linalg.solve(np.linalg.cholesky(covariance), covariates.T).T
    return X, y


def gaussian(seed: int, num_rows: int = 1000, dim: int = 200) -> np.ndarray:
    """The paper's synthetic Gaussian: θ ~ N(0, I), x_n ~ N(θ, I)."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=dim) + rng.normal(size=(num_rows, dim))


def house_prices(
    folder: Path, seed: int, num_rows: int = 10_000
) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """Radial basis features (K = 301) and log prices, with the paper's priors from the data."""
    rng = np.random.default_rng(seed)
    stored = np.load(folder / "king_county_sales.npz")
    rows = np.sort(rng.choice(stored["price"].size, size=num_rows, replace=False))
    where = np.column_stack([stored["latitude"], stored["longitude"]])[rows]
    y = np.log(stored["price"])[rows]
    centers, scales = paper_radial_basis(rng, where)
    settings = {"mean": y.mean(), "second": np.mean(y**2), "variance": y.var()}
    return radial_basis(where, centers, scales), y, settings


def logistic(seed: int, num_rows: int = 100_000, dim: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Generated logistic regression with correlated covariates."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(num_rows, dim)) @ (np.eye(dim) + 0.2 * rng.normal(size=(dim, dim)))
    y = rng.random(num_rows) < 1.0 / (1.0 + np.exp(-X @ np.linspace(-1.0, 1.5, dim)))
    return X, y.astype(float)
