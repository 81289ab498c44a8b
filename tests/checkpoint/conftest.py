"""Rows that several tests build from."""

import numpy as np
import pytest

from tests.problems import coins


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    return X, coins(rng, X @ [1.0, -2.0, 0.5])
