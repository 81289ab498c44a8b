"""A run taken up again: the same bits, no row asked twice, and refused when it is another run."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

import corebayes as cb
from corebayes.checkpoint import journal
from corebayes.checkpoint.journal import open_journal
from corebayes.data.checks import Checking
from corebayes.files import atomic
from corebayes.rows import open_rows
from corebayes.scan import passes
from corebayes.scan.inline import Inline
from corebayes.scan.query import BadPotentialError
from tests.contract.cases import CONSTRUCTIONS, MODELS, UPDATES
from tests.opened import scan
from tests.scan.trouble import ColumnSums

CASES = {case.name: case for case in MODELS}


@pytest.fixture
def no_passes(monkeypatch):
    """From now on every pass is an error but the one that checks the rows."""
    original = passes.Pass.__call__

    def forbid():
        def answer(self, shard, **options):
            if isinstance(self.query, Checking):
                return original(self, shard, **options)
            raise AssertionError("a pass over rows whose answer is known")

        monkeypatch.setattr(passes.Pass, "__call__", answer)

    return forbid


def same_bits(first, second):
    assert np.array_equal(first.indices, second.indices)
    assert first.weights.tobytes() == second.weights.tobytes()
    assert first.reason == second.reason
    for one, other in zip(first.trace, second.trace, strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}
    assert first.provenance["passes"] == second.provenance["passes"]


OTHERS = [
    ("linear", "annealed"),
    ("linear", "giga"),
    ("gaussian", "sparse-vi"),
    ("custom", "pursuit"),
]


# Ways to move the weights of one construction, which ask for nothing that others do not.
REPEATED = [f"sparse-vi-{name}" for name, _ in UPDATES if name != "adam"]
REPLAYED = [
    pytest.param(
        CASES[name],
        method[1],
        id=f"{name}-{method[0]}",
        marks=pytest.mark.slow if method[0] in REPEATED else (),
    )
    for method in CONSTRUCTIONS
    for name in CASES
    if name == "logistic" or (name, method[0]) in OTHERS
]


@pytest.mark.parametrize(("case", "method"), REPLAYED)
def test_every_construction_is_rebuilt_from_its_answers_alone(case, method, tmp_path, no_passes):
    data = case.data()

    def call(**options):
        return cb.build(case.model, data, size=5, seed=2, method=method, **options)

    plain = call()
    recorded = call(checkpoint=tmp_path)
    no_passes()
    again = call(checkpoint=tmp_path)
    same_bits(recorded, plain)
    same_bits(again, plain)


def test_a_path_is_rebuilt_too(rows, tmp_path, no_passes):
    def call():
        return cb.build_path(
            cb.LogisticRegression(prior=cb.Normal()), rows, sizes=[4, 9], checkpoint=tmp_path
        )

    first = call()
    no_passes()
    for one, other in zip(first, call(), strict=True):
        same_bits(one, other)


class Stumbling:
    """A query that fails at a row the first time."""

    def __init__(self, row):
        self.inner, self.row, self.rows, self.left = ColumnSums(), row, 0, 1
        self.block_rows = self.inner.block_rows

    def answer(self, block, numbers):
        if self.left and numbers[0] <= self.row <= numbers[-1]:
            self.left = 0
            raise KeyboardInterrupt
        self.rows += len(block)
        return self.inner.answer(block, numbers)

    def merge(self, first, second):
        return self.inner.merge(first, second)


@pytest.fixture
def stored(tmp_path):
    """90,000 rows in six shards."""
    rng = np.random.default_rng(3)
    np.save(tmp_path / "X.npy", rng.normal(size=(90_000, 3)))
    np.save(tmp_path / "y.npy", rng.normal(size=90_000))
    return open_rows((tmp_path / "X.npy", tmp_path / "y.npy"))


def test_an_interrupted_pass_goes_on_after_its_last_shard(stored, tmp_path):
    stumbling = Stumbling(row=70_000)
    with (
        pytest.raises(KeyboardInterrupt),
        open_journal(tmp_path / "c", {}) as log,
    ):
        scan(stumbling, stored, Inline(threads=1), log=log)
    read = stumbling.rows
    with open_journal(tmp_path / "c", {}) as log:
        answer = scan(stumbling, stored, Inline(threads=1), log=log)
    # Only the shard that was under way, rows 65,536 to 81,919, is read again.
    assert stumbling.rows - read == 90_000 - 65_536
    expected = scan(ColumnSums(), stored, Inline(threads=2))
    assert all(np.array_equal(a, b) for a, b in zip(answer, expected, strict=True))
    X = stored.take(np.arange(90_000)).X
    assert np.allclose(answer[0], X.T @ X, rtol=1e-12)


def test_a_pass_that_fails_is_counted_as_one(stored, tmp_path):
    """A construction may know how to go on from an error; so must its second run."""

    class Bad(ColumnSums):
        def answer(self, block, numbers):
            raise BadPotentialError(3)

    def run():
        with open_journal(tmp_path / "c", {}) as log:
            with pytest.raises(BadPotentialError):
                scan(Bad(), stored, Inline(), log=log)
            return scan(ColumnSums(), stored, Inline(), log=log)

    first, second = run(), run()
    assert np.array_equal(first[0], second[0])


def test_large_answers_are_asked_again(stored, tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "LARGEST_ANSWER", 100)
    for _ in range(2):
        stumbling = Stumbling(row=-1)
        with open_journal(tmp_path / "c", {}) as log:
            scan(stumbling, stored, Inline(), log=log)
        assert stumbling.rows == 90_000
    assert sum(path.stat().st_size for path in (tmp_path / "c").iterdir()) < 2000


def test_many_answers_move_to_files_that_are_written_once(rows, tmp_path, monkeypatch, no_passes):
    monkeypatch.setattr(journal, "SEGMENT_BYTES", 2000)
    monkeypatch.setattr(journal, "SHARE_OF_TIME", 0.0)

    def call():
        return cb.build(
            cb.LogisticRegression(prior=cb.Normal()),
            rows,
            size=5,
            method=cb.SparseVI(),
            checkpoint=tmp_path,
        )

    first = call()
    assert len(list(tmp_path.glob("answers-*"))) > 3
    assert max(path.stat().st_size for path in tmp_path.iterdir()) < 8000
    no_passes()
    same_bits(call(), first)


@pytest.mark.parametrize("damaged", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_a_damaged_file_of_older_answers_costs_only_what_comes_after(
    rows, tmp_path, monkeypatch, damaged
):
    monkeypatch.setattr(journal, "SEGMENT_BYTES", 2000)
    monkeypatch.setattr(journal, "SHARE_OF_TIME", 0.0)

    def call():
        return cb.build(
            cb.LogisticRegression(prior=cb.Normal()),
            rows,
            size=5,
            method=cb.SparseVI(),
            checkpoint=tmp_path,
        )

    first = call()
    path = sorted(tmp_path.glob("answers-*"), key=os.path.getmtime)[damaged]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.warns(UserWarning, match="does not match its hash"):
        second = call()
    same_bits(second, first)


def test_another_turn_is_noticed_and_the_answers_after_it_are_not_used(stored, tmp_path):
    def run(block_rows):
        stumbling = Stumbling(row=-1)
        with open_journal(tmp_path / "c", {}) as log:
            first = scan(ColumnSums(), stored, Inline(), log=log)
            stumbling.block_rows = block_rows
            second = scan(stumbling, stored, Inline(), log=log)
            return first, second, stumbling.rows

    run(1000)
    assert run(1000)[2] == 0
    with pytest.warns(UserWarning, match="pass 2 is done again"):
        assert run(500)[2] == 90_000
    assert run(500)[2] == 0


@pytest.mark.parametrize(
    ("operation", "nth"),
    [
        ("replace", 2),
        *(pytest.param("fsync", nth, marks=pytest.mark.slow) for nth in (1, 2, 5)),
        *(pytest.param("replace", nth, marks=pytest.mark.slow) for nth in (1, 5)),
    ],
)
def test_a_full_disk_at_any_write_costs_only_the_checkpoint(
    rows, tmp_path, monkeypatch, operation, nth
):
    call = {"size": 4, "method": cb.SparseVI(), "checkpoint": tmp_path}
    plain = cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, size=4, method=cb.SparseVI())
    monkeypatch.setattr(journal, "SHARE_OF_TIME", 0.0)
    done = getattr(os, operation)
    calls = [0]

    def fill_up(*arguments):
        # Folders are synced as well; files are what matters here.
        calls[0] += 1
        if calls[0] >= nth:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return done(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(atomic.os, operation, fill_up)
        with pytest.warns(UserWarning, match=r"cannot be written.*No space") as warned:
            coreset = cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, **call)
    assert len(warned) == 1
    same_bits(coreset, plain)
    assert not list(tmp_path.glob(".*.tmp"))
    same_bits(cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, **call), plain)


def test_a_disk_without_room_for_a_folder_is_a_warning(rows, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.warns(UserWarning, match="disk is full"):
        coreset = cb.build(
            cb.LogisticRegression(prior=cb.Normal()),
            rows,
            size=5,
            method=cb.Uniform(),
            checkpoint=tmp_path / "c",
        )
    assert coreset.size == 5


def test_another_engine_may_take_over(rows, tmp_path, no_passes):
    call = {"size": 6, "method": cb.SparseVI(), "checkpoint": tmp_path}
    first = cb.build(
        cb.LogisticRegression(prior=cb.Normal()), rows, executor=Inline(threads=1), **call
    )
    no_passes()
    same_bits(
        cb.build(
            cb.LogisticRegression(prior=cb.Normal()), rows, executor=Inline(threads=3), **call
        ),
        first,
    )
