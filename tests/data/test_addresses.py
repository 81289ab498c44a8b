"""Parquet files at addresses: a real S3 server on the loopback, and files of this machine."""

import json
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

import corebayes as cb
from corebayes.cli import app as cli
from corebayes.data.parquet_files import Address, _pattern
from corebayes.data.watch import ChangedDataError
from corebayes.scan.every_row import Counts
from tests.opened import checked
from tests.problems import coins

NUM_ROWS = 3000


def make_table(seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=NUM_ROWS)
    return pa.table({"a": a, "y": coins(rng, a).astype(float)})


@pytest.fixture(scope="module")
def server():
    """A server process of its own, which is ended with the tests."""
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for line in process.stderr:
            if "Running on" in line:
                port = int(line.strip().rsplit(":", 1)[1])
                break
        else:
            raise RuntimeError("the S3 server did not start")
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.fixture
def bucket(server, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    urllib.request.urlopen(f"http://{server}/moto-api/reset", data=b"", timeout=10)
    options = f"?endpoint_override={server}&scheme=http&region=us-east-1"
    filesystem, _ = pyarrow.fs.FileSystem.from_uri(f"s3://x{options}&allow_bucket_creation=true")
    filesystem.create_dir("rows")
    for part in range(2):
        some = make_table().slice(part * 1500, 1500)
        pq.write_table(some, f"rows/in/part-{part}.parquet", filesystem=filesystem)
    return filesystem, lambda path: f"s3://rows/{path}{options}"


@pytest.mark.parametrize("path", ["in", "in/*.parquet", "**/part-?.parquet"])
def test_rows_at_an_address_are_the_rows(bucket, path):
    rows = checked(bucket[1](path), target="y")
    expected = checked(make_table(), target="y").take(np.arange(NUM_ROWS))
    assert rows.num_rows == NUM_ROWS
    np.testing.assert_array_equal(rows.take(np.arange(NUM_ROWS)).X, expected.X)
    assert rows.meter.rows_decoded == NUM_ROWS


def test_a_build_and_what_is_not_there(bucket):
    found = cb.build(cb.LogisticRegression(prior=cb.Normal()), bucket[1]("in"), target="y", size=5)
    expected = cb.build(cb.LogisticRegression(prior=cb.Normal()), make_table(), target="y", size=5)
    assert np.array_equal(found.indices, expected.indices)
    for path in ("in/no.parquet", "in/no*.parquet", "nothing"):
        with pytest.raises(FileNotFoundError, match="no"):
            cb.open(bucket[1](path), target="y")
    with pytest.raises(ValueError, match="of one place"):
        cb.open([bucket[1]("in"), "here.parquet"], target="y")


def test_a_file_that_changed_there_is_refused(bucket):
    filesystem, address = bucket
    rows = checked(address("in"), target="y")
    time.sleep(1.1)  # Times of objects are in seconds.
    pq.write_table(make_table(1).slice(0, 1500), "rows/in/part-1.parquet", filesystem=filesystem)
    with pytest.raises(ChangedDataError, match=r"part-1.parquet changed"):
        rows.ask(Counts())


def test_the_command_line_takes_addresses(bucket, tmp_path, capsys):
    line = ["build", bucket[1]("in"), "--model", "logistic", "--target", "y", "--size", "5"]
    with pytest.raises(SystemExit) as ended:
        cli.run([*line, "--out", str(tmp_path / "c.parquet"), "--json"])
    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out)["num_rows"] == NUM_ROWS


def test_addresses_of_this_machine(tmp_path):
    folder = tmp_path / "a b"
    folder.mkdir()
    pq.write_table(make_table(), folder / "x.parquet")
    for source in (folder.as_uri(), (folder / "x.parquet").as_uri(), f"file://{folder}/*.parquet"):
        assert cb.open(source, target="y").num_rows == NUM_ROWS


def test_options_and_patterns_are_told_apart():
    assert Address.of("s3://b/k?.parquet") == ("s3", "b/k?.parquet", "")
    assert Address.of("s3://b/k?region=x&a=b") == ("s3", "b/k", "?region=x&a=b")
    assert Address.of("rows/*.parquet") is None
    assert _pattern("b/*.pq").fullmatch("b/x.pq") and not _pattern("b/*.pq").fullmatch("b/c/x.pq")
    assert _pattern("b/**/x.pq").fullmatch("b/x.pq") and _pattern("**/x").fullmatch("b/c/x")
