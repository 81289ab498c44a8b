"""NumPyro keeps its handlers in one list for all threads: models must run one at a time."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import corebayes as cb


def line(x: Any, y: Any) -> None:
    import numpyro
    from numpyro import distributions

    a = numpyro.sample("a", distributions.Normal(0.0, 2.0))
    b = numpyro.sample("b", distributions.Normal(0.0, 2.0))
    with numpyro.plate("rows", len(y)):
        numpyro.sample("y", distributions.Normal(a + b * x, 1.0), obs=y)


@pytest.mark.parametrize("number", [8, pytest.param(100, marks=pytest.mark.slow)])
def test_models_in_several_threads(number: int) -> None:
    pytest.importorskip("numpyro")
    x = np.linspace(-1.0, 1.0, 12)
    y = 0.5 - x
    theta = np.array([[0.3, -0.2], [1.0, 2.0]])

    def density(_: int) -> np.ndarray:
        model, data = cb.from_numpyro(line, x, y)
        return cb.Posterior(model, data.take(np.arange(12)), np.ones(12)).log_density(theta)

    expected = density(0)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            for found in pool.map(density, range(number)):
                np.testing.assert_allclose(found, expected, rtol=1e-12)
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.slow
def test_pymc_models_in_several_threads() -> None:
    pymc = pytest.importorskip("pymc")
    x = np.linspace(-1.0, 1.0, 12)
    theta = np.array([[0.3, -0.2], [1.0, 2.0]])

    def density(number: int) -> np.ndarray:
        with pymc.Model() as model:
            a, b = pymc.Normal("a", 0.0, 2.0), pymc.Normal("b", 0.0, 2.0)
            pymc.Normal("y", a + b * x, 1.0, observed=number - x)
        adapted, data = cb.from_pymc(model)
        return cb.Posterior(adapted, data.take(np.arange(12)), np.ones(12)).log_density(theta)

    expected = [density(number) for number in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            np.testing.assert_allclose(list(pool.map(density, range(4))), expected, rtol=1e-12)
    finally:
        sys.setswitchinterval(interval)
