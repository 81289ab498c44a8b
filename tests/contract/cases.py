"""The lists whose products are the contract suite: a new model, geometry, sampler or construction
is one more row here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import corebayes as cb
from corebayes.problem import Problem
from corebayes.rows import open_rows
from corebayes.samplers.exact import is_conjugate
from corebayes.samplers.mixture import mixture_draws
from corebayes.samplers.modes.search import distinct_modes, find_modes
from corebayes.samplers.resampling import Resampling
from corebayes.types import WeightedPoints

DIM = 3


@dataclass(frozen=True)
class ModelCase:
    """A model with a small asymmetric data set of its own."""

    name: str
    model: Any
    respond: Callable[[np.random.Generator, np.ndarray], np.ndarray] | None

    def data(self, num_rows: int = 60, seed: int = 0) -> Any:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(num_rows, DIM)) * [1.0, 0.5, 1.5] + [0.3, -0.2, 0.0]
        if self.respond is None:
            return X
        return X, self.respond(rng, X @ np.array([0.8, -1.2, 0.4]) + 0.3)

    def problem(self, num_rows: int = 60, seed: int = 0, **options: Any) -> Problem:
        data = open_rows(self.data(num_rows, seed), **options)
        return Problem(self.model.bind(data), data)


def _logistic_log_likelihood(draws: np.ndarray, block: Any) -> np.ndarray:
    signed = (2.0 * block.y - 1.0)[:, None] * (block.X @ draws.T)
    return np.minimum(signed, 0.0) - np.log1p(np.exp(-np.abs(signed)))


def _wide_normal(draws: np.ndarray) -> np.ndarray:
    return -0.5 * np.sum(np.square(draws - 0.2), axis=1) / 1.5**2


PRIOR = cb.Normal([0.2, -0.1, 0.4], [1.0, 2.0, 0.7])

MODELS = [
    ModelCase(
        "gaussian",
        cb.GaussianMean([[1.0, 0.3, 0.0], [0.3, 2.0, 0.1], [0.0, 0.1, 0.5]], prior=PRIOR),
        None,
    ),
    ModelCase(
        "linear",
        cb.LinearRegression(noise_sd=0.8, prior=PRIOR),
        lambda rng, eta: eta + 0.8 * rng.normal(size=eta.size),
    ),
    ModelCase(
        "logistic",
        cb.LogisticRegression(prior=PRIOR),
        lambda rng, eta: rng.uniform(size=eta.size) < 1 / (1 + np.exp(-eta)),
    ),
    ModelCase(
        "poisson",
        cb.PoissonRegression(prior=PRIOR, link="softplus"),
        lambda rng, eta: rng.poisson(np.log1p(np.exp(eta))),
    ),
    ModelCase(
        "poisson-log",
        cb.PoissonRegression(link="log", prior=PRIOR),
        lambda rng, eta: rng.poisson(np.exp(0.5 * eta)),
    ),
    ModelCase(
        "student-t",
        cb.StudentTRegression(df=4.0, scale=0.7, prior=PRIOR),
        lambda rng, eta: eta + 0.7 * rng.standard_t(4, size=eta.size),
    ),
    ModelCase(
        "negative-binomial",
        cb.NegativeBinomialRegression(dispersion=2.0, prior=PRIOR),
        lambda rng, eta: rng.negative_binomial(2.0, 2.0 / (2.0 + np.exp(0.5 * eta))),
    ),
    ModelCase(
        "custom",
        cb.CustomModel(_logistic_log_likelihood, _wide_normal, DIM),
        lambda rng, eta: (rng.uniform(size=eta.size) < 1 / (1 + np.exp(-eta))) * 1.0,
    ),
]

GEOMETRIES = [
    ("monte-carlo", cb.MonteCarlo(num_draws=60), lambda model: True),
    ("monte-carlo-narrow", cb.MonteCarlo(num_draws=5), lambda model: True),
    ("closed-form", cb.ClosedForm(), is_conjugate),
    *(
        (f"hermite-{order}", cb.Hermite(order=order), lambda model: hasattr(model, "derivatives"))
        for order in range(1, 9)
    ),
    ("guarded-monte-carlo", cb.Guard(geometry=cb.MonteCarlo(num_draws=60)), lambda model: True),
    (
        "guarded-hermite",
        cb.Guard(geometry=cb.Hermite(order=3), num_far=7),
        lambda model: hasattr(model, "derivatives"),
    ),
]

UPDATES = [
    ("sgd", cb.SGD(num_steps=40, rate=lambda t: 0.02)),
    ("adam", cb.Adam(num_steps=20, rate=2.0)),
    ("natural-gradient", cb.NaturalGradient()),
    ("quadratic", cb.Quadratic(num_steps=3)),
    ("line-search", cb.LineSearch(update=cb.Quadratic(num_steps=2))),
]

CONSTRUCTIONS = [
    ("uniform", cb.Uniform()),
    ("annealed", cb.AnnealedSparseVI()),
    ("sparse-vi", cb.SparseVI()),
    ("importance", cb.ImportanceSampling()),
    ("importance-refit", cb.ImportanceSampling(refit=True)),
    ("frank-wolfe", cb.FrankWolfe()),
    ("giga", cb.GIGA()),
    ("giga-refit", cb.GIGA(refit=True, weighting=cb.SubsamplePosterior(num_rows=20))),
    ("pursuit", cb.OrthogonalPursuit()),
    ("hard-thresholding", cb.HardThresholding()),
    ("l1", cb.L1(geometry=cb.MonteCarlo(num_draws=50), num_stages=8, num_rounds=4)),
    ("quasi-newton", cb.QuasiNewton()),
    ("coreset-mcmc", cb.CoresetMCMC(update=cb.HotDoG(num_steps=60), batch=30)),
    (
        "pseudo-coreset",
        cb.PseudoCoreset(update=cb.Adam(num_steps=50)),
        lambda model: hasattr(model, "row_gradients"),
    ),
    *(
        (f"sparse-vi-{name}", cb.SparseVI(update=update, geometry=cb.MonteCarlo(num_draws=50)))
        for name, update in UPDATES
    ),
    (
        "sparse-vi-subsampled",
        cb.SparseVI(
            geometry=cb.MonteCarlo(num_draws=50),
            selection_rows=20,
            gradient_rows=30,
            update=cb.NaturalGradient(num_steps=2, max_trials=3),
            num_iterations=45,
        ),
    ),
]


class Mixture:
    """Weighted draws around the mode, as certificates take them where there are several."""

    def draw(
        self, rng: np.random.Generator, posterior: cb.Posterior, num_draws: int, start: Any = None
    ) -> cb.Draws:
        start = np.zeros(posterior.dim) if start is None else start
        modes = distinct_modes(find_modes(posterior, [start]))
        return mixture_draws(rng, posterior, num_draws, modes)


SAMPLERS = [
    ("exact", cb.Exact(), is_conjugate),
    ("laplace", cb.Laplace()),
    ("matched", cb.Laplace(matched=True)),
    ("nuts", cb.NUTS()),
    ("hit-and-run", cb.HitAndRun(num_chains=20)),
    ("resampling", Resampling()),
    ("mixture", Mixture()),
    ("independence", cb.Independence()),
    ("automatic", cb.Automatic(num_tune=300)),
]


def products(others: list[Any], models_each: int, start: int = 0) -> list[Any]:
    """(model case, other) for every pair that fits, named for pytest.

    Pairs mostly repeat each other: each is tried on `models_each` of the models that fit it, along
    diagonals of the table, so that every model has its turn; the rest are slow tests.
    """
    import pytest

    pairs: list[Any] = []
    for column, (name, other, *fits) in enumerate(others):
        cases = [case for case in MODELS if not fits or fits[0](case.model)]
        quick = {(start + column + step) % len(cases) for step in range(models_each)}
        pairs += [
            pytest.param(
                case,
                other,
                id=f"{case.name}-{name}",
                marks=() if place in quick else pytest.mark.slow,
            )
            for place, case in enumerate(cases)
        ]
    return pairs


def some_points(problem: Problem, *indices: int) -> WeightedPoints:
    return problem.points(np.array(indices, dtype=np.int64))
