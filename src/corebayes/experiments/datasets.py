"""Rows of the experiments: read from the published files, or generated as the paper says."""

from __future__ import annotations

import hashlib
import importlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corebayes.extras import install
from corebayes.models.radial_basis import RadialBasis, paper_radial_basis, radial_basis
from corebayes.types import Array

AUTHORS = "https://github.com/trevorcampbell/bayesian-coresets/raw"
# Seconds to wait for a server that does not answer.
TIMEOUT = 20
SHA256 = {
    "synth_lr": "49a8ed13262e80e6a9347c75ed7b0192bb220037a23a6bf22b5e057e0ee07a49",
    "ds1": "33ffb2df19794dc46f06a850dd3a0181548434d898742c76baf2bea7b27d6b73",
    "phishing": "63ed646e6dd7479564c6b9686d7e251e450808703c80086bf79daa4d05fba1c5",
    "synth_poiss": "45fbcc0330b4ade2cd491d07e1498bdb50a6464b713b9abf7d00120ff141e9ce",
    "biketrips": "47e02bcfc1e4608430221caa62c7bf0cda8f6df0dae577471dae27e893b6ee25",
    "airportdelays": "bc3ad40f818088a38d9af3a980e4ecc7358ce06d548f16f3a45eb299fc1a55e4",
    "biketrips_large": "4e9a48df9bc457a67255370c7253d0a2a6b11e307ddab99a1102f8e2add2f1dc",
    "uk_prices": "77a09a25de4b68d4db42c6c96a704141854a71b9419ceb6761d3a8894cb9d490",
    "king_county_sales": "6227c52c158ee308d018814362da3a79631597970661219eab6f31e86ef76ec6",
}
BY_THE_AUTHORS = {
    "synth_lr": "synthetic logistic regression, 2 covariates",
    "ds1": "chemical reactivity, 10 covariates",
    "phishing": "phishing websites, 10 principal components",
    "synth_poiss": "synthetic Poisson regression, 1 covariate",
    "biketrips": "bike trips an hour by weather and season, 8 covariates",
    "airportdelays": "delayed flights a day by weather, 15 covariates",
    "biketrips_large": "bike trips, all 15,641 hours",
}


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """One file; `url` is None where it has no stable public address."""

    file: str
    sha256: str
    description: str
    licence: str
    url: str | None = None


def _by_the_authors(name: str) -> Dataset:
    # This address serves files of the repository and of its large file storage alike.
    url = f"{AUTHORS}/63354127953a432c0f35087cf5b75166f652a5f5/examples/data/{name}.npz"
    return Dataset(
        file=f"{name}.npz",
        sha256=SHA256[name],
        description=BY_THE_AUTHORS[name],
        licence="MIT (the authors' repository)",
        url=url,
    )


DATASETS = {name: _by_the_authors(name) for name in BY_THE_AUTHORS} | {
    "uk_prices": Dataset(
        file="prices2018.npy",
        sha256=SHA256["uk_prices"],
        description="house sales in England and Wales in 2018: latitude, longitude, price",
        licence="Open Government Licence 3.0 (HM Land Registry), CC BY 4.0 (GeoNames)",
        url=f"{AUTHORS}/4e7d6ef08667af9335bbdd51fb8d7e6e98dd4d0d/examples/data/prices2018.npy",
    ),
    "king_county_sales": Dataset(
        file="king_county_sales.npz",
        sha256=SHA256["king_county_sales"],
        description="21,613 house sales in King County, Washington, 2014 and 2015",
        licence="public records of the county (CC0)",
    ),
}


class DataUnavailableError(OSError):
    """A data set is neither in the folder nor downloadable."""


def data_folder(given: str | Path | None = None) -> Path | None:
    """The folder that the user names, or None when data is to be downloaded."""
    named = given or os.environ.get("COREBAYES_DATA")
    if not named:
        return None
    folder = Path(named)
    if not folder.is_dir():
        raise NotADirectoryError(
            f"{folder} is not a folder: --data or COREBAYES_DATA must name the one with the .npz "
            "files, or be left out to download them"
        )
    return folder


def locate(name: str, folder: Path | None) -> Path:
    """The checked file of a data set, from the folder if there is one, else by download."""
    dataset = DATASETS[name]
    if folder is None:
        return _download(dataset)
    path = folder / dataset.file
    source = "" if dataset.url is None else f" from {dataset.url}"
    if not path.is_file():
        raise DataUnavailableError(
            f"{dataset.file} is not in {folder}, and nothing is downloaded when a folder is named; "
            f"put it there{source}, or leave out --data and COREBAYES_DATA"
        )
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != dataset.sha256:
        raise ValueError(
            f"{path} is not the published file: its SHA-256 is {found}, not {dataset.sha256}; "
            f"fetch it again{source}"
        )
    return path


def _download(dataset: Dataset) -> Path:
    if dataset.url is None:
        raise DataUnavailableError(
            f"{dataset.file} has no public address: name the folder that has it, "
            "by --data DIR or COREBAYES_DATA"
        )
    pooch = _import_pooch()
    try:
        kept: str = pooch.retrieve(
            dataset.url,
            known_hash=f"sha256:{dataset.sha256}",
            fname=dataset.file,
            path=pooch.os_cache("corebayes"),
            downloader=pooch.HTTPDownloader(timeout=TIMEOUT),
        )
    except OSError as error:
        # What requests says of a missing network takes five lines; its kind is enough.
        raise DataUnavailableError(
            f"cannot download {dataset.file} from {dataset.url} ({type(error).__name__}); without "
            "a network, name a folder that has it, by --data DIR or COREBAYES_DATA"
        ) from error
    return Path(kept)


def _import_pooch() -> Any:
    try:
        pooch = importlib.import_module("pooch")
    except ImportError as error:
        raise ImportError(
            f"downloading data needs pooch: {install('experiments')}; or name a folder "
            "that has the data, by --data DIR or COREBAYES_DATA",
            name="pooch",
        ) from error
    # Its own words on every download would break up the progress.
    pooch.get_logger().setLevel("WARNING")
    return pooch


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
