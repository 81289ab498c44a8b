"""Newton's step in the Hermite space where averages of an exponential link overflow."""

from __future__ import annotations

import numpy as np

import corebayes as cb
from corebayes.rows import open_rows
from corebayes.tangent.hermite import HermiteSpace


def test_a_place_that_is_far_too_wide_says_so():
    """As a subsample's posterior is along a column that is zero in all of its rows."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=50), np.arange(50) == 7])
    rows = open_rows((X, rng.poisson(np.exp(0.3 * X[:, 0])).astype(float)))
    model = cb.PoissonRegression(prior=cb.Normal(0.0, 300.0)).bind(rows)
    block = rows.take(np.arange(50))
    wide = HermiteSpace(2, 2, model, np.zeros(2), np.diag([0.1, 300.0]), 16)
    with np.errstate(all="ignore"):
        nearer, misfit = wide.newton(wide.total(block))
    assert not misfit < np.inf or misfit > 1e6
    near = HermiteSpace(2, 2, model, np.zeros(2), np.diag([0.1, 0.1]), 16)
    _, closer = near.newton(near.total(block))
    assert closer < np.inf
    del nearer


def test_a_rare_category_builds_with_default_priors():
    """One row of it in thousands, and the log link."""
    rng = np.random.default_rng(1)
    number = 4000
    X = np.column_stack([rng.normal(size=(number, 2)), np.arange(number) == 17])
    y = rng.poisson(np.exp(2.0 + 0.3 * X[:, 0])).astype(float)
    coreset = cb.build(cb.PoissonRegression(intercept=True), (X, y), size=20, progress=False)
    assert 17 in coreset.indices
    assert cb.certify(coreset, (X, y), seed=1).certified
