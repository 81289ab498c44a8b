"""A coreset file that is not what was saved is refused; it never runs code."""

from __future__ import annotations

import json
import os
import pickle
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corebayes.coreset import CorruptFile, load
from tests.files.saved import assert_same, make_coreset, rewrite, saved


@pytest.mark.parametrize("weight", [np.nan, -1.0, np.inf, -np.inf])
def test_bad_weights_are_neither_saved_nor_loaded(tmp_path, weight):
    path = saved(tmp_path)
    weights = np.array([1.0, weight, 2.0])
    with pytest.raises(ValueError, match="row 7 has the weight"):
        make_coreset(weights=weights).save(path)
    assert_same(load(path), make_coreset())
    rewrite(path, columns={"weight": weights})
    with pytest.raises(CorruptFile, match="row 7 has the weight"):
        load(path)


def test_row_numbers_must_be_of_the_data(tmp_path):
    path = saved(tmp_path)
    with pytest.raises(ValueError, match="row 50 is none of the rows 0 to 49"):
        make_coreset(indices=np.array([0, 50, 1])).save(path)
    rewrite(path, num_rows=20)
    with pytest.raises(CorruptFile, match="row 41 is none of the rows 0 to 19"):
        load(path)


def test_random_byte_flips(tmp_path):
    coreset = make_coreset()
    path = saved(tmp_path, coreset)
    whole = path.read_bytes()
    chances = np.random.default_rng(5)
    refused = 0
    for place, change in zip(
        chances.integers(0, len(whole), 200), chances.integers(1, 256, 200), strict=True
    ):
        damaged = bytearray(whole)
        damaged[place] ^= change
        path.write_bytes(damaged)
        try:
            assert_same(load(path), coreset)
        except CorruptFile as error:
            assert str(path) in str(error)
            refused += 1
    assert refused >= 100


def test_every_flip_of_a_number_is_refused(tmp_path):
    coreset = make_coreset()
    path = saved(tmp_path, coreset)
    whole = path.read_bytes()
    numbers = [coreset.indices, coreset.weights, coreset.rows.y, *coreset.rows.X.T]
    for values in numbers:
        start = whole.index(np.ascontiguousarray(values).tobytes())
        for place in range(start, start + values.nbytes, 5):
            damaged = bytearray(whole)
            damaged[place] ^= 1
            path.write_bytes(damaged)
            with pytest.raises(CorruptFile):
                load(path)


def test_truncations(tmp_path):
    path = saved(tmp_path)
    whole = path.read_bytes()
    ends = np.random.default_rng(6).integers(0, len(whole), 48).tolist()
    for end in [0, *ends, len(whole) - 1]:
        path.write_bytes(whole[:end])
        with pytest.raises(CorruptFile):
            load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"num_rows": 51},
        {"reason": "other"},
        {"trace": []},
        {"format": 2},
        {"model": {"name": "PoissonRegression", "config": {}, "dim": 4}},
        {"columns": {"weight": np.array([1.0, 2.0, 3.0])}},
        {"columns": {"extra": np.zeros(3)}},
        {"columns": {"row_id": np.array([41.0, 7.0, 19.0])}},
    ],
    ids=str,
)
def test_edited_file_without_its_sum_is_refused(tmp_path, change):
    path = saved(tmp_path)
    sha256 = json.loads(pq.read_schema(path).metadata[b"corebayes"])["sha256"]
    rewrite(path, **change)
    rewrite(path, digest=False)
    table = pq.read_table(path)
    content = {**json.loads(table.schema.metadata[b"corebayes"]), "sha256": sha256}
    pq.write_table(table.replace_schema_metadata({b"corebayes": json.dumps(content)}), path)
    with pytest.raises(CorruptFile, match="does not match its SHA-256"):
        load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"model": None},
        {"columns": {"row_id": np.array([41.0, 7.0, 19.0])}},
        {"model": {"name": "LogisticRegression"}},
        {"model": {"name": "LogisticRegression", "config": {"prior": 3}, "dim": 4}},
        {"model": {"name": "LogisticRegression", "config": [], "dim": 4}},
        {"fields": 7},
        {"fields": [{"name": "X", "shape": [3], "columns": ["nowhere"]}]},
        {"fields": [{"name": "X", "shape": [4], "columns": ["x0", "x1", "x2"]}]},
        {"fields": [{}]},
        {"num_rows": "many"},
        {"trace": 3},
        {"format": "new"},
    ],
    ids=str,
)
def test_forged_content_with_a_right_sum_is_refused(tmp_path, change):
    path = saved(tmp_path)
    rewrite(path, **change)
    with pytest.raises(CorruptFile):
        load(path)


def test_loaded_arrays_can_be_written_to(tmp_path):
    coreset = load(saved(tmp_path))
    for values in (coreset.indices, coreset.weights, coreset.rows.counts, coreset.rows.X):
        values[0] = 1.0


def test_untouched_content_may_be_written_by_another_tool(tmp_path):
    path = saved(tmp_path)
    pq.write_table(pq.read_table(path), path, compression="zstd")
    assert_same(load(path), make_coreset())


def test_newer_format_is_refused_in_a_sentence(tmp_path):
    path = saved(tmp_path)
    rewrite(path, format=2)
    with pytest.raises(ValueError, match=r"has the format 2, .* upgrade corebayes") as caught:
        load(path)
    assert not isinstance(caught.value, CorruptFile)


class Malicious:
    def __init__(self, victim: Path):
        self.victim = victim

    def __reduce__(self):
        return (os.mkdir, (str(self.victim),))


def test_pickle_is_refused_and_nothing_is_executed(tmp_path):
    victim = tmp_path / "executed"
    payload = pickle.dumps(Malicious(victim))
    path = tmp_path / "coreset.parquet"
    content = {"format": 1, "pickle": payload.decode("latin1")}
    for written in (payload, b"PAR1" + payload, b"PAR1" + payload + b"PAR1"):
        path.write_bytes(written)
        with pytest.raises(CorruptFile):
            load(path)
    for metadata in ({b"corebayes": payload}, {b"corebayes": json.dumps(content).encode()}):
        pq.write_table(pa.table({"weight": [1.0]}).replace_schema_metadata(metadata), path)
        with pytest.raises(CorruptFile):
            load(path)
    make_coreset().save(path)
    rewrite(path, model={"name": "os.mkdir", "config": {"path": str(victim)}, "dim": 4})
    with pytest.raises(ValueError, match=r"os\.mkdir"):
        load(path)
    assert not victim.exists()
    pickle.loads(payload)
    assert victim.exists()


def test_other_files_are_refused_in_a_sentence(tmp_path):
    path = tmp_path / "other"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(CorruptFile, match="is not a Parquet file"):
        load(path)
    path.write_bytes(b"")
    with pytest.raises(CorruptFile, match="is not a Parquet file"):
        load(path)
    pd.DataFrame({"weight": [1.0]}).to_parquet(path)
    with pytest.raises(CorruptFile, match="is a Parquet file, but no coreset"):
        load(path)
    with pytest.raises(FileNotFoundError, match=r"there is no coreset file .*nowhere"):
        load(tmp_path / "nowhere")


def test_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"the folder .*missing is not there"):
        make_coreset().save(tmp_path / "missing" / "c.parquet")


def test_missing_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    path = saved(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    for call in (lambda: make_coreset().save(path), lambda: load(path)):
        with pytest.raises(ImportError, match=r'pip install "corebayes\[files\]"'):
            call()
