"""Open sizes of models with so many parameters that hardly any row is spare."""

from __future__ import annotations

import numpy as np
import pytest

import corebayes as cb
from corebayes.constructions.annealed.polish import _larger
from tests.problems import coins


def test_sizes_grow_by_a_third_and_large_ones_far_away_double():
    assert [_larger(1, 5.0), _larger(30, 5.0), _larger(999, 0.1)] == [2, 40, 1332]
    assert [_larger(1500, 0.9), _larger(1500, 5.0)] == [2000, 3000]


@pytest.mark.slow
def test_where_more_than_half_of_many_rows_are_needed_all_are_taken():
    rng = np.random.default_rng(0)
    X = rng.standard_t(4.0, size=(1100, 42))
    # Nearly dependent columns, and one that three rows see.
    X[:, 1] = X[:, 0] + 1e-3 * rng.normal(size=1100)
    X[:, 2] = 0.0
    X[:3, 2] = 1.0
    y = coins(rng, 0.3 * X[:, 3] - 1.0).astype(float)
    model = cb.LogisticRegression(prior=cb.Normal(0, 5.0), intercept=True)
    coreset = cb.build(model, (X, y), tol=1e-6, seed=0, progress=False)
    assert coreset.size == 1100
    np.testing.assert_allclose(coreset.weights, 1.0)
    assert cb.certify(coreset, (X, y), seed=1).certified
