"""A hostile coreset is one sentence, within two seconds and 100 MB, or a coreset."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corebayes as cb
from corebayes.adapters.exports.tables import to_csv
from corebayes.cli.app import run
from corebayes.coreset import check_coreset, files
from tests.security.forged import (
    FEATURES,
    PLAIN,
    assert_refused,
    content_of,
    edit_footer,
    forge,
    model_of,
    page_bomb,
    sparse_footer,
)

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


@pytest.mark.parametrize("make", HOSTILE, ids=lambda make: make.__name__)
def test_hostile_coreset_is_refused_at_little_cost(opened, tmp_path, make):
    path = tmp_path / "c.parquet"
    make(path)
    found = opened("load", path)
    assert_refused(found, ("CorruptFile", "FileLimitError"), HOSTILE[make])


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
