"""Updates and merges on workers, and after a kill: the bits of one process that nothing befell."""

import multiprocessing
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

import corebayes as cb
from tests.compose import killed
from tests.compose.rows import MODEL, kl, piece

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["tests.compose.killed"])


def ran(folder, num_shards):
    process = context.Process(target=killed.run, args=(folder, num_shards))
    process.start()
    process.join(120)
    return process.exitcode


def same(first, second):
    return np.array_equal(first.indices, second.indices) and (
        first.weights.tobytes() == second.weights.tobytes()
    )


@pytest.mark.slow
def test_an_update_goes_on_after_kills_in_every_stage(tmp_path):
    first = killed.first(tmp_path)
    expected = cb.update(first, killed.night(), size=12, seed=3)
    stages = list[int]()
    # What is in the checkpoint is not asked again, so every run comes further.
    while ran(tmp_path, 10) == -9:
        assert not (tmp_path / "grown.parquet").exists() and len(stages) < 50
        stages.append(len(list((tmp_path / "kept").glob("*"))))
    assert len(stages) > 2 and len(set(stages)) > 1, "killed too late to show anything"
    grown = cb.load(tmp_path / "grown.parquet")
    assert same(grown, expected)
    assert np.array_equal(grown.reserve.weights, expected.reserve.weights)


def test_a_merge_goes_on_from_its_checkpoint(tmp_path):
    parts = [cb.build(MODEL, piece(seed, 2000), size=12, seed=0) for seed in range(3)]
    expected = cb.merge(parts, size=12, reserve=20)
    for _ in range(2):
        kept = cb.merge(parts, size=12, reserve=20, checkpoint=tmp_path / "kept")
        assert same(kept, expected)
    with pytest.raises(cb.CheckpointError, match="is of another run"):
        cb.merge(parts[:2], size=12, reserve=20, checkpoint=tmp_path / "kept")


@pytest.mark.slow
def test_an_update_on_processes():
    coreset = cb.build(MODEL, piece(0), size=12, reserve=34, seed=0)
    expected = cb.update(coreset, killed.night(), size=12, seed=3)
    with cb.processes(2) as executor:
        assert same(
            cb.update(coreset, killed.night(), size=12, seed=3, executor=executor), expected
        )


@contextmanager
def local_client():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_tree_on_a_cluster():
    """Shards are built where they lie, in two rounds, and what travels is coresets."""
    pytest.importorskip("distributed")
    X, y = piece(11, 24_000)
    shards = list(zip(np.array_split(X, 8), np.array_split(y, 8), strict=True))
    names = [f"site-{k}" for k in range(8)]
    with local_client() as client:
        rough = client.gather(client.map(partial(cb.build, MODEL, size=12, progress=False), shards))
        pilot = cb.merge(rough, size=12, reserve=0)
        ready = partial(cb.build, MODEL, size=12, around=pilot, progress=False)
        parts = client.map(ready, shards)
        nodes = [
            client.submit(cb.merge, parts[k : k + 4], names=names[k : k + 4], around=pilot, size=12)
            for k in (0, 4)
        ]
        root = client.submit(cb.merge, nodes, size=12).result()
        coreset = cb.build(MODEL, piece(0), size=12, reserve=34, seed=0)
        expected = cb.update(coreset, killed.night(), size=12, seed=3)
        grown = cb.update(coreset, killed.night(), size=12, seed=3, executor=cb.dask(client))
    here = [cb.build(MODEL, shard, size=12, around=pilot) for shard in shards]
    level = [
        cb.merge(here[k : k + 4], names=names[k : k + 4], around=pilot, size=12) for k in (0, 4)
    ]
    assert same(root, cb.merge(level, size=12))
    assert kl(root, (X, y)) < 1e-4 and same(grown, expected)
