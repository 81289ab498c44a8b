"""Section 4.3: logistic and Poisson regression on three data sets each."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import corebayes as cb
from corebayes.experiments import datasets
from corebayes.experiments.experiment import Experiment, compared_methods
from corebayes.types import Array, Model
from corebayes.weights import Adam

SIZES = (1, 2, 3, 5, 7, 10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100)
QUICK_SIZES = (2, 5, 10, 20, 50, 100)
TITLES = {
    "synth_lr": "synthetic",
    "ds1": "chemical reactivity",
    "phishing": "phishing websites",
    "synth_poiss": "synthetic",
    "biketrips": "bike trips",
    "airportdelays": "airport delays",
}
# Sets that the paper describes well enough to be made again where the files cannot be had.
GENERATORS = {
    "synth_lr": datasets.synthetic_logistic,
    "synth_poiss": datasets.synthetic_poisson,
}


def logistic(*, quick: bool) -> Experiment:
    """y ∈ {−1, 1} on synth_lr, ds1 and phishing, with a standard normal prior."""
    return _experiment("logistic", "Logistic regression", datasets.LOGISTIC, quick)


def poisson(*, quick: bool) -> Experiment:
    """Counts with a softplus link on synth_poiss, biketrips and airportdelays, the same prior."""
    return _experiment("poisson", "Poisson regression", datasets.POISSON, quick)


def _experiment(name: str, title: str, sets: tuple[str, ...], quick: bool) -> Experiment:
    """N = 500, S = 100, T = 500, γ_t = 0.5/t, M = 100; quick: T = 50."""
    sizes = QUICK_SIZES if quick else SIZES
    sparse_vi = cb.SparseVI(
        geometry=cb.MonteCarlo(num_draws=100),
        update=Adam(num_steps=50 if quick else 500, rate=0.5),
        num_iterations=sizes[-1],
    )
    return Experiment(
        name=name,
        title=title,
        sets=sets,
        files=sets,
        sizes=sizes,
        methods=compared_methods(sparse_vi, sizes[-1]),
        load=_load,
    )


def _load(name: str, path: Path | None, seed: int) -> tuple[Model, tuple[Array, Array]]:
    model = cb.LogisticRegression() if name in datasets.LOGISTIC else cb.PoissonRegression()
    if path is None:
        return model, GENERATORS[name](np.random.default_rng(0))
    return model, datasets.regression(path)
