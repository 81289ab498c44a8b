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


def test_rows_of_a_formula_are_counted_and_found_again(tmp_path):
    """A regression on categories as people write it; later months are counted, too."""
    pandas = pytest.importorskip("pandas")
    months = []
    for seed in range(2):
        X, y, _ = categories(seed=seed)
        months.append(pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}).astype({"a": "str"}))
    model, rows = cb.from_formula("y ~ a + b", months[0], duplicates="count")
    plain, all_rows = cb.from_formula("y ~ a + b", months[0])
    assert rows.num_rows == 18 and rows.total_count == 5000
    ours, full = full_posterior(model.bind(rows), rows), full_posterior(plain.bind(all_rows), rows)
    assert np.allclose(ours.mean, full.mean, atol=1e-9)
    coreset = cb.build(model, rows, size=14)
    coreset.save(tmp_path / "c.parquet")
    loaded = cb.load(tmp_path / "c.parquet")
    assert cb.certify(loaded, months[0], draws=200).certified
    grown = cb.update(loaded, months[1])
    assert grown.num_rows == 36 and grown.total_count == 10_000
    assert cb.certify(grown, months, draws=200).certified
    with pytest.raises(ValueError, match="leave one of them out"):
        cb.from_formula("y ~ b", months[0], duplicates="count", unit="a")


def test_arrays_are_counted_again_for_a_certificate():
    (X, y, _), (other, labels, _) = categories(), categories(seed=1)
    model = cb.LogisticRegression(prior=cb.Normal())
    coreset = cb.build(model, cb.open((X, y), duplicates="count"), size=10)
    assert cb.certify(coreset, (X, y), draws=200).certified
    grown = cb.update(coreset, (other, labels))
    assert grown.num_rows == 108 and cb.certify(grown, [(X, y), (other, labels)]).certified


def test_files_are_counted_as_they_are_read(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y, _ = categories()
    frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y})
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=700)
    stored = cb.open(tmp_path / "rows.parquet", target="y", duplicates="count")
    held = cb.open((X, y), duplicates="count")
    assert np.array_equal(stored.take([0, 5, 9]).X, held.take([0, 5, 9]).X)
    assert stored.total_count == held.total_count == 5000


def test_files_with_a_column_of_counts(tmp_path):
    """Fractions add up, rows that count zero times are no rows, and negative ones are named."""
    pandas = pytest.importorskip("pandas")
    X, y, counts = categories(3000, seed=3)
    counts[::7] = 0.0
    X[7 * 5], y[7 * 5] = 9.0, 1.0  # A row that nothing else is like, and that does not count.
    frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y, "n": counts})
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path, row_group_size=500)
    held = cb.open((X, y), counts=counts, duplicates="count")
    for source in (path, frame, [path]):
        rows = cb.open(source, target="y", counts="n", duplicates="count")
        everything = np.arange(rows.num_rows)
        block, expected = rows.take(everything), held.take(everything)
        assert rows.num_rows == held.num_rows and not np.any(block.X == 9.0)
        assert np.array_equal(block.X, expected.X) and np.array_equal(block.y, expected.y)
        assert np.allclose(block.counts, expected.counts, rtol=1e-12)
        assert rows.total_count == pytest.approx(counts.sum())
    frame.loc[1234, "n"] = -0.5
    frame.to_parquet(path, row_group_size=500)
    for duplicates in ("count", None):
        with pytest.raises(ValueError, match=r"row 1234 counts -0\.5 times"):
            cb.open(path, target="y", counts="n", duplicates=duplicates).check()


def test_counts_of_an_earlier_coreset_are_data(tmp_path):
    """Rows of an exported coreset, counted by their weights, have its posterior."""
    X, y, _ = categories()
    model = cb.LogisticRegression(prior=cb.Normal())
    coreset = cb.build(model, (X, y), size=15, seed=0)
    cb.to_parquet(coreset, tmp_path / "weighted.parquet")
    rows = cb.open(
        tmp_path / "weighted.parquet",
        target="y",
        features=["x0", "x1", "x2"],
        counts="weight",
        duplicates="count",
    )
    fit, full = (full_posterior(model.bind(one), one) for one in (rows, cb.open((X, y))))
    assert np.allclose(fit.mean, cb.Laplace().fit(cb.Posterior.of(coreset)).mean, atol=1e-6)
    assert cb.diagnostics.gaussian_kl(fit, full) < 1e-3


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


def test_memory_bounds_what_is_held(tmp_path):
    """More distinct rows than half of what is left: rows as they are, and a warning says so."""
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(150_000, 2))
    frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": 1.0})
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=15_000)
    with pytest.warns(UserWarning, match="rows are distinct among the first"):
        rows = cb.open(tmp_path / "rows.parquet", target="y", duplicates="count", memory="400MB")
    assert rows.num_rows == 150_000
