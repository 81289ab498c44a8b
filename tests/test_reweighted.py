"""The draws that a certificate hands back are of the posterior of all rows."""

from __future__ import annotations

import json

import numpy as np

import corebayes as cb
from tests.problems import coins


def test_under_their_weights_they_are_of_all_rows() -> None:
    """One skewed parameter, by a grid; the coreset itself is far off."""
    rng = np.random.default_rng(0)
    X = np.ones((60, 1))
    y = coins(rng, np.full(60, -2.5)).astype(float)
    model = cb.LogisticRegression(prior=cb.Normal(0.0, 3.0))
    coreset = cb.build(model, (X, y), method=cb.Uniform(), size=30, seed=0, progress=False)
    found = cb.certify(coreset, (X, y), draws=4000, tol=10.0)
    grid = np.linspace(-12.0, 6.0, 20_001)[:, None]
    heights = grid[:, 0] * y.sum() - 60.0 * np.log1p(np.exp(grid[:, 0]))
    heights += coreset.model.log_prior(grid)
    density = np.exp(heights - heights.max())
    truth = float(density @ grid[:, 0] / density.sum())
    assert found.reweighted is not None
    draws, weights = found.reweighted
    assert draws.shape == (len(weights), 1) and abs(weights.sum() - 1.0) < 1e-12
    assert abs(float(weights @ draws[:, 0]) - truth) < 0.1
    assert "reweighted" not in json.loads(json.dumps(found.to_dict()))


def test_none_where_there_is_no_number() -> None:
    X = np.random.default_rng(1).normal(size=(400, 2))
    y = coins(np.random.default_rng(2), X @ np.array([2.0, -2.0])).astype(float)
    coreset = cb.build(
        cb.LogisticRegression(), (X, y), method=cb.Uniform(), size=1, seed=0, progress=False
    )
    found = cb.certify(coreset, (X, y), draws=200)
    assert (found.reweighted is None) == (found.reverse_kl is None)
