"""Repeated rows become counts, and nothing else changes."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.samplers.laplace import full_posterior


def categories(num_rows=5000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(num_rows, 3)).astype(float)
    y = (rng.random(num_rows) < 1.0 / (1.0 + np.exp(0.5 - X @ [1.0, -0.5, 0.2]))).astype(float)
    return X, y, rng.uniform(0.0, 2.0, num_rows)


def test_distinct_rows_have_the_counts_of_their_copies():
    X, y, counts = categories()
    counts[::11] = 0.0
    rows = cb.open((X, y), counts=counts, duplicates="count")
    assert rows.num_rows <= 54
    kept = counts > 0
    pairs = np.column_stack([X, y])[kept]
    distinct, first, inverse = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    block = rows.take(np.arange(rows.num_rows))
    assert np.array_equal(np.column_stack([block.X, block.y]), distinct[order])
    sums = np.bincount(inverse.ravel(), weights=counts[kept])[order]
    assert np.allclose(block.counts, sums, rtol=1e-13)
    model = cb.LogisticRegression(prior=cb.Normal()).bind(rows)
    ours, full = full_posterior(model, rows), full_posterior(model, cb.open((X, y), counts=counts))
    assert np.allclose(ours.mean, full.mean, atol=1e-9)


def test_files_are_counted_as_they_are_read(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y, _ = categories()
    frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y})
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=700)
    stored = cb.open(tmp_path / "rows.parquet", target="y", duplicates="count")
    held = cb.open((X, y), duplicates="count")
    assert np.array_equal(stored.take([0, 5, 9]).X, held.take([0, 5, 9]).X)
    assert stored.total_count == held.total_count == 5000


def test_zeros_of_both_signs_are_the_same_and_bad_rows_are_named():
    rows = cb.open((np.array([[0.0], [-0.0], [1.0]]), [1, 1, 1]), duplicates="count")
    assert rows.take([0, 1]).counts.tolist() == [2.0, 1.0]
    X = np.array([[1.0], [1.0], [np.nan]])
    with pytest.raises(ValueError, match="row 2, column 0 of X is nan"):
        cb.open((X, [1, 0, 1]), duplicates="count")
    with pytest.warns(UserWarning, match="1 of 3 rows"):
        dropped = cb.open((X, [1, 0, 1]), duplicates="count", on_bad="drop")
    assert dropped.num_rows == 2
    with pytest.raises(ValueError, match="row 1 counts -1 times"):
        cb.open((X[:2], [1, 0]), counts=[1, -1], duplicates="count")
    with pytest.raises(ValueError, match="duplicates must be"):
        cb.open((X, [1, 0, 1]), duplicates="drop")


def test_more_distinct_rows_than_memory_are_left_as_they_are(monkeypatch):
    monkeypatch.setattr("corebayes.data.distinct.MOST_BYTES", 10_000)
    X = np.random.default_rng(0).normal(size=(500, 2))
    with pytest.warns(UserWarning, match="repeated rows are not counted"):
        rows = cb.open((X, np.ones(500)), duplicates="count")
    assert rows.num_rows == 500 and rows.template.counts is None
