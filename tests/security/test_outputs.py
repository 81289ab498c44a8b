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
from corebayes.adapters.tables import to_csv, to_parquet
from corebayes.cli import app as cli
from corebayes.files import atomic, outputs
from corebayes.files.atomic import replacing, write_atomically
from corebayes.files.outputs import OutputError, probe_folder, probe_output, write_or_keep
from tests.coresets import logistic, weighted

REPORT = importlib.import_module("corebayes.report.report")
BUILD = "build rows.npz --model logistic --size 4 --out"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Rows and a coreset, with a cache folder of our own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    model, data = logistic()
    block = data.take(np.arange(data.num_rows))
    np.savez("rows.npz", X=block.X, y=block.y)
    weighted(model, data, np.arange(6), 200 / 6).save("c.parquet")
    return tmp_path


@pytest.fixture
def call(folder, capsys):
    def call(line: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit_:
            cli.run(line.split())
        out, err = capsys.readouterr()
        return exit_.value.code, out, err

    return call


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
