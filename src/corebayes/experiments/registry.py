"""The data sets of the experiments: where each is published, its checksum and its licence.

A set is looked for in the folder that the user names (`--data DIR`, or COREBAYES_DATA) and nowhere
else when there is one; otherwise pooch downloads it once into the user's cache. A file whose
SHA-256 is not the registered one is refused either way.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corebayes.extras import install

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
