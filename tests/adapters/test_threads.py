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


def test_models_in_several_threads() -> None:
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
            for found in pool.map(density, range(8)):
                np.testing.assert_allclose(found, expected, rtol=1e-12)
    finally:
        sys.setswitchinterval(interval)
