"""The pass: every row once, in order, in bounded memory, whatever the layout."""

import tracemalloc
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corebayes as cb
from corebayes.rows import open_rows
from corebayes.scan.inline import Inline
from corebayes.scan.query import BadPotentialError, BestRows, Totals
from corebayes.tangent.monte_carlo import MonteCarloSpace
from tests.opened import scan, table

NOTHING = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class RowNumbers:
    """A query whose answer is the list of rows it saw."""

    block_rows = 512

    def answer(self, block, numbers):
        assert len(block) == len(numbers) <= 512
        assert np.array_equal(block.X[:, 0], numbers)
        return numbers.tolist()

    def merge(self, first, second):
        return first + second


def numbered(num_rows, shard_rows):
    return replace(table(open_rows(np.arange(float(num_rows)))), shard_rows=shard_rows)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 3000), st.integers(1, 1500), st.integers(1, 3))
def test_every_row_once_and_in_order(num_rows, shard_rows, threads):
    seen = scan(RowNumbers(), numbered(num_rows, shard_rows), Inline(threads=threads))
    assert seen == list(range(num_rows))


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 3000), st.integers(1, 1500), st.data())
def test_only_the_rows_asked_for(num_rows, shard_rows, data):
    rows = data.draw(st.lists(st.integers(0, num_rows - 1), min_size=1, unique=True))
    rows = np.sort(np.array(rows))
    seen = scan(RowNumbers(), numbered(num_rows, shard_rows), Inline(), rows)
    assert seen == rows.tolist()


class Tasks:
    """An executor that remembers the rows of every task."""

    def __init__(self):
        self.tasks = []

    def map(self, work, shards):
        for shard in shards:
            if shard.rows is not None:
                self.tasks.append(shard.rows.tolist())
            yield work(shard)


def test_few_rows_of_many_shards_are_one_task_unless_files_are_read_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr("corebayes.scan.scan.GATHERED_ROWS", 3)
    monkeypatch.setattr("corebayes.rows.RESERVE_ROWS", 0)
    monkeypatch.setattr("corebayes.data.parquet_files.PART_ROWS", 20)
    rows = np.array([1, 5, 40, 41, 77, 78])
    pq.write_table(pa.table({"x": np.arange(100.0)}), tmp_path / "x.parquet", row_group_size=20)
    in_memory, in_file = Tasks(), Tasks()
    for data, executor in (
        (numbered(100, 10), in_memory),
        (open_rows(tmp_path / "x.parquet"), in_file),
    ):
        assert scan(RowNumbers(), data, executor, rows) == rows.tolist()
    assert in_memory.tasks == [[1, 5, 40], [41, 77, 78]]
    assert in_file.tasks == [[1, 5], [40, 41], [77, 78]]


def logistic(num_rows, dim=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(num_rows, dim))
    data = open_rows((X, rng.uniform(size=num_rows) < 0.4))
    return data, cb.LogisticRegression(prior=cb.Normal()).bind(data)


def test_memory_does_not_grow_with_rows_times_draws():
    data, model = logistic(200_000)
    space = MonteCarloSpace(model, np.random.default_rng(1).normal(size=(200, 3)))
    best = BestRows(space, np.random.default_rng(2).normal(size=200), 10, NOTHING)
    scan(Totals(space), data, Inline())
    tracemalloc.start()
    scan(Totals(space), data, Inline())
    scan(best, data, Inline())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6, "the N × S matrix would be 320 MB"


@pytest.mark.parametrize("shard_rows", [100, 700, 16_384])
def test_best_rows_do_not_depend_on_the_layout(shard_rows):
    data, model = logistic(2_000)
    space = MonteCarloSpace(model, np.random.default_rng(1).normal(size=(30, 3)))
    query = BestRows(space, np.random.default_rng(2).normal(size=30), 25, np.array([5, 77]))
    expected = scan(query, data, Inline())
    best = scan(query, replace(table(data), shard_rows=shard_rows), Inline())
    assert np.array_equal(best.points.indices, expected.points.indices)
    assert np.allclose(best.scores, expected.scores, rtol=1e-12)
    assert np.all(np.diff(best.scores) <= 0.0)


def test_ties_go_to_the_first_row():
    data = open_rows((np.ones((1500, 1)), np.ones(1500)))
    space = MonteCarloSpace(
        cb.LogisticRegression(prior=cb.Normal()).bind(data), np.linspace(-1, 1, 9)[:, None]
    )
    query = BestRows(space, np.linspace(-1, 1, 9), 3, np.array([1]))
    assert scan(query, data, Inline()).points.indices.tolist() == [0, 2, 3]


def test_fewer_rows_than_asked_for():
    data, model = logistic(4)
    space = MonteCarloSpace(model, np.random.default_rng(1).normal(size=(30, 3)))
    query = BestRows(space, np.ones(30), 10, np.array([0, 3]))
    assert sorted(scan(query, data, Inline()).points.indices.tolist()) == [1, 2]


def test_a_bad_potential_names_its_row():
    def log_likelihood(draws, block):
        return np.where(block.X[:, :1] == 1234.0, np.inf, 1.0) * draws[:, 0]

    data = open_rows(np.arange(2000.0))
    model = cb.CustomModel(log_likelihood, lambda draws: -(draws[:, 0] ** 2), 1)
    space = MonteCarloSpace(model, np.linspace(1.0, 2.0, 5)[:, None])
    with pytest.raises(BadPotentialError, match="row 1234"):
        scan(Totals(space), data, Inline())
