"""Uniform subsampling: unbiased weights, rows in proportion to their counts."""

import numpy as np
import pytest

import corebayes as cb

ROWS = np.arange(200.0)


def test_weights_stand_for_all_rows():
    coreset = cb.build(cb.GaussianMean(), ROWS, size=50, method=cb.Uniform())
    assert coreset.weights.sum() == pytest.approx(200.0)
    assert np.all(np.isin(coreset.weights, [4.0, 8.0, 12.0, 16.0]))


def test_rows_are_drawn_in_proportion_to_their_counts():
    counts = np.where(ROWS < 50, 9.0, 1.0)
    weights = np.zeros(200)
    for seed in range(300):
        coreset = cb.build(
            cb.GaussianMean(), ROWS, size=20, counts=counts, method=cb.Uniform(), seed=seed
        )
        assert coreset.weights.sum() == pytest.approx(600.0)
        weights[coreset.indices] += coreset.weights
    # E w_n = c_n, with standard error about √(30 c_n / 300)
    assert np.all(np.abs(weights / 300 - counts) < 5 * np.sqrt(0.1 * counts))


def test_needs_a_size():
    with pytest.raises(ValueError, match="Uniform needs a size"):
        cb.build(cb.GaussianMean(), ROWS, tol=0.1, method=cb.Uniform())
