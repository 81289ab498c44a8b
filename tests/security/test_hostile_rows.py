"""Hostile files of rows are one sentence, within two seconds and 100 MB."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corebayes as cb
from tests.security.forged import assert_refused, edit_footer, page_bomb, rng, sparse_footer


def sparse_data_footer(path):
    sparse_footer(path)


def many_data_columns(path):
    pq.write_table(pa.table({f"c{k}": np.zeros(1) for k in range(21_000)}), path)


def rows_by_the_trillion(path):
    pq.write_table(pa.table({"x": np.zeros(12_345), "y": np.zeros(12_345)}), path)
    edit_footer(path, 12_345, 10**12)


def nested_column(path):
    nested = pa.array([[1.0]] * 5, pa.list_(pa.float64()))
    pq.write_table(pa.table({"x": nested, "y": np.zeros(5)}), path)


ROWS = {
    sparse_data_footer: "its footer has 1.9GB, above the limit of 33",
    many_data_columns: "it has 21,000 columns, above the limit of 20,000",
    rows_by_the_trillion: "row group 0",
    nested_column: "column 'x' holds type list",
}


@pytest.mark.parametrize("make", ROWS, ids=lambda make: make.__name__)
def test_hostile_rows_are_refused_at_little_cost(opened, tmp_path, make):
    path = tmp_path / "rows.parquet"
    make(path)
    assert_refused(opened("rows", path), ("ValueError", "ChangedDataError", "OSError"), ROWS[make])


def archive(path: Path, header: bytes, zeros: int, name: str = "X.npy") -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file,
        file.open(name, "w", force_zip64=True) as member,
    ):
        member.write(header)
        for _ in range(zeros // 10**7):
            member.write(bytes(10**7))


def npy_header(shape: str, kind: str = "<f8") -> bytes:
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(118) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


NPZ = {
    "bomb": (npy_header("(37500000, 1)"), 300_000_000, "unpack to 300,000,.* limit of 100MB"),
    "shape": (npy_header("(1000000000000, 1)"), 0, r"it says 8,000,000,000,\d+ bytes and has"),
    "overflow": (npy_header("(4611686018427387904, 4)"), 0, "cut short"),
    "negative": (npy_header("(-1, 1)"), 0, "its shape is"),
    "objects": (npy_header("(3, 1)", "|O"), 0, "Python objects"),
    "long header": (b"\x93NUMPY\x02\x00\xff\xff\xff\x7f", 50_000_000, "EOF"),
    "wide": (npy_header("(1,)", "|S2000000000"), 0, "2,000,000,000 bytes for each number"),
}


@pytest.mark.parametrize("case", NPZ)
def test_hostile_npz_is_refused_at_little_cost(opened, tmp_path, case):
    header, zeros, says = NPZ[case]
    path = tmp_path / "rows.npz"
    archive(path, header, zeros)
    assert_refused(opened("npz", path), ("ValueError",), says)


@pytest.mark.parametrize("case", [case for case in NPZ if case != "bomb"])
def test_hostile_npy_is_refused_at_little_cost(opened, tmp_path, case):
    header, _, says = NPZ[case]
    path = tmp_path / "rows.npy"
    path.write_bytes(header)
    assert_refused(opened("rows", path), ("ValueError",), says)


def test_packed_rows_are_read_as_ever(opened, tmp_path):
    X = rng.integers(0, 2, (20_000, 5)).astype(float)
    np.savez_compressed(tmp_path / "rows.npz", X=X, y=X[:, 0], note=np.array("text"))
    assert opened("npz", tmp_path / "rows.npz")["failed"] is None


def test_many_members_are_refused(opened, tmp_path):
    with zipfile.ZipFile(tmp_path / "rows.npz", "w") as file:
        for k in range(4_000):
            file.writestr(f"{k}.npy", b"")
    assert_refused(opened("npz", tmp_path / "rows.npz"), ("ValueError",), "list of members")


def test_long_line_of_csv(opened, tmp_path):
    path = tmp_path / "rows.csv"
    with path.open("wb") as file:
        for _ in range(30):
            file.write(b"1," * 500_000)
    assert_refused(opened("command", path), ("ValueError",), "as csv")


# Neither pipes nor devices: nobody may be writing to the one, and the other has no end.


@pytest.mark.parametrize("suffix", ["parquet", "csv", "npy", "npz"])
def test_pipes_and_devices_are_refused_at_once(opened, tmp_path, suffix):
    pipe, device = tmp_path / f"pipe.{suffix}", tmp_path / f"device.{suffix}"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    for path in (pipe, device):
        kind = "npz" if suffix == "npz" else "command"
        assert_refused(opened(kind, path), ("ValueError",), "is a pipe or a device, and no file")
        if suffix == "parquet":
            assert_refused(opened("load", path), ("ValueError",), "pipe or a device")
    with pytest.raises(IsADirectoryError, match="is a folder, and no coreset file"):
        cb.load(tmp_path)


def bomb_of_zeros(path):
    """A megabyte that would unpack to 160 MB."""
    number = 10**7
    table = pa.table({"x": np.zeros(number), "y": np.zeros(number)})
    pq.write_table(table, path, compression="zstd")


def page_of_zeros(path):
    """Three rows, says the footer; 160 MB, says the page."""
    page_bomb(path)
    assert path.stat().st_size < 100_000


FOR_A_FORMULA = {
    page_of_zeros: "a column of 3 rows is said to unpack to 160",
    sparse_data_footer: "its footer has 1.9GB, above the limit of 33",
}


@pytest.mark.parametrize("make", FOR_A_FORMULA, ids=lambda make: make.__name__)
def test_a_formula_reads_no_bomb(opened, tmp_path, make):
    path = tmp_path / "rows.parquet"
    make(path)
    kinds = ("ValueError", "FileLimitError")
    assert_refused(opened("formula", path), kinds, FOR_A_FORMULA[make])


def test_a_formula_reads_a_long_file_in_parts(opened, tmp_path):
    path = tmp_path / "rows.parquet"
    bomb_of_zeros(path)
    found = opened("formula", path)
    assert found["failed"] is None and found["megabytes"] < 100.0, found
    # A transform needs all values at once, so there it is refused.
    says = r"bytes unpack to 160,000,000.* limit of 100MB: .*COREBAYES_LIMIT=160MB"
    assert_refused(opened("scaled formula", path), ("FileLimitError",), says)


def test_a_page_of_rows_is_no_bomb(opened, tmp_path):
    path = tmp_path / "rows.parquet"
    page_of_zeros(path)
    assert_refused(opened("matrix", path), ("ValueError",), "3 rows is said to unpack to 160")
