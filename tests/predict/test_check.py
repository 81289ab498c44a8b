"""Posterior predictive checks: against brute force, on models that fit and that do not."""

import numpy as np
import pandas as pd
import pytest

import corebayes as cb
from corebayes.predict.replicates import Replicates, ReplicateSums, edges_of, quantiles


class Given:
    """Replicates that are known."""

    def __init__(self, table):
        self.table = table
        self.num_draws = table.shape[1]

    def predict(self, rng, block):
        return self.table[block.X[:, 0].astype(int)], self.table[block.X[:, 0].astype(int)]


def asked(y, table, edges, counts=None):
    rows = cb.open((np.arange(len(y))[:, None], y), counts=counts)
    return rows.ask(Replicates(Given(table), edges, float(np.median(y)), False, 0))


@pytest.mark.parametrize("whole", [True, False])
def test_sums_and_quantiles_are_those_of_the_columns(whole):
    rng = np.random.default_rng(0)
    y = rng.poisson(3.0, 20_000).astype(float) if whole else rng.gamma(2.0, 3.0, 20_000)
    table = rng.permuted(np.tile(1.1 * y if not whole else y + 1.0, (3, 1)), axis=1).T
    edges = edges_of(y)
    found = asked(y, table, edges)
    every = np.column_stack([y, table])
    np.testing.assert_allclose(found.total, (every - np.median(y)).sum(axis=0))
    np.testing.assert_array_equal(found.zeros, (every == 0.0).sum(axis=0))
    np.testing.assert_array_equal(found.highest, every.max(axis=0))
    np.testing.assert_array_equal(found.lowest, every.min(axis=0))
    np.testing.assert_array_equal(found.histogram.sum(axis=1), 20_000)
    shares = np.array([0.05, 0.5, 0.95])
    exact = np.quantile(every, shares, axis=0, method="inverted_cdf" if whole else "linear").T
    atol = 0.0 if whole else np.diff(edges)[0]
    np.testing.assert_allclose(quantiles(found, edges, shares), exact, atol=atol)


def test_counts_weigh_rows():
    y, counts = np.array([0.0, 1.0, 5.0]), np.array([2.0, 0.0, 3.0])
    found: ReplicateSums = asked(y, y[:, None], edges_of(y), counts)
    assert found.weight == 5.0 and found.zeros[0] == 2.0
    np.testing.assert_allclose(found.total / found.weight + 1.0, 3.0)


def counts_of_rows(num_rows=4000):
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=num_rows), np.ones(num_rows)])
    rate = np.exp(X @ [0.4, 1.0])
    return X, rng.poisson(rate).astype(float), rng.poisson(rate * rng.gamma(0.8, 1.25, num_rows))


def test_a_right_model_passes_and_a_wrong_one_does_not():
    X, right, wrong = counts_of_rows()
    model = cb.PoissonRegression(link="log", prior=cb.Normal(0.0, 2.0))
    coreset = cb.build(model, (X, right), size=12)
    found = cb.check(coreset, (X, right))
    assert found.suspicious == () and "look like the 4,000 rows" in str(found)
    shares = found.shares
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(shares[0], shares[1:].mean(axis=0), atol=0.02)
    coreset = cb.build(model, (X, wrong.astype(float)), size=12)
    found = cb.check(coreset, (X, wrong.astype(float)))
    named = {one.name: one for one in found.suspicious}
    assert named["share of zeros"].p == 0.0 and named["standard deviation"].p == 0.0
    assert named["share of zeros"].observed == pytest.approx(np.mean(wrong == 0))
    assert "mean" not in named
    assert "share of zeros" in found.verdict and "share of zeros" in found._repr_html_()


def test_executors_and_layouts_give_the_same(tmp_path):
    X, y, _ = counts_of_rows()
    frame = pd.DataFrame(X, columns=["a", "one"]).assign(y=y)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=1000)
    model = cb.PoissonRegression(link="log", prior=cb.Normal(0.0, 2.0))
    coreset = cb.build(model, frame, target="y", size=12)
    one = cb.check(coreset, frame, num_draws=50)
    other = cb.check(coreset, tmp_path / "rows.parquet", num_draws=50)
    assert one.statistics[0].observed == other.statistics[0].observed
    assert abs(one.statistics[0].p - other.statistics[0].p) < 0.3


@pytest.mark.parametrize(
    "family",
    [
        cb.LogisticRegression,
        cb.ProbitRegression,
        pytest.param(cb.CloglogRegression, marks=pytest.mark.slow),
    ],
)
def test_labels_of_minus_one_and_one_are_labels(family):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=1000), np.ones(1000)])
    y = np.where(rng.random(1000) < 1 / (1 + np.exp(-X[:, 0] - 0.5)), 1.0, -1.0)
    model = family(prior=cb.Normal(0.0, 2.0))
    found = cb.check(cb.build(model, (X, y), size=6), (X, y))
    assert [one.name for one in found.statistics] == ["mean", "share of zeros"]
    assert found.statistics[0].observed == pytest.approx(np.mean(y > 0))
    assert found.suspicious == ()


def test_the_picture_shows_data_and_replicates():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 2))
    y = rng.poisson(np.exp(0.4 * X[:, 0])).astype(float)
    coreset = cb.build(cb.PoissonRegression(), (X, y), size=20, seed=0, progress=False)
    found = cb.check(coreset, (X, y), num_draws=50, seed=0)
    axes = found.plot()
    bins = found.bins
    # Counts: bins are the numbers 0, 1, …, and heights roots of shares.
    assert bins.roots
    places = np.flatnonzero(bins.places == 0.0)
    assert bins.data[places[0]] ** 2 == pytest.approx(np.mean(y == 0.0))
    shown = axes.lines[0].get_ydata()
    np.testing.assert_array_equal(shown, bins.data)
    assert axes.get_ylabel() == "√ share of rows"
    pyplot.close(axes.figure)
