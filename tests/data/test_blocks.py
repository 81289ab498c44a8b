"""Streams of blocks: read in order, found again by number, and the same every time."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pyarrow as pa
import pytest

import corebayes as cb
from corebayes.data.blocks import NUM_KEPT
from corebayes.data.watch import ChangedDataError
from corebayes.scan.inline import Inline
from tests.opened import checked, read, scan, shards, table

NUM_ROWS = 100_000
X = np.random.default_rng(0).normal(size=(NUM_ROWS, 2))
Y = np.random.default_rng(1).random(NUM_ROWS) < 1 / (1 + np.exp(-X @ [1.0, -0.5]))
# Uneven blocks, some empty, one longer than a shard.
CUTS = [0, 100, 100, 7_000, 30_000, 49_999, 90_000, 90_001, NUM_ROWS]


class Blocks:
    """Counts how often it is read."""

    def __init__(self):
        self.num_readings = 0
        self.num_blocks = 0

    def __iter__(self):
        self.num_readings += 1
        for start, stop in itertools.pairwise(CUTS):
            self.num_blocks += 1
            yield X[start:stop], Y[start:stop]


def generate():
    return iter(Blocks())


class RowNumbers:
    block_rows = 512

    def answer(self, block, numbers):
        assert np.array_equal(block.X, X[numbers])
        return numbers.tolist()

    def merge(self, first, second):
        return first + second


@pytest.mark.parametrize("source", [Blocks(), generate], ids=["object", "function"])
def test_rows_are_those_of_the_arrays(source):
    data, expected = checked(source), checked((X, Y))
    assert (data.num_rows, data.total_count) == (NUM_ROWS, NUM_ROWS)
    assert [stop for _, stop in shards(data)] == [30_000, 49_999, 90_000, NUM_ROWS]
    rows = np.array([99_999, 5, 31_000, 5, 0])
    for block, other in [
        (read(data, 0, NUM_ROWS), read(expected, 0, NUM_ROWS)),
        (read(data, 29_990, 50_010), read(expected, 29_990, 50_010)),
        (data.take(rows), expected.take(rows)),
        (data.take(rows[:0]), expected.take(rows[:0])),
    ]:
        np.testing.assert_array_equal(block.X, other.X)
        np.testing.assert_array_equal(block.y, other.y)
    assert scan(RowNumbers(), data, Inline(threads=3)) == list(range(NUM_ROWS))
    asked = np.arange(3, NUM_ROWS, 777)
    assert scan(RowNumbers(), data, Inline(threads=2), asked) == asked.tolist()


def test_a_pass_reads_the_stream_once():
    blocks = Blocks()
    data = checked(blocks)
    # Lengths and hashes, then the values.
    assert blocks.num_readings == 2
    for passes in (3, 4):
        scan(RowNumbers(), data, Inline(threads=2))
        assert blocks.num_readings <= passes
    data.take(np.array([99_999, 100, 50_000]))
    assert blocks.num_readings <= 5
    assert len(table(data).source._reader.kept) <= NUM_KEPT


def test_a_build_is_the_build_from_memory():
    options = {"size": 8, "seed": 2}
    expected = cb.build(cb.LogisticRegression(prior=cb.Normal()), (X, Y), **options)
    found = cb.build(cb.LogisticRegression(prior=cb.Normal()), generate, **options)
    assert np.array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-6)


def test_blocks_may_be_tables_with_counts():
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": Y, "n": np.arange(NUM_ROWS) % 3})

    def tables():
        return (table.slice(start, 30_000) for start in range(0, NUM_ROWS, 30_000))

    data = checked(tables, target="y", features=["b", "a"], counts="n")
    expected = checked(table, target="y", features=["b", "a"], counts="n")
    assert data.column_names == ("b", "a") and data.target_name == "y"
    assert data.total_count == expected.total_count
    rows = np.array([70_000, 1])
    np.testing.assert_array_equal(data.take(rows).X, expected.take(rows).X)
    np.testing.assert_array_equal(data.take(rows).counts, expected.take(rows).counts)


def test_bad_values_are_named_or_dropped():
    def blocks():
        for start in range(0, 50_000, 10_000):
            block = X[start : start + 10_000].copy()
            if start == 30_000:
                block[4321, 1] = np.inf
            yield block

    with pytest.raises(ValueError, match="row 34321, column 1 of X is inf; 1 of 50,000 rows"):
        checked(blocks)
    with pytest.warns(UserWarning, match="1 of 50,000 rows"):
        data = checked(blocks, on_bad="drop")
    assert data.total_count == 49_999
    assert data.take(np.array([34_321])).counts.tolist() == [0.0]
    assert data.take(np.array([34_321])).X.tolist() == [[X[34_321, 0], 0.0]]


@pytest.mark.parametrize("how", ["other values", "fewer rows", "more rows at once"])
def test_a_second_reading_must_give_the_same(how):
    readings = []

    def blocks():
        readings.append(None)
        for start in range(0, NUM_ROWS, 20_000):
            block = X[start : start + 20_000]
            if len(readings) > 2 and start == 40_000:
                if how == "fewer rows":
                    return
                block = X[start : start + 25_000] if how == "more rows at once" else block + 1e-9
            yield block

    data = checked(blocks)
    with pytest.raises(ChangedDataError, match=r"read again, at rows 40,000 to 59,999: .* random"):
        scan(RowNumbers(), data, Inline(threads=1))
    assert data.take(np.array([3])).X.tolist() == [X[3].tolist()]


def test_an_error_of_the_stream_is_the_callers_and_does_not_stick():
    trouble = []

    def blocks():
        for start in range(0, NUM_ROWS, 20_000):
            if start == 60_000 and trouble:
                raise OSError(trouble.pop())
            yield X[start : start + 20_000]

    data = checked(blocks)
    trouble.append("the network is down")
    with pytest.raises(OSError, match="the network is down"):
        scan(RowNumbers(), data, Inline(threads=1))
    assert scan(RowNumbers(), data, Inline(threads=1)) == list(range(NUM_ROWS))


def test_what_can_be_read_once_only_is_refused():
    with pytest.raises(TypeError, match="generator can be read only once: pass a function"):
        checked(x for x in [X])
    with pytest.raises(ValueError, match="the data is empty"):
        checked(lambda: iter([]))
    with pytest.raises(ValueError, match="counts of blocks must be a column"):
        checked(generate, counts=np.ones(NUM_ROWS))


@pytest.mark.parametrize("second", [X[:, :1], (X, Y), (X, Y[:5])])
def test_blocks_must_be_alike(second):
    first = X if not isinstance(second, tuple) or len(second[1]) > 5 else (X, Y)
    with pytest.raises(ValueError, match=r"block 1 \(from row 100,000\)"):
        checked(lambda: iter([first, second]))


def test_fingerprint_and_travel():
    data = checked(generate)
    assert data.fingerprint() == checked(Blocks()).fingerprint()
    assert data.fingerprint() != checked(lambda: iter([(X, Y)])).fingerprint()
    copy = pickle.loads(pickle.dumps(data))
    np.testing.assert_array_equal(read(copy, 40_000, 40_009).X, X[40_000:40_009])
