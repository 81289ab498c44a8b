"""Random row numbers: different, sorted, each as likely, without memory for all rows."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import stats

from corebayes.data import random_rows as module
from corebayes.data.random_rows import random_rows


@pytest.mark.parametrize("num_rows, size", [(7, 7), (10, 3), (1000, 999), (2**20 + 5, 100_000)])
def test_numbers_are_different_sorted_and_in_range(num_rows, size):
    rows = random_rows(np.random.default_rng(0), num_rows, size)
    assert rows.dtype == np.int64 and rows.size == size
    assert np.all(np.diff(rows) > 0)
    assert rows[0] >= 0 and rows[-1] < num_rows


def test_every_row_is_as_likely_in_ranges_of_unequal_length(monkeypatch):
    # Ranges of 4, 4 and 3 rows; every subset of 5 of 11 rows has the same probability.
    monkeypatch.setattr(module, "AT_ONCE", 4)
    num_trials, rng = 4000, np.random.default_rng(1)
    counts, pairs = np.zeros(11), np.zeros((11, 11))
    for _ in range(num_trials):
        rows = random_rows(rng, 11, 5)
        counts[rows] += 1
        pairs[np.ix_(rows, rows)] += 1
    share = 5 / 11
    assert stats.chisquare(counts).pvalue > 1e-4
    together = pairs[np.triu_indices(11, 1)] / num_trials
    expected = share * 4 / 10
    assert np.abs(together - expected).max() < 5 * np.sqrt(expected * (1 - expected) / num_trials)


def test_memory_does_not_grow_with_the_number_of_rows():
    tracemalloc.start()
    random_rows(np.random.default_rng(2), 20_000_000, 450_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Shuffling all numbers would take 160 MB.
    assert peak < 30e6
