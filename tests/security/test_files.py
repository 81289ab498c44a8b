"""Whatever file a stranger gives us: one sentence, within two seconds and 100 MB, or a coreset."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corebayes as cb
from corebayes.adapters.tables import to_csv
from corebayes.cli.app import run
from corebayes.coreset import Coreset, CorruptFile, check_coreset, files
from corebayes.rows import open_rows
from corebayes.types import Block

rng = np.random.default_rng(4)
FEATURES = rng.standard_normal((50, 3))
DATA = open_rows((FEATURES, rng.integers(0, 2, 50)))
INDICES = np.array([41, 7, 19])
PLAIN = Coreset(
    indices=INDICES,
    weights=np.array([10.0, 25.0, 15.0]),
    rows=DATA.take(INDICES),
    model=cb.LogisticRegression(intercept=True, prior=cb.Normal()).bind(DATA),
    num_rows=50,
    total_count=50.0,
    reason="size",
    trace=({"step": 1, "kl": 0.25},),
    provenance={"seed": 3, "method": "SparseVI()", "columns": {"target": "y"}},
)


def content_of(path: Path) -> dict[str, Any]:
    return json.loads(pq.read_schema(path).metadata[b"corebayes"])


def forge(path: Path, columns=None, text: bytes | None = None, compression="none", **changes):
    """A file as a person with the source could write it: the SHA-256 has no key."""
    PLAIN.save(path)
    content = {**content_of(path), **changes}
    table = pq.read_table(path)
    arrays = {name: table.column(name).to_numpy() for name in table.column_names}
    arrays.update(columns or {})
    content.pop("sha256")
    content["sha256"] = files._digest(content, arrays)
    written = json.dumps(content).encode() if text is None else text
    table = pa.table(arrays).replace_schema_metadata({b"corebayes": written})
    pq.write_table(table, path, compression=compression)


def model_of(path: Path, **config: Any) -> dict[str, Any]:
    PLAIN.save(path)
    saved = content_of(path)["model"]
    return {**saved, "config": {**saved["config"], **config}}


# Hostile coresets: what each is, and what the sentence must say.


def zero_rows(path):
    columns = {name: np.zeros(10**7) for name in ("weight", "x0", "x1", "x2", "y")}
    arrays = {"row_id": np.zeros(10**7, np.int64), **columns}
    PLAIN.save(path)
    table = pa.table(arrays).replace_schema_metadata(pq.read_schema(path).metadata)
    pq.write_table(table, path, compression="zstd")


def many_names(path):
    names = [f"b{k}" for k in range(100_000)]
    forge(path, model={**model_of(path, names=names), "dim": 100_000})


def many_parameters(path):
    forge(path, model={**model_of(path), "dim": 10**6})


def many_columns(path):
    forge(path, columns={f"c{k}": np.zeros(3) for k in range(30_000)})


def long_footer(path):
    forge(path, provenance={"a": "x" * 10**7})


def footer_of_gigabytes(path):
    path.write_bytes(b"PAR1" + bytes(100) + (2**31 - 1).to_bytes(4, "little") + b"PAR1")


def sparse_footer(path):
    with path.open("wb") as file:
        file.write(b"PAR1")
        file.seek(2 * 10**9)
        file.write((19 * 10**8).to_bytes(4, "little") + b"PAR1")


def deep_json(path):
    forge(path, text=b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}")


def many_lists(path):
    forge(path, provenance={"a": [[]] * 200_000})


def long_number(path):
    forge(path, text=b'{"num_rows":' + b"9" * 10**6 + b"}")


def two_entries(path):
    forge(path, text=b'{"format":1,"format":1}')


def one_column_many_times(path):
    repeated = {"name": "z", "shape": [200_000], "columns": ["x0"] * 200_000}
    PLAIN.save(path)
    forge(path, fields=[*content_of(path)["fields"], repeated])


def text_column(path):
    forge(path)
    table = pq.read_table(path).append_column("s", pa.array(["a", "b", "c"]))
    pq.write_table(table, path)


def varint(number: int) -> bytes:
    """A whole number as a footer has it."""
    value, groups = 2 * number, []
    while value:
        groups.append(value & 127)
        value >>= 7
    return bytes([*(group | 128 for group in groups[:-1]), groups[-1]])


def edit_footer(path: Path, old: int, new: int) -> None:
    """Put another number in all places of the footer that have the old one."""
    whole = path.read_bytes()
    length = int.from_bytes(whole[-8:-4], "little")
    footer = whole[-8 - length : -8]
    assert varint(old) in footer
    footer = footer.replace(varint(old), varint(new))
    path.write_bytes(whole[: -8 - length] + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def page_bomb(path):
    """Three rows, says the footer, in a page of kilobytes that unpacks to 160 MB."""
    number = 20_000_001
    pq.write_table(
        pa.table({"row_id": np.zeros(number, np.int64)}),
        path,
        compression="zstd",
        use_dictionary=False,
        data_page_size=1 << 30,
        max_rows_per_page=number,
        row_group_size=number,
        write_statistics=False,
    )
    edit_footer(path, number, 3)


def more_rows_than_there_are(path):
    forge(path, columns=None)
    number = 12_345
    columns = {name: np.zeros(number) for name in ("weight", "x0", "x1", "x2", "y")}
    table = pa.table({"row_id": np.arange(number), **columns})
    pq.write_table(table.replace_schema_metadata(pq.read_schema(path).metadata), path)
    edit_footer(path, number, 1_000_000)


HOSTILE = {
    zero_rows: "10,000,000 rows of 6 columns.* limit",
    many_names: "100,000 parameters.*limit=",
    many_parameters: "1,000,000 parameters.*limit=",
    many_columns: "footer of .*limit=",
    long_footer: "footer of .*limit=",
    footer_of_gigabytes: "no footer",
    sparse_footer: "footer of 1,900,000,000 bytes.*limit=",
    deep_json: "recursion",
    many_lists: "200,.* lists and objects.*limit=",
    long_number: "digits",
    two_entries: "two entries of one name",
    one_column_many_times: "not made of the columns",
    text_column: "holds (large_)?string, not numbers",
    page_bomb: "3 rows is said to unpack to 160",
    more_rows_than_there_are: "rows",
}


@pytest.fixture(scope="module")
def opened():
    """Opens a file by `tests.security.measured`, whose imports are made once."""
    command = [sys.executable, "-m", "tests.security.measured"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None

        def ask(kind: str, path: Path) -> dict[str, Any]:
            process.stdin.write(json.dumps([kind, str(path)]) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield ask
        process.stdin.close()


def assert_refused(found: dict[str, Any], kinds: tuple[str, ...], says: str) -> None:
    assert found["failed"] in kinds, found
    assert re.search(says, found["message"]), found
    assert "\n" not in found["message"] and len(found["message"]) < 600, found
    assert found["message"].isprintable()
    assert found["seconds"] < 2.0, found
    assert found["megabytes"] < 100.0, found


@pytest.mark.parametrize("make", HOSTILE, ids=lambda make: make.__name__)
def test_hostile_coreset_is_refused_at_little_cost(opened, tmp_path, make):
    path = tmp_path / "c.parquet"
    make(path)
    found = opened("load", path)
    assert_refused(found, ("CorruptFile", "FileLimitError"), HOSTILE[make])


# Forged content with a right sum, and what the sentence must say.
FORGED = {
    "weights zero": (
        {"columns": {"weight": np.zeros(3)}},
        "row 41 has the weight 0.0; weights are positive",
    ),
    "weight missing": ({"columns": {"weight": np.array([1, np.nan, 1])}}, "weight nan"),
    "row twice": ({"columns": {"row_id": np.array([7, 7, 19])}}, "row 7 .* more than once"),
    "rows renumbered": ({"columns": {"row_id": np.array([-1, -2, -3])}}, "negative number"),
    "NaN feature": ({"columns": {"x1": np.array([1, np.nan, 2])}}, "row 7 has nan in its field"),
    "label": ({"columns": {"y": np.array([1.0, 0.0, 7.0])}}, "row 19 has the target 7.0"),
    "count": ({"columns": {"count": np.array([1.0, -1.0, 1.0])}}, "counts .* ≥ 0"),
    "counts": ({"columns": {"count": np.array([60.0, 1.0, 1.0])}}, "rows alone count 62 times"),
    "no counts": ({"total_count": 49.0}, "total_count is 49, but without counts"),
    "total NaN": ({"total_count": float("nan")}, "total_count must be"),
    "total text": ({"total_count": "50"}, "total_count must be"),
    "total huge": ({"total_count": 10**400}, "total_count must be"),
    "num_rows huge": ({"num_rows": 10**300}, "num_rows must be between"),
    "num_rows fraction": ({"num_rows": 50.5}, "num_rows must be a whole number"),
    "num_rows true": ({"num_rows": True}, "num_rows must be a whole number"),
    "num_rows few": ({"num_rows": 2}, "num_rows must be between the 3 rows"),
    "provenance": ({"provenance": [1]}, "provenance must be a mapping"),
    "column names": ({"provenance": {"column_names": [{}]}}, "column_names .* texts"),
    "trace": ({"trace": [[1]]}, "entry 0 of the coreset's trace"),
    "trace mapping": ({"trace": {"a": 1}}, "trace"),
    "reason": ({"reason": None}, "reason must be a text"),
    "extra column": ({"columns": {"z": np.zeros(3)}}, "not made of the columns"),
    "fields": ({"fields": [{"name": "X", "shape": [-3], "columns": ["x0", "x1", "x2"]}]}, "column"),
    "dim": ({"model": {"name": "LogisticRegression", "config": {}, "dim": 10**400}}, "which model"),
}


@pytest.mark.parametrize("case", FORGED)
def test_forged_content_is_checked_as_build_would(tmp_path, case):
    changes, says = FORGED[case]
    path = tmp_path / "c.parquet"
    forge(path, **changes)
    with pytest.raises(CorruptFile, match=says) as caught:
        cb.load(path)
    assert "\n" not in str(caught.value)


def test_no_rows_are_refused(tmp_path):
    path = tmp_path / "c.parquet"
    forge(
        path,
        columns={name: np.zeros(0) for name in ("weight", "x0", "x1", "x2", "y")}
        | {"row_id": np.zeros(0, np.int64)},
    )
    with pytest.raises(CorruptFile, match="no rows"):
        cb.load(path)


@pytest.mark.parametrize(
    "config",
    [
        {"names": ["a"] * 4},
        {"names": [1, 2, 3, 4]},
        {"names": ["a", "b", "c", "x" * 2000]},
        {"names": None},
        {"intercept": "yes"},
        {"intercept": False},
        {"prior": {"mean": [0.0] * 7, "sd_or_cov": 1.0}},
        {"prior": {"mean": "0", "sd_or_cov": -1.0}},
        {"prior": {}, "unknown": 3},
    ],
    ids=str,
)
def test_forged_model_is_one_sentence(tmp_path, config):
    path = tmp_path / "c.parquet"
    forge(path, model=model_of(path, **config))
    with pytest.raises(CorruptFile) as caught:
        cb.load(path)
    assert "\n" not in str(caught.value)


def test_limit_can_be_raised(tmp_path, monkeypatch):
    path = tmp_path / "c.parquet"
    PLAIN.save(path)
    with pytest.raises(ValueError, match=r"has a footer .* limit of 1kB: .* COREBAYES_LIMIT=\d+MB"):
        cb.load(path, limit="1kB")
    monkeypatch.setenv("COREBAYES_LIMIT", "10")
    with pytest.raises(ValueError, match="above the limit of 10B"):
        cb.load(path)
    assert cb.load(path, limit="1GB").size == 3
    monkeypatch.setenv("COREBAYES_LIMIT", "much")
    with pytest.raises(ValueError, match="COREBAYES_LIMIT must be a positive size"):
        cb.load(path)


# Coresets edited by hand.
EDITED = {
    "negative": {"weights": np.array([1.0, -1.0, 1.0])},
    "NaN": {"weights": np.array([1.0, np.nan, 1.0])},
    "few": {"weights": np.ones(2)},
    "many": {"weights": np.ones(4)},
    "list": {"weights": [1.0, 2.0, 3.0]},
    "column": {"weights": np.ones((3, 1))},
    "fractions": {"indices": np.array([41.0, 7.0, 19.0])},
    "renumbered": {"indices": np.array([-1, -2, -3])},
    "beyond": {"indices": np.array([41, 7, 50])},
    "rows": {"rows": PLAIN.rows.take(slice(2))},
    "no fields": {"rows": Block({})},
    "num_rows": {"num_rows": 2.0**60},
    "provenance": {"provenance": None},
}


@pytest.mark.parametrize("case", EDITED)
def test_hand_edited_coreset_is_refused_everywhere(tmp_path, case):
    edited = replace(PLAIN, **EDITED[case])
    calls = (
        check_coreset,
        lambda c: cb.certify(c, DATA),
        cb.sample,
        cb.report,
        lambda c: c.save(tmp_path / "c.parquet"),
        lambda c: to_csv(c, tmp_path / "c.csv"),
        cb.to_stan,
        lambda c: cb.build(cb.LogisticRegression(prior=cb.Normal()), DATA, size=5, start=c),
    )
    sentences = set()
    for call in calls:
        with pytest.raises((ValueError, TypeError)) as caught:
            call(edited)
        sentences.add(str(caught.value))
    assert len(sentences) == 1 and "\n" not in sentences.pop()


def test_learned_rows_are_said_not_to_be_compared(tmp_path):
    method = cb.PseudoCoreset(update=cb.Adam(num_steps=3, rate=0.01))
    learned = cb.build(cb.LogisticRegression(prior=cb.Normal()), DATA, size=4, method=method)
    assert learned.provenance["learned"] is True
    learned.save(tmp_path / "c.parquet")
    back = cb.load(tmp_path / "c.parquet")
    assert "4 learned rows, which cannot be compared" in cb.certify(back, DATA).verdict
    # Files of 0.1.0 name the method only.
    old = {name: value for name, value in learned.provenance.items() if name != "learned"}
    check_coreset(replace(learned, provenance=old))
    with pytest.raises(ValueError, match="does not say that its rows were learned"):
        check_coreset(replace(learned, provenance={}))
    with pytest.raises(ValueError, match="row 0 is among learned rows"):
        check_coreset(replace(learned, indices=np.array([-2, -1, 0, -3])))


# Hostile rows.


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


# Names that a spreadsheet would run.


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("=cmd|'/c calc'!A1", "'=cmd|'/c calc'!A1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t'=1"),
        ("\rx", "'\rx"),
        ("＝1", "'＝1"),
        (" =1", "' =1"),
        ("a;=1", "a;'=1"),
        ("age", "age"),
        ("a-b", "a-b"),
        ("x = 1", "x = 1"),
        ("über, x", "über, x"),
    ],
)
def test_csv_names_are_not_run(tmp_path, name, written):
    coreset = replace(PLAIN, provenance={"column_names": [name, "b", "c"], "target_name": "y"})
    to_csv(coreset, tmp_path / "c.csv")
    with (tmp_path / "c.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["row_id", "weight", written, "b", "c", "y"]
    # Numbers stay numbers, negative ones too.
    np.testing.assert_array_equal(np.array(rows, float)[:, 2:5], PLAIN.rows.X)


# Any edit of the JSON.

leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | st.text(max_size=5)
    | st.lists(st.integers(-2, 2), max_size=3)
    | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2)
)


def places(value: Any, path: tuple[Any, ...] = ()):
    yield path
    if isinstance(value, dict | list):
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(entry, (*path, key))


@settings(deadline=None, max_examples=150)
@given(data=st.data(), leaf=leaves, remove=st.booleans())
def test_any_edit_of_the_json_is_a_coreset_or_a_sentence(tmp_path_factory, data, leaf, remove):
    path = tmp_path_factory.getbasetemp() / "edited.parquet"
    PLAIN.save(path)
    content = content_of(path)
    content.pop("sha256")
    *where, last = data.draw(st.sampled_from([p for p in places(content) if p]))
    inner: Any = content
    for key in where:
        inner = inner[key]
    if remove:
        del inner[last]
    else:
        inner[last] = leaf
    table = pq.read_table(path)
    arrays = {name: table.column(name).to_numpy() for name in table.column_names}
    content["sha256"] = files._digest(content, arrays)
    pq.write_table(table.replace_schema_metadata({b"corebayes": json.dumps(content)}), path)
    try:
        check_coreset(cb.load(path))
    except ValueError as error:
        assert "\n" not in str(error) and str(error).isprintable()


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


def test_words_of_a_file_move_no_cursor(tmp_path, capsys):
    path = tmp_path / "c.parquet"
    names = ["a", "b\x1b[2J\x1b]0;title\x07", "c\r", "(intercept)"]
    forge(path, model=model_of(path, names=names))
    with pytest.raises(SystemExit) as left:
        run(["sample", str(path), "--draws", "50", "--chains", "1"])
    assert left.value.code == 0
    out = capsys.readouterr().out
    assert "b?[2J?]0;title?" in out and "\x1b]" not in out and "\x07" not in out and "\r" not in out
    forge(path, provenance={"columns": {"target": "y\x1b[2J", "formula": None}})
    np.savez(tmp_path / "rows.npz", X=FEATURES)
    pq.write_table(pa.table({"x": np.zeros(3)}), tmp_path / "rows.parquet")
    with pytest.raises(SystemExit) as left:
        run(["certify", str(path), str(tmp_path / "rows.parquet")])
    error = capsys.readouterr().err
    assert left.value.code == 2 and "\x1b" not in error and error.count("\n") == 1
