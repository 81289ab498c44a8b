"""Lazy queries: read again in every pass, and what they read is what their tables hold."""

import duckdb
import numpy as np
import polars as pl
import pytest

import corebayes as cb
from corebayes.data.watch import ChangedDataError
from tests.opened import checked, read

NUM_ROWS = 50_000
RNG = np.random.default_rng(0)
FRAME = pl.DataFrame(
    {
        "a": RNG.normal(size=NUM_ROWS),
        "b c": RNG.normal(size=NUM_ROWS),
        "y": (RNG.random(NUM_ROWS) < 0.4).astype(int),
        "name": ["x"] * NUM_ROWS,
    }
)


def lazy():
    return FRAME.lazy().filter(pl.col("a") > -1.0)


def relation():
    table = FRAME.to_arrow()
    return duckdb.connect().from_arrow(table).filter("a > -1.0")


SOURCES = pytest.mark.parametrize("source", [lazy, relation])
COLUMNS = {"target": "y", "features": ["b c", "a"]}


@SOURCES
def test_rows_are_those_of_the_collected_table(source):
    kept = FRAME.filter(pl.col("a") > -1.0)
    rows, expected = checked(source(), **COLUMNS), checked(kept, **COLUMNS)
    assert (rows.num_rows, rows.column_names) == (len(kept), ("b c", "a"))
    for some in (rows, expected):
        block = read(some, 0, len(kept))
        np.testing.assert_array_equal(block.X, kept.select("b c", "a").to_numpy())
        np.testing.assert_array_equal(block.y, kept["y"].to_numpy())
    assert rows.fingerprint() == checked(source(), **COLUMNS).fingerprint()


@SOURCES
def test_a_build_is_that_of_the_table(source):
    kept = FRAME.filter(pl.col("a") > -1.0)
    model = cb.LogisticRegression(intercept=True, prior=cb.Normal())
    found = cb.build(model, source(), size=8, **COLUMNS)
    expected = cb.build(model, kept, size=8, **COLUMNS)
    assert np.array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-6)


def test_a_query_with_random_numbers_is_refused():
    rows = duckdb.sql("select random() as x from range(40000)")
    with pytest.raises(ChangedDataError, match="a query without an order"):
        checked(rows)


@SOURCES
def test_options_are_refused_as_for_tables(source):
    with pytest.raises(ValueError, match="there is no column 'Y'"):
        cb.open(source(), target="Y")
    with pytest.raises(ValueError, match="column 'name' holds"):
        cb.open(source(), target="y")
    with pytest.raises(ValueError, match="one of its columns"):
        cb.open(source(), counts=np.ones(3), **COLUMNS)
