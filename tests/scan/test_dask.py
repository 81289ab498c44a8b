"""A real Dask cluster of two processes: the bits of one process, whatever happens to a worker."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest

import corebayes as cb
from corebayes.data.watch import ChangedDataError
from corebayes.rows import open_rows
from corebayes.scan.dask import LARGEST_PARCEL, _tasks
from corebayes.scan.dispatch import ShardError
from corebayes.scan.inline import Inline
from corebayes.scan.passes import Shard
from corebayes.scan.query import BadPotentialError, BestRows
from tests.opened import scan

from .trouble import NUM_ROWS, ROW, ColumnSums, Trouble, make_files, same_bits

# Starting and closing a cluster leaves sockets to the garbage collector.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]

SHARD = r"shard 3 of 6 \(rows 32,768 to 49,151\) failed"
SUMS = ColumnSums()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("rows"))


@pytest.fixture(scope="module")
def data(files):
    return files[0]


@pytest.fixture(scope="module")
def expected(data):
    return scan(SUMS, data, Inline())


@contextmanager
def local_client(allowed_failures=3):
    import dask.config
    from distributed import Client, LocalCluster

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": allowed_failures}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client():
    with local_client() as client:
        yield client


def test_the_cluster_gives_the_bits_of_one_process(files, client):
    data, totals = files
    executor = cb.dask(client)
    expected = scan(totals, data, Inline())
    assert same_bits(scan(totals, data, executor), expected)
    rows = np.sort(np.random.default_rng(1).choice(NUM_ROWS, 5000, replace=False))
    assert same_bits(scan(totals, data, executor, rows), scan(totals, data, Inline(), rows))
    best = BestRows(totals.space, expected.total, 20, np.array([5, 77]))
    ours, theirs = scan(best, data, executor), scan(best, data, Inline())
    assert np.array_equal(ours.points.indices, theirs.points.indices)
    assert np.array_equal(ours.scores, theirs.scores)


def test_data_in_memory_is_scattered(client):
    X = np.random.default_rng(0).normal(size=(100_000, 3))
    assert X.nbytes > LARGEST_PARCEL
    data = open_rows((X, X[:, 0]))
    assert same_bits(scan(SUMS, data, cb.dask(client)), scan(SUMS, data, Inline()))


def test_a_worker_killed_in_the_middle_of_a_pass(data, expected, client, tmp_path):
    trouble = Trouble(SUMS, tmp_path, "signal SIGKILL")
    assert same_bits(scan(trouble, data, cb.dask(client, deadline=60.0)), expected)
    assert len(trouble.process_ids()) == 1


def test_many_shards_go_several_at_a_time_and_none_is_lost(client, tmp_path):
    client.wait_for_workers(2, timeout=30)
    X = (
        np.random.default_rng(2).normal(size=(40 * 16_384, 1))
        * np.exp(np.arange(40 * 16_384) / 1e5)[:, None]
    )
    data = open_rows((X, X[:, 0]))
    assert data.num_shards == 40
    trouble = Trouble(SUMS, tmp_path, "signal SIGKILL")
    found = scan(trouble, data, cb.dask(client, deadline=60.0))
    assert same_bits(found, scan(SUMS, data, Inline()))
    assert len(trouble.process_ids()) == 1


@pytest.mark.parametrize("num_shards, sizes", [(1, [1]), (31, 31 * [1]), (77, 19 * [4] + [1])])
def test_tasks_have_several_shards_only_if_all_threads_have_many(num_shards, sizes):
    shards = [Shard(10 * k, 10 * k + 10) for k in range(num_shards)]
    tasks = _tasks(shards, num_threads=2)
    assert [len(task.shards) for task in tasks] == sizes
    assert [shard for task in tasks for shard in task.shards] == shards
    assert str(tasks[-1]) == f"rows {10 * num_shards - 10:,} to {10 * num_shards - 1:,}"


def test_an_exception_of_the_model_is_raised_at_once_and_unchanged(
    data, expected, client, tmp_path
):
    trouble = Trouble(SUMS, tmp_path, "error", times=99)
    executor = cb.dask(client)
    with pytest.raises(BadPotentialError) as caught:
        scan(trouble, data, executor)
    assert caught.value.row == ROW and len(trouble.process_ids()) == 1
    assert same_bits(scan(SUMS, data, executor), expected)


def test_a_disk_that_comes_back_and_one_that_does_not(data, expected, client, tmp_path):
    executor = cb.dask(client)
    trouble = Trouble(SUMS, tmp_path, "disk", times=2)
    assert same_bits(scan(trouble, data, executor), expected)
    for file in tmp_path.iterdir():
        file.unlink()
    always = Trouble(SUMS, tmp_path, "disk", times=99)
    with pytest.raises(ShardError, match=f"{SHARD} 3 times: the disk is away"):
        scan(always, data, executor)
    assert len(always.process_ids()) == 3


def test_a_file_that_changed_is_refused_by_the_workers(client, tmp_path):
    data, _ = make_files(tmp_path)
    content = np.load(tmp_path / "y.npy")
    np.save(tmp_path / "y.npy", ~content)
    with pytest.raises(ChangedDataError, match=r"y.npy changed since the data was opened"):
        scan(SUMS, data, cb.dask(client))


def test_a_stopped_worker_is_noticed_at_its_deadline(data, expected, client, tmp_path):
    client.wait_for_workers(2, timeout=30)
    scan(SUMS, data, cb.dask(client))
    executor = cb.dask(client, deadline=3.0)
    trouble = Trouble(SUMS, tmp_path, "signal SIGSTOP")
    began = time.monotonic()
    try:
        assert same_bits(scan(trouble, data, executor), expected)
        assert 3.0 < time.monotonic() - began < 6.0
        # The worker is still there and still stopped, but no longer counted on.
        began = time.monotonic()
        assert same_bits(scan(SUMS, data, executor), expected)
        assert time.monotonic() - began < 3.0
    finally:
        for process_id in trouble.process_ids():
            os.kill(process_id, signal.SIGKILL)


def test_a_build_on_a_cluster_by_its_address(files, client):
    data, _ = files
    client.wait_for_workers(2, timeout=30)
    executor = cb.dask(client.scheduler.address)
    with executor.client:
        found = cb.build(
            cb.LogisticRegression(prior=cb.Normal()), data, size=8, seed=5, executor=executor
        )
    expected = cb.build(cb.LogisticRegression(prior=cb.Normal()), data, size=8, seed=5)
    assert np.array_equal(found.indices, expected.indices)
    assert np.array_equal(found.weights, expected.weights)


def test_a_shard_that_kills_every_worker_is_named(data, tmp_path):
    trouble = Trouble(SUMS, tmp_path, "signal SIGKILL", times=99)
    # A cluster of its own, since few workers survive; one death of a worker is forgiven.
    with local_client(allowed_failures=1) as client:
        executor = cb.dask(client, deadline=60.0)
        with pytest.raises(ShardError, match=f"{SHARD} 2 times: .* worker that took it died"):
            scan(trouble, data, executor)


def test_what_is_no_client_and_a_missing_library(monkeypatch):
    with pytest.raises(TypeError, match=r"takes a distributed.Client or the address"):
        cb.dask(3)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"corebayes\[cluster\]"):
        cb.dask("tcp://127.0.0.1:1")
