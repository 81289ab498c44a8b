"""A file is written whole or not at all."""

from __future__ import annotations

import errno
import os
import resource

import numpy as np
import pytest

from corebayes.coreset import Coreset, load
from tests.files.saved import assert_same, make_coreset, saved


def other_coreset() -> Coreset:
    return make_coreset(weights=np.array([7.0, 8.0, 9.0]))


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_disk_full_leaves_the_old_file_alone(tmp_path, monkeypatch, call):
    path = saved(tmp_path)
    before = path.read_bytes()

    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, call, full)
        with pytest.raises(OSError, match="No space left"):
            other_coreset().save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]
    other_coreset().save(path)
    assert_same(load(path), other_coreset())


def test_write_that_stops_half_way_leaves_the_old_file_alone(tmp_path):
    path = saved(tmp_path)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            other_coreset().save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_interrupt_leaves_the_old_file_alone(tmp_path, monkeypatch):
    path = saved(tmp_path)

    def interrupt(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            other_coreset().save(path)
    assert_same(load(path), make_coreset())
    assert os.listdir(tmp_path) == [path.name]


def test_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    calls: list[str] = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *a, _name=name, _real=real: (calls.append(_name), _real(*a))[1]
        )
    saved(tmp_path)
    assert calls == ["fsync", "replace", "fsync"]


def test_link_stays_a_link_and_permissions_are_usual(tmp_path):
    target, link, usual = tmp_path / "real.parquet", tmp_path / "link.parquet", tmp_path / "usual"
    make_coreset().save(target)
    link.symlink_to(target)
    other_coreset().save(link)
    assert link.is_symlink()
    assert_same(load(target), other_coreset())
    usual.write_text("")
    assert target.stat().st_mode == usual.stat().st_mode
