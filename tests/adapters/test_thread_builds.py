"""Builds of models of other libraries in several threads that take turns all the time."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import corebayes as cb
from tests.adapters.test_threads import line

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:PyTensor could not link"),
    pytest.mark.filterwarnings("ignore:For backward compatibility"),
]

X = np.linspace(-1.0, 1.0, 40)
NOISE = np.random.default_rng(5).normal(size=40)


def numpyro_model(slope: float) -> Any:
    return cb.from_numpyro(line, X, slope * X + NOISE)


def pymc_model(slope: float) -> Any:
    import pymc

    with pymc.Model() as model:
        a, b = pymc.Normal("a", 0.0, 2.0), pymc.Normal("b", 0.0, 2.0)
        pymc.Normal("y", a + b * X, 1.0, observed=slope * X + NOISE)
    return cb.from_pymc(model)


def bambi_model(slope: float) -> Any:
    import bambi
    import pandas

    frame = pandas.DataFrame({"x": X, "y": slope * X + NOISE})
    # A prior that no built-in regression has, so that the model stays PyMC's.
    priors = {"x": bambi.Prior("Laplace", mu=0.0, b=1.0)}
    return cb.from_bambi(bambi.Model("y ~ x", frame, priors=priors))


@pytest.mark.parametrize(
    ("adapt", "number"), [(numpyro_model, 100), (pymc_model, 20), (bambi_model, 20)]
)
def test_builds_in_threads_are_those_of_one(adapt: Callable[[float], Any], number: int) -> None:
    """Each has the rows and weights that it has alone: most share a model, which is compiled where
    they meet, and every tenth adapts one of its own, which compiles all of it."""
    library = adapt.__name__.partition("_")[0]
    pytest.importorskip(library)
    slopes = [0.5, 1.0, -2.0]

    def built(pair: Any) -> tuple[list[int], np.ndarray]:
        coreset = cb.build(*pair, size=6, reserve=0, progress=False)
        return coreset.indices.tolist(), coreset.weights

    def job(number: int) -> tuple[list[int], np.ndarray]:
        slope = slopes[number % 3]
        return built(adapt(slope) if number % 10 == 9 else shared[slope])

    with warnings.catch_warnings():
        # Bambi's dependencies speak of their own future.
        warnings.simplefilter("ignore")
        expected = [built(adapt(slope)) for slope in slopes]
        shared = {slope: adapt(slope) for slope in slopes}
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            with ThreadPoolExecutor(4) as pool:
                found = list(pool.map(job, range(number)))
        finally:
            sys.setswitchinterval(interval)
    for place, (indices, weights) in enumerate(found):
        assert indices == expected[place % 3][0]
        np.testing.assert_allclose(weights, expected[place % 3][1], rtol=1e-9)
