"""Decoded shards that stay in memory: how many, for how long, and that nothing else changes."""

import gc
import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corebayes as cb
from corebayes.data import decoded
from corebayes.data.watch import ChangedDataError
from corebayes.scan.every_row import Counts
from tests.problems import coins

NUM_ROWS, SHARD = 200_000, 50_000


@pytest.fixture(autouse=True)
def empty_room(monkeypatch):
    monkeypatch.setattr(decoded, "_room", decoded._Room())


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(NUM_ROWS, 2))
    y = coins(rng, X @ [1.0, -0.5]).astype(float)
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": y}), path, row_group_size=SHARD)
    return str(path)


def passes(rows, number=2):
    """What so many passes over rows decode that were read often enough to stay."""
    for _ in range(decoded.PASSING):
        rows.ask(Counts())
    before = rows.meter.rows_decoded
    for _ in range(number):
        assert np.concatenate(rows.ask(Counts())).sum() == NUM_ROWS
    return rows.meter.rows_decoded - before


def test_what_fits_is_decoded_three_times_and_given_back_at_the_end(file):
    rows = cb.open(file, target="y").check()
    rows.ask(Counts())
    assert decoded._room.taken == 0
    assert passes(rows) == 0
    assert decoded._room.taken == NUM_ROWS * 3 * 8
    rows.take(np.arange(0, NUM_ROWS, 3))
    assert rows.meter.rows_decoded == 3 * NUM_ROWS
    del rows
    gc.collect()
    assert decoded._room.taken == 0


def test_the_first_shards_stay_and_others_are_read_again(file, monkeypatch):
    monkeypatch.setattr(decoded, "MOST_BYTES", int(2.5 * SHARD * 24))
    rows, other = cb.open(file, target="y"), cb.open(file, target="y")
    # Threads may finish the shards in another order, but two of them fit.
    assert passes(rows) == 2 * (NUM_ROWS - 2 * SHARD)
    # The room is one for all.
    assert passes(other) == 2 * NUM_ROWS


def test_results_are_the_same_to_the_bit(file, monkeypatch):
    model, rows = cb.LogisticRegression(prior=cb.Normal()), cb.open(file, target="y")
    assert passes(rows) == 0
    stay = cb.build(model, rows, size=15)
    monkeypatch.setattr(decoded, "MOST_BYTES", 0)
    again = cb.build(model, file, target="y", size=15)
    assert np.array_equal(stay.indices, again.indices)
    assert np.array_equal(stay.weights, again.weights)
    assert stay.provenance["rows_decoded"] == 0 < again.provenance["rows_decoded"]


def test_with_a_budget_nothing_stays(file):
    rows = cb.open(file, target="y", memory="1GB")
    assert passes(rows) == 2 * NUM_ROWS and decoded._room.taken == 0
    # Nor what stayed before there was one.
    rows = cb.open(file, target="y")
    assert passes(rows) == 0 < decoded._room.taken
    assert passes(rows.using(memory="1GB")) == 2 * NUM_ROWS and decoded._room.taken == 0


def test_a_file_that_changes_is_noticed_all_the_same(file, tmp_path):
    path = shutil.copy(file, tmp_path / "rows.parquet")
    rows = cb.open(path, target="y")
    assert passes(rows) == 0
    os.utime(path, ns=(1, 1))
    with pytest.raises(ChangedDataError, match="it was written to"):
        rows.ask(Counts())


def test_dropped_rows_and_formulas_stay_as_well(file, tmp_path):
    table = pq.read_table(file).to_pydict()
    table["a"][7] = float("nan")
    pq.write_table(pa.table(table), tmp_path / "bad.parquet", row_group_size=SHARD)
    with pytest.warns(UserWarning, match="left out"):
        rows = cb.open(tmp_path / "bad.parquet", target="y", on_bad="drop").check()
    for _ in range(decoded.PASSING):
        rows.ask(Counts())
    before = rows.meter.rows_decoded
    assert np.concatenate(rows.ask(Counts())).sum() == NUM_ROWS - 1
    assert rows.meter.rows_decoded == before


def test_what_next_to_nothing_unpacks_to_does_not_stay(tmp_path):
    table = pa.table({"a": np.zeros(NUM_ROWS), "b": np.zeros(NUM_ROWS), "y": np.zeros(NUM_ROWS)})
    pq.write_table(table, tmp_path / "zeros.parquet", compression="zstd")
    rows = cb.open(tmp_path / "zeros.parquet", target="y")
    assert passes(rows) == 2 * NUM_ROWS and decoded._room.taken == 0
