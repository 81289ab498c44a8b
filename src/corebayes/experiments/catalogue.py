"""Section 4 of the paper as data: each experiment's sets, sizes, methods, models and files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import corebayes as cb
from corebayes.constructions import Construction
from corebayes.experiments import datasets
from corebayes.experiments.datasets import (
    GENERATORS,
    HOUSES,
    DataUnavailableError,
    HousePrices,
    locate,
)
from corebayes.types import Array, Model
from corebayes.weights import Adam

# With trials; `geometry` has none.
EXPERIMENTS = ("gaussian", "rbf", "logistic", "poisson")
# Covariances in closed form: T = 100, γ_t = 1/t. The others have S = 100, T = 500, γ_t = 0.5/t.
CLOSED_FORM = ("gaussian", "rbf")
# M, and its quick version.
_REGRESSION = (1, 2, 3, 5, 7, 10, 15, 20, 25, 30, *range(40, 101, 10)), (2, 5, 10, 20, 50, 100)
SIZES = {
    "gaussian": ((1, 2, 5, 10, 15, 20, *range(30, 201, 10)), (1, 2, *range(5, 31, 5), 40, 50)),
    "rbf": ((1, 2, 5, 10, 20, 30, *range(50, 301, 25)), (1, 2, 5, 10, 20, 30, 40, 60, 80, 100)),
    "logistic": _REGRESSION,
    "poisson": _REGRESSION,
}
# Dimensions of the random projection of GIGA.
PROJECTION = 100
# The labels of the methods, as legends and tables have them.
NAMES = {
    "AnnealedSparseVI": "AnnealedSparseVI (our default)",
    "SparseVI": "SparseVI",
    "GIGA": "GIGA (optimal)",
    "GIGA, realistic": "GIGA (realistic)",
    "Uniform": "Uniform",
}
# μ_0 = 0 and Σ_0 = Σ = I.
GAUSSIAN = cb.GaussianMean(1.0)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Coresets of growing size by several methods, on one or more data sets."""

    name: str
    quick: bool
    sets: tuple[str, ...]
    sizes: tuple[int, ...]
    """M: the numbers of greedy iterations, or of rows asked for, that are measured."""
    methods: Mapping[str, Construction]

    @property
    def shared_run(self) -> bool:
        """Whether our default builds all sizes in one run; its CPU time is then that of the run."""
        return self.name in CLOSED_FORM

    def load(self, data: str, path: Path | None, seed: int) -> tuple[Model, Any]:
        """The model and the rows of a set, from its file if it has one, in a trial."""
        if data == "gaussian":
            return GAUSSIAN, gaussian_rows(seed, quick=self.quick)
        if data in HOUSES:
            if path is None:
                raise ValueError(f"{data} is a file, and none was given")
            prices = house_sales(data, path, seed, quick=self.quick)
            return house_model(prices.y), (prices.features, prices.y)
        logistic = data in datasets.LOGISTIC
        model = (
            cb.LogisticRegression(prior=cb.Normal())
            if logistic
            else cb.PoissonRegression(link="softplus", prior=cb.Normal())
        )
        if path is None:
            return model, GENERATORS[data](np.random.default_rng(0))
        return model, datasets.regression(path)


def make_experiment(name: str, *, quick: bool, housing_set: str) -> Experiment:
    """An experiment by its name on the command line.

    gaussian: d = 200, N = 1000 (quick: 50, 300). rbf: K = 301, N = 10,000 (61, 2000).
    logistic, poisson: N = 500, standard normal priors, T = 500 (50).
    """
    sizes = SIZES[name][quick]
    if name in CLOSED_FORM:
        sparse_vi = cb.SparseVI(update=Adam(num_steps=100, rate=1.0), num_iterations=sizes[-1])
    else:
        sparse_vi = cb.SparseVI(
            geometry=cb.MonteCarlo(num_draws=100),
            update=Adam(num_steps=50 if quick else 500, rate=0.5),
            num_iterations=sizes[-1],
        )
    optimal, realistic = (kind(num_draws=PROJECTION) for kind in (cb.FullPosterior, cb.Realistic))
    own = {"rbf": (housing_set,), "logistic": datasets.LOGISTIC, "poisson": datasets.POISSON}
    methods: dict[str, Construction] = {
        # It takes hours of a run and must not be what is left at its end.
        "SparseVI": sparse_vi,
        "AnnealedSparseVI": cb.AnnealedSparseVI(),
        "GIGA": cb.GIGA(weighting=optimal, num_iterations=sizes[-1]),
        "GIGA, realistic": cb.GIGA(weighting=realistic, num_iterations=sizes[-1]),
        "Uniform": cb.Uniform(),
    }
    return Experiment(
        name=name, quick=quick, sets=own.get(name, (name,)), sizes=sizes, methods=methods
    )


def gaussian_rows(seed: int, *, quick: bool) -> Array:
    return datasets.gaussian(seed, num_rows=300, dim=50) if quick else datasets.gaussian(seed)


def house_sales(data: str, path: Path, seed: int, *, quick: bool) -> HousePrices:
    """A subset of the sales and the radial functions, new in every trial."""
    extent = None if data == "uk_prices" else datasets.EXTENT
    num_rows, per_scale = (2000, 10) if quick else (10_000, 50)
    return datasets.house_prices(path, seed, num_rows=num_rows, per_scale=per_scale, extent=extent)


def house_model(y: Array) -> cb.LinearRegression:
    """μ_0, σ_0² and σ² are the mean, second moment and variance of the log prices."""
    prior = cb.Normal(float(y.mean()), float(np.sqrt(np.mean(y**2))))
    return cb.LinearRegression(noise_sd=float(y.std()), prior=prior)


@dataclass(frozen=True, kw_only=True)
class DataFiles:
    """The files of the sets at hand, None for one that is generated; and which houses these are."""

    files: Mapping[str, Path | None]
    housing: str = "uk_prices"


def find_sources(
    names: Iterable[str], folder: Path | None, say: Callable[[str], None]
) -> DataFiles:
    """All files that the named experiments need, before any of them begins."""
    files: dict[str, Path | None] = {}
    housing = "uk_prices"
    for name in names:
        if name == "rbf":
            housing, files[housing] = _house_prices(folder, say)
        elif name != "gaussian":
            for data in datasets.LOGISTIC if name == "logistic" else datasets.POISSON:
                files[data] = _file_or_none(data, folder, say)
    return DataFiles(files=files, housing=housing)


def _house_prices(folder: Path | None, say: Callable[[str], None]) -> tuple[str, Path]:
    """The paper's data where it can be had, else what stands in for it."""
    paper, stand_in = HOUSES
    try:
        return paper, locate(paper, folder)
    except DataUnavailableError as refused:
        try:
            path = locate(stand_in, folder)
        except DataUnavailableError:
            raise refused from None
        say(f"rbf: {stand_in} stands in for {paper}: {refused}")
        return stand_in, path


def _file_or_none(name: str, folder: Path | None, say: Callable[[str], None]) -> Path | None:
    """The file of a set, or None where it can be generated and must be."""
    try:
        return locate(name, folder)
    except DataUnavailableError as refused:
        if name not in GENERATORS:
            raise
        say(f"{name} is generated as the paper describes it: {refused}")
        return None
