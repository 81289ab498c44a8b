"""Files are made under names nobody can guess, and never through the links of others."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

import corebayes as cb
from corebayes.adapters.exports.tables import to_csv, to_parquet
from corebayes.files import atomic
from corebayes.files.atomic import replacing, write_atomically
from corebayes.files.outputs import probe_folder, probe_output

WRITERS = {
    "save": lambda coreset, path: coreset.save(path),
    "to_csv": to_csv,
    "to_parquet": to_parquet,
    "report": lambda coreset, path: cb.report(coreset, out=path, draws=100, progress=False),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_functions_of_python_name_the_path(folder, writer):
    coreset, write = cb.load("c.parquet"), WRITERS[writer]
    with pytest.raises(FileNotFoundError, match=r"cannot write no/x: the folder no is not there"):
        write(coreset, "no/x")
    with pytest.raises(IsADirectoryError, match=r"cannot write cache: it is a folder"):
        (folder / "cache").mkdir()
        write(coreset, "cache")
    assert not os.path.samefile(os.devnull, folder)
    with pytest.raises(FileExistsError, match=f"cannot write {os.devnull}: it is a device"):
        write(coreset, os.devnull)


OPENED: list[tuple[str, int]] | None = None


def _audit(event: str, arguments: tuple) -> None:
    if OPENED is not None and event == "open" and isinstance(arguments[0], str | Path):
        OPENED.append((str(arguments[0]), arguments[2]))


sys.addaudithook(_audit)


@pytest.mark.parametrize("writer", WRITERS)
def test_files_are_made_exclusively_under_names_nobody_can_guess(folder, writer, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "OPENED", [])
    coreset, names = cb.load("c.parquet"), []
    for _ in range(2):
        OPENED.clear()
        WRITERS[writer](coreset, "x.out")
        made = [(path, flags) for path, flags in OPENED if flags & (os.O_WRONLY | os.O_RDWR)]
        made = [each for each in made if Path(each[0]).absolute().parent == folder]
        assert made and all(flags & os.O_EXCL for _, flags in made)
        names += [path for path, _ in made]
    assert len(set(names)) == len(names)
    # Libraries that are imported on the way have caches of their own.
    assert sorted({*os.listdir(folder)} - {"cache"}) == ["c.parquet", "rows.npz", "x.out"]


def test_sample_writes_through_no_link_beside_its_output(folder, call):
    (folder / "victim").write_text("precious")
    for name in (".post.nc.unfinished", ".post.nc.tmp", "post.nc.tmp", "post.nc~"):
        (folder / name).symlink_to("victim")
    code, _, err = call("sample c.parquet --draws 50 --chains 2 --out post.nc")
    assert code == 0, err
    assert (folder / "victim").read_text() == "precious"
    assert (folder / "post.nc").stat().st_mode & 0o777 == (
        folder / "c.parquet"
    ).stat().st_mode & 0o777
    assert not [name for name in os.listdir(folder) if "corebayes-" in name]


def test_a_path_for_a_library_lies_in_a_private_folder_that_goes(folder):
    with pytest.raises(ZeroDivisionError), replacing("x.nc") as path:
        assert path.parent.stat().st_mode & 0o777 == 0o700 and path.parent.parent == Path()
        path.write_bytes(b"half")
        raise ZeroDivisionError
    assert sorted(os.listdir(folder)) == ["c.parquet", "rows.npz"]


def test_the_users_own_links_stay_links(folder):
    (folder / "elsewhere").mkdir()
    (folder / "link").symlink_to("second")
    (folder / "second").symlink_to("elsewhere/file")
    for content in (b"made", b"replaced"):
        write_atomically("link", content)
        assert (folder / "elsewhere" / "file").read_bytes() == content
    assert (folder / "link").is_symlink() and os.listdir("elsewhere") == ["file"]
    (folder / "astray").symlink_to("nowhere/file")
    with pytest.raises(FileNotFoundError, match="cannot write astray: the folder nowhere"):
        probe_output("astray")
    (folder / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="cannot write loop: it is a link that leads nowhere"):
        write_atomically("loop", b"")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make links of others")
def test_the_links_of_others_are_refused(folder, monkeypatch):
    (folder / "file").write_text("precious")
    (folder / "link").symlink_to("file")
    (folder / "mine").symlink_to("link")
    os.lchown(folder / "link", 4321, 4321)
    for name in ("link", "mine"):
        with pytest.raises(PermissionError, match=f"cannot write {name}: link is a link that"):
            write_atomically(name, b"")
    monkeypatch.setattr(atomic, "_user", lambda: 4321)
    write_atomically("link", b"owner")
    assert (folder / "file").read_bytes() == b"owner"


def test_a_lock_that_is_a_link_makes_no_file_elsewhere(folder):
    (folder / "kept").mkdir()
    (folder / "kept" / "lock").symlink_to(folder / "victim")
    with np.load("rows.npz") as rows, pytest.raises(ValueError, match="cannot use the checkpoint"):
        cb.build(
            cb.LogisticRegression(prior=cb.Normal()),
            (rows["X"], rows["y"]),
            size=2,
            checkpoint="kept",
        )
    assert not (folder / "victim").exists()


def test_probing_leaves_nothing_behind(folder):
    before = sorted(os.listdir(folder))
    probe_output("x.parquet", ".parquet")
    probe_folder("a/b/c")
    assert sorted(os.listdir(folder)) == before
