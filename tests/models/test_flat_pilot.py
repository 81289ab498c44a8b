"""Flat priors where a pilot's rows are separated and all rows are not."""

from __future__ import annotations

import numpy as np

import corebayes as cb


def test_a_flat_prior_of_nearly_separated_rows_builds() -> None:
    """Five of 2,000 rows keep the classes together: the rows of the pilot are without them."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2000, 3))
    y = (X[:, 0] > 0.0) * 1.0
    flipped = np.argsort(np.abs(X[:, 0]))[:5]
    y[flipped] = 1.0 - y[flipped]
    model = cb.LogisticRegression(prior=cb.Flat(), intercept=True)
    coreset = cb.build(model, (X, y), size=30, seed=0, progress=False)
    assert coreset.size == 30
    assert cb.certify(coreset, (X, y), seed=1).certified
