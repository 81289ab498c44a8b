"""Outputs: tried in the first second, never lost after the work, never written through a trap."""

from __future__ import annotations

import importlib
import os
import re
import resource
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import corebayes as cb
from corebayes.files import outputs
from corebayes.files.atomic import write_atomically
from corebayes.files.outputs import OutputError, write_or_keep

REPORT = importlib.import_module("corebayes.report.report")


BUILD = "build rows.npz --model logistic --size 4 --out"


@contextmanager
def mounted(place: Path, *options: str):
    place.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *options, place], capture_output=True)
    if done.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@pytest.fixture
def small_disk(folder):
    if shutil.which("mount") is None:
        pytest.skip("there is no mount")
    with mounted(folder / "disk", "-t", "tmpfs", "-o", "size=2m", "tmpfs") as disk:
        yield disk


def fill(disk: Path) -> None:
    with pytest.raises(OSError, match="No space"), open(disk / "filler", "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def make_read_only(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)


COMMANDS = {
    "build": (BUILD + " {}", "x.parquet"),
    "sample": ("sample c.parquet --out {}", "x.nc"),
    "report": ("report c.parquet --out {}", "x.html"),
    "demo": ("demo --out {}", "x"),
    "reproduce": ("reproduce gaussian --out {}", "x"),
    "checkpoint": (BUILD + " fine.parquet --checkpoint {}", "x"),
}


FILES = ("build", "sample", "report")


@pytest.fixture
def no_work(monkeypatch):
    """Whatever begins to work fails the test."""

    def work(*_, **__):
        raise AssertionError("the work began")

    monkeypatch.setattr(cb, "build", work)
    monkeypatch.setattr(cb, "sample", work)
    monkeypatch.setattr("corebayes.cli.options.read_rows", work)
    monkeypatch.setattr(REPORT, "find_out", work)
    monkeypatch.setattr("corebayes.cli.demo.open_rows", work)
    monkeypatch.setattr("corebayes.experiments.reproduce.find_sources", work)


def refused(call, command: str, path: Path) -> str:
    line = COMMANDS[command][0].format(path)
    code, out, err = call(line)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert str(path) in err
    return err


@pytest.mark.parametrize("command", FILES)
def test_a_place_that_is_none_is_told_before_the_work(folder, call, no_work, command):
    name = COMMANDS[command][1]
    assert "the folder" in refused(call, command, folder / "nowhere" / name)
    (folder / name).mkdir()
    assert "it is a folder" in refused(call, command, folder / name)
    os.mkfifo(folder / f"pipe{name}")
    assert "a device or a pipe" in refused(call, command, folder / f"pipe{name}")
    assert "File name too long" in refused(call, command, folder / ("n" * 250 + name))
    assert "must end in" in refused(call, command, folder / "x.txt")


@pytest.mark.parametrize("command", ["demo", "reproduce", "checkpoint"])
def test_a_folder_that_is_a_file_is_told_before_the_work(folder, call, no_work, command):
    assert "c.parquet is no folder" in refused(call, command, folder / "c.parquet")
    assert "c.parquet is no folder" in refused(call, command, folder / "c.parquet" / "x")
    (folder / "loop").symlink_to("loop")
    assert "loop is no folder" in refused(call, command, folder / "loop" / "x")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_read_only_disk_is_told_before_the_work(small_disk, call, monkeypatch, command):
    make_read_only(small_disk)
    model_bound = []
    monkeypatch.setattr(cb.LogisticRegression, "bind", lambda *_: model_bound.append(1))
    assert "Read-only file system" in refused(call, command, small_disk / COMMANDS[command][1])
    assert not model_bound


@pytest.mark.parametrize("command", ["build", "sample", "report", "demo", "reproduce"])
def test_a_full_disk_is_told_before_the_work(small_disk, call, no_work, command):
    path = small_disk / COMMANDS[command][1]
    with open(small_disk / "filler", "wb") as file:
        file.write(bytes((2 << 20) - (1 << 19)))
    assert re.search(r"0\.5 of about \d+\.\d MB are free", refused(call, command, path))
    fill(small_disk)
    assert "No space left" in refused(call, command, path)
    assert os.listdir(small_disk) == ["filler"]


def test_draws_must_fit_on_the_disk(small_disk, call, no_work):
    line = f"sample c.parquet --draws 5000 --chains 4 --out {small_disk / 'x.nc'}"
    code, _, err = call(line)
    assert code == 2 and "of about 2.6 MB are free" in err


def test_the_rows_are_not_overwritten(folder, call):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": [0.1, 0.2], "y": [0.0, 1.0]}), "rows.parquet")
    before = Path("rows.parquet").read_bytes()
    line = "build rows.parquet --target y --model logistic --size 1 --out ./rows.parquet"
    code, _, err = call(line)
    assert code == 2 and "is the file with the rows" in err
    assert Path("rows.parquet").read_bytes() == before


def after(monkeypatch, name: str, spoil) -> None:
    """The real work, then `spoil`."""
    work = getattr(cb, name)

    def spoilt(*arguments, **options):
        done = work(*arguments, **options)
        spoil()
        return done

    monkeypatch.setattr(cb, name, spoilt)


def kept_file(err: str, what: str) -> Path:
    (told,) = re.findall(rf"{what} is in (\S+)$", err.strip())
    return Path(told)


@pytest.mark.parametrize("trouble", ["full", "read-only", "gone"])
@pytest.mark.parametrize("with_checkpoint", [False, True])
def test_a_coreset_outlives_its_disk(small_disk, call, monkeypatch, trouble, with_checkpoint):
    target = small_disk / "sub"
    target.mkdir()
    spoil = {
        "full": lambda: fill(small_disk),
        "read-only": lambda: make_read_only(small_disk),
        "gone": lambda: shutil.rmtree(target),
    }[trouble]
    build = cb.build
    after(monkeypatch, "build", spoil)
    line = f"{BUILD} {target / 'x.parquet'}" + (" --checkpoint kept" if with_checkpoint else "")
    code, out, err = call(line)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"cannot write {target / 'x.parquet'}: " in err
    reason = {"full": "No space", "read-only": "Read-only", "gone": "is not there"}[trouble]
    assert reason in err
    place = kept_file(err, "the coreset of 4 rows")
    assert place.parent == (Path("kept") if with_checkpoint else Path("cache/corebayes").absolute())
    with np.load("rows.npz") as rows:
        expected = build(cb.LogisticRegression(), (rows["X"], rows["y"]), size=4)
    assert np.array_equal(cb.load(place).weights, expected.weights)
    assert not [name for name in os.listdir(small_disk) if name.startswith(".")]


@pytest.mark.slow
def test_draws_outlive_a_full_disk(small_disk, folder):
    """In a process of its own, since HDF5 may end it when a file cannot be closed."""
    program = f"""
import corebayes as cb, sys
from corebayes.cli import app as cli
from pathlib import Path
from tests.security.test_outputs import fill
draw = cb.sample
def spoilt(*arguments, **options):
    done = draw(*arguments, **options)
    fill(Path({str(small_disk)!r}))
    return done
cb.sample = spoilt
cli.run("sample c.parquet --draws 200 --chains 2 --out {small_disk}/x.nc".split())
"""
    root = Path(__file__).resolve().parents[2]
    paths = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "No space left" in done.stderr, done.stderr
    place = kept_file(done.stderr, "the file of draws")
    import arviz

    assert arviz.from_netcdf(place).posterior.sizes["draw"] == 200
    assert os.listdir(small_disk) == ["filler"]


def test_a_page_outlives_its_folder(folder, monkeypatch):
    (folder / "sub").mkdir()
    find_out = REPORT.find_out

    def spoilt(*arguments, **options):
        shutil.rmtree(folder / "sub")
        return find_out(*arguments, **options)

    monkeypatch.setattr(REPORT, "find_out", spoilt)
    with pytest.raises(OutputError, match="the page is in") as caught:
        cb.report(cb.load("c.parquet"), out="sub/x.html", draws=100, progress=False)
    assert kept_file(str(caught.value), "the page").read_text().startswith("<!")


def test_nothing_false_is_said_when_there_is_no_place_at_all(folder, call, monkeypatch):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    after(monkeypatch, "build", lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard)))
    monkeypatch.setattr(outputs.tempfile, "mkdtemp", lambda **_: str(folder / "temporary"))
    try:
        code, out, err = call(f"{BUILD} x.parquet --checkpoint kept")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (code, out) == (2, "")
    assert err.endswith(
        "cannot write x.parquet: File too large; the coreset of 4 rows could be written nowhere "
        "else and is lost\n"
    )
    assert not list(folder.rglob("x*")) and not (folder / "temporary").exists()


def test_the_temporary_folder_is_the_last_resort(folder, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "c.parquet"))
    monkeypatch.setattr(outputs.tempfile, "tempdir", str(folder / "temporary"))
    (folder / "temporary").mkdir()
    with pytest.raises(OutputError) as caught:
        write_or_keep(lambda path: write_atomically(path, b"1"), folder / "no" / "x.txt", "it")
    place = kept_file(str(caught.value), "it")
    assert place.read_bytes() == b"1" and place.parent.parent == folder / "temporary"
    assert place.parent.stat().st_mode & 0o077 == 0
