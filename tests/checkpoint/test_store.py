"""The files of a checkpoint: damage is always noticed, and the one before is still there."""

import builtins
import errno
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

from corebayes.checkpoint.store import CheckpointError, Store
from corebayes.files import atomic

HEADER = {"seed": 7}
OLDER = [b"sealed", b"", b"\0" * 300]
FIRST, SECOND = [b"first" * 40], [b"first" * 40, bytes(range(256))]


@pytest.fixture
def folder(tmp_path):
    """Two generations and a file of older records."""
    store = Store(tmp_path)
    segments = [store.seal(OLDER)]
    for records in ([], FIRST, SECOND):
        store.save(HEADER, segments, records)
    store.close()
    return tmp_path


def load(folder):
    """All records, and whether anything was said about it."""
    store = Store(folder)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            saved = store.load()
        assert saved is not None and saved.header == HEADER
        sealed = [record for segment in saved.segments for record in store.read_segment(segment)]
        return sealed + saved.records, bool(warned)
    finally:
        store.close()


def generations(folder):
    return sorted(folder.glob("checkpoint-*.cb"))


def test_the_last_two_are_kept_and_the_newest_is_used(folder):
    assert [path.name for path in generations(folder)] == [
        "checkpoint-00000002.cb",
        "checkpoint-00000003.cb",
    ]
    assert load(folder) == (OLDER + SECOND, False)
    generations(folder)[1].unlink()
    assert load(folder) == (OLDER + FIRST, False)


def test_unused_older_records_go_away(folder):
    store = Store(folder)
    for _ in range(2):
        store.save(HEADER, [], SECOND)
    store.close()
    assert not list(folder.glob("answers-*")) and len(generations(folder)) == 2


def damaged_versions(content, rng, number):
    for _ in range(number):
        changed = bytearray(content)
        if rng.random() < 0.3:
            yield bytes(changed[: rng.integers(len(changed))])
        else:
            changed[rng.integers(len(changed))] ^= 1 << rng.integers(8)
            yield bytes(changed)


@pytest.mark.parametrize("kind", ["newest", "older records"])
def test_200_flips_and_truncations_are_all_noticed(folder, kind):
    path = generations(folder)[1] if kind == "newest" else next(folder.glob("answers-*"))
    content = path.read_bytes()
    left = OLDER + FIRST if kind == "newest" else []
    for damaged in damaged_versions(content, np.random.default_rng(0), 200):
        path.write_bytes(damaged)
        assert load(folder) == (left, True)


def test_with_both_damaged_there_is_a_clear_error(folder):
    rng = np.random.default_rng(1)
    contents = [path.read_bytes() for path in generations(folder)]
    for versions in zip(*(damaged_versions(c, rng, 50) for c in contents), strict=True):
        for path, damaged in zip(generations(folder), versions, strict=True):
            path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="no undamaged checkpoint"):
            load(folder)


class Bomb:
    def __reduce__(self):
        return (os.mkdir, ("exploded",))


def test_a_pickle_in_the_place_of_a_checkpoint_is_refused(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for path in generations(folder):
        path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(CheckpointError):
        load(folder)
    assert not (folder / "exploded").exists()


def test_a_file_of_a_terabyte_is_not_read(folder):
    newest = max(folder.glob("checkpoint-*.cb"))
    with newest.open("r+b") as file:
        file.truncate(10**12)
    store = Store(folder)
    with pytest.warns(UserWarning, match="it has 1TB, as none has; trying the one before it"):
        saved = store.load()
    store.close()
    assert saved is not None and saved.records == FIRST


def test_a_header_cannot_name_other_files(folder):
    from corebayes.checkpoint.store import _file

    header = b'{"seed": 7, "segments": [["../secret.cb", 1]]}'
    generations(folder)[1].write_bytes(_file([header]))
    assert load(folder) == (OLDER + FIRST, True)


class Failing:
    """A file whose writes fail: the disk is full."""

    def __init__(self, file):
        self._file = file

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def write(self, payload):
        self._file.write(payload[: len(payload) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture(params=["open", "write", "fsync", "rename"])
def full_disk(request, monkeypatch):
    """Makes one of the four operations of a write fail, from a call on."""

    def break_it():
        if request.param == "open":
            monkeypatch.setattr(atomic, "open", full, raising=False)
        elif request.param == "write":
            opened = builtins.open
            monkeypatch.setattr(
                atomic, "open", lambda *a, **k: Failing(opened(*a, **k)), raising=False
            )
        elif request.param == "fsync":
            monkeypatch.setattr(atomic.os, "fsync", full)
        else:
            monkeypatch.setattr(atomic.os, "replace", full)

    return break_it


def test_a_full_disk_leaves_the_old_files_and_nothing_else(folder, full_disk):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    store = Store(folder)
    full_disk()
    with pytest.raises(OSError, match="No space"):
        store.save(HEADER, [], SECOND)
    with pytest.raises(OSError, match="No space"):
        store.seal(OLDER)
    store.close()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_what_a_killed_run_left_half_written_is_cleared_away(folder):
    (folder / ".checkpoint-00000004.cb.0a1b2c3d.tmp").write_bytes(b"half")
    (folder / "mine.txt").write_text("not a file of ours")
    assert load(folder) == (OLDER + SECOND, False)
    assert not list(folder.glob(".*.tmp")) and (folder / "mine.txt").exists()


def test_one_run_at_a_time(folder):
    store = Store(folder)
    program = f"from corebayes.checkpoint.store import Store; Store({str(folder)!r})"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "another run is using the checkpoint" in result.stderr
    store.close()
    Store(folder).close()


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="name a folder"):
        Store(tmp_path / "file")


def test_lists_within_lists_are_refused_before_memory_is_taken(tmp_path):
    from corebayes.checkpoint import encoding, store

    bomb = b'{"segments":[],"a":[' + b"[]," * 1_000_000 + b"[]]}"
    (tmp_path / "checkpoint-00000001.cb").write_bytes(store._file([bomb]))
    opened = store.Store(tmp_path)
    with pytest.warns(UserWarning, match="its header has 3MB"), pytest.raises(CheckpointError):
        opened.load()
    opened.close()
    structure = b"[" + b"[]," * 1_000_000 + b"[]]"
    with pytest.raises(ValueError, match="bytes of JSON"):
        encoding.decode(encoding.LENGTH.pack(len(structure)) + structure)


def test_the_words_of_another_run_move_no_cursor(tmp_path):
    from corebayes.checkpoint.identity import check_same

    with pytest.raises(CheckpointError) as caught:
        check_same(tmp_path, {"method": "SparseVI()"}, {"method": "\x1b[2J\nSparseVI()"})
    assert str(caught.value).isprintable()
