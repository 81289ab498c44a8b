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
    ("adapt", "number"), [(numpyro_model, 60), (pymc_model, 20), (bambi_model, 20)]
)
def test_builds_in_threads_are_those_of_one(adapt: Callable[[float], Any], number: int) -> None:
    """A hundred builds in all; each has the rows and weights that it has alone."""
    library = adapt.__name__.partition("_")[0]
    pytest.importorskip(library)
    slopes = [0.5, 1.0, -2.0]

    def built(slope: float) -> tuple[list[int], np.ndarray]:
        coreset = cb.build(*adapt(slope), size=6, progress=False)
        return coreset.indices.tolist(), coreset.weights

    with warnings.catch_warnings():
        # Bambi's dependencies speak of their own future.
        warnings.simplefilter("ignore")
        expected = {slope: built(slope) for slope in slopes}
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            with ThreadPoolExecutor(4) as pool:
                jobs = [slopes[k % 3] for k in range(number)]
                found = list(pool.map(built, jobs))
        finally:
            sys.setswitchinterval(interval)
    for slope, (indices, weights) in zip(jobs, found, strict=True):
        assert indices == expected[slope][0]
        np.testing.assert_allclose(weights, expected[slope][1], rtol=1e-9)
