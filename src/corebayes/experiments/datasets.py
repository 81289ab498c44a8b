"""Rows of the experiments: read from the published files, or generated as the paper says."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from corebayes.models.radial_basis import RadialBasis, paper_radial_basis, radial_basis
from corebayes.types import Array

LOGISTIC = ("synth_lr", "ds1", "phishing")
POISSON = ("synth_poiss", "biketrips", "airportdelays")
# The paper's house prices, and what stands in for them where they cannot be had.
HOUSES = {"uk_prices": "England and Wales, 2018", "king_county_sales": "King County, 2014–2015"}
# The scales of the radial functions, 0.2° to 2°, are made for England and Wales. Most of them
# hardly vary over a county, so the map of the stand-in is stretched to this size.
EXTENT = (5.8, 8.0)


def regression(path: Path) -> tuple[Array, Array]:
    """X with whitened covariates and the intercept column last, and y, of a stored set."""
    with np.load(path, allow_pickle=False) as stored:
        X, y = stored["X"].astype(np.float64), stored["y"].astype(np.float64).ravel()
    return whitened(X), y


def whitened(X: Array) -> Array:
    """All columns but the last with mean zero and identity covariance."""
    covariates = X[:, :-1] - X[:, :-1].mean(axis=0)
    covariance = np.atleast_2d(np.cov(covariates, rowvar=False)) + 1e-12 * np.eye(X.shape[1] - 1)
    root = np.linalg.cholesky(covariance)
    white = np.asarray(np.linalg.solve(root, covariates.T), dtype=np.float64)
    return np.column_stack([white.T, X[:, -1]])


def synthetic_logistic(
    rng: np.random.Generator, num_rows: int = 500, theta: tuple[float, ...] = (3.0, 3.0, 0.0)
) -> tuple[Array, Array]:
    """x ~ N(0, I), y ∈ {−1, 1} with P(y = 1) = 1/(1 + exp(−zᵀθ)), z = (x, 1)."""
    X = _with_intercept(rng, num_rows, len(theta))
    probability = 1.0 / (1.0 + np.exp(-X @ np.array(theta)))
    return whitened(X), np.where(rng.random(num_rows) < probability, 1.0, -1.0)


def synthetic_poisson(
    rng: np.random.Generator, num_rows: int = 500, theta: tuple[float, ...] = (1.0, 0.0)
) -> tuple[Array, Array]:
    """x ~ N(0, I), y ~ Poisson(log(1 + exp(zᵀθ))), z = (x, 1)."""
    X = _with_intercept(rng, num_rows, len(theta))
    return whitened(X), rng.poisson(np.logaddexp(0.0, X @ np.array(theta))).astype(np.float64)


def _with_intercept(rng: np.random.Generator, num_rows: int, dim: int) -> Array:
    return np.column_stack([rng.normal(size=(num_rows, dim - 1)), np.ones(num_rows)])


# Sets that the paper describes well enough to be made again where the files cannot be had.
GENERATORS = {"synth_lr": synthetic_logistic, "synth_poiss": synthetic_poisson}


def gaussian(seed: int, num_rows: int = 1000, dim: int = 200) -> Array:
    """The paper's synthetic Gaussian: θ ~ N(0, I), x_n ~ N(θ, I)."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=dim) + rng.normal(size=(num_rows, dim))


class HousePrices(NamedTuple):
    """Sales on a map (latitude, longitude), log prices, and radial functions of the place."""

    where: Array
    y: Array
    basis: RadialBasis

    @property
    def features(self) -> Array:
        return radial_basis(self.where, *self.basis)


def house_prices(
    path: Path,
    seed: int,
    *,
    num_rows: int = 10_000,
    per_scale: int = 50,
    extent: tuple[float, float] | None = None,
) -> HousePrices:
    """A random subset of the sales in a file, and the paper's basis on it (K = 301 by default).

    The map is stretched to the `extent`, in degrees of latitude and longitude, if there is one.
    """
    rng = np.random.default_rng(seed)
    sales = _sales(path)
    if extent is not None:
        sales[:, :2] *= np.array(extent) / np.ptp(sales[:, :2], axis=0)
    rows = np.sort(rng.choice(len(sales), size=num_rows, replace=False))
    where, y = sales[rows, :2], np.log(sales[rows, 2])
    return HousePrices(where, y, paper_radial_basis(rng, where, per_scale))


def _sales(path: Path) -> Array:
    """Latitude, longitude and price of every sale that has all three."""
    stored = np.load(path, allow_pickle=False)
    if isinstance(stored, np.ndarray):
        sales = np.asarray(stored, dtype=np.float64)
    else:
        with stored:
            sales = np.column_stack([stored[name] for name in ("latitude", "longitude", "price")])
    # Postcodes without coordinates are NaN in the published table.
    return sales[np.all(np.isfinite(sales), axis=1) & (sales[:, 2] > 0.0)]
