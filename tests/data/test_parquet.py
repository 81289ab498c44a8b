"""Parquet: read as the same rows in memory would be, a part at a time, and never a changed file."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corebayes as cb
from tests.data.tables import NUM_ROWS, make_table
from tests.opened import checked, read, shards


def same_rows(block, other):
    assert list(block.fields) == list(other.fields)
    for name, values in block.fields.items():
        np.testing.assert_array_equal(values, other.fields[name])
        assert values.dtype == np.float64
    assert (block.counts is None) == (other.counts is None)
    if block.counts is not None:
        np.testing.assert_array_equal(block.counts, other.counts)


def sources(folder):
    return {
        "folder": folder,
        "pattern": str(folder / "part-*.parquet"),
        "list": sorted(folder.glob("*.parquet")),
        "dataset": pyarrow.dataset.dataset(
            sorted(map(str, folder.glob("*.parquet"))), format="parquet"
        ),
    }


@pytest.mark.parametrize("kind", ["folder", "pattern", "list", "dataset"])
def test_every_way_to_name_the_files_gives_the_rows_of_the_table(folder, table, kind):
    data = checked(sources(folder)[kind], target="y", counts="n")
    expected = checked(table, target="y", counts="n")
    assert (data.num_rows, data.total_count) == (NUM_ROWS, expected.total_count)
    assert data.column_names == ("a", "b") and data.target_name == "y"
    same_rows(read(data, 0, NUM_ROWS), read(expected, 0, NUM_ROWS))
    # One row group is one shard.
    assert shards(data) == ((0, 1000), (1000, 1700), (1700, 3000))
    assert shards(data)[-1][1] == NUM_ROWS
    for start, stop in shards(data):
        same_rows(read(data, start, stop), read(expected, start, stop))


@settings(deadline=None, max_examples=30)
@given(rows=st.lists(st.integers(0, NUM_ROWS - 1), max_size=30), ends=st.data())
def test_any_rows_and_any_range_are_those_of_the_table(tmp_path_factory, rows, ends):
    path = tmp_path_factory.getbasetemp() / "rows.parquet"
    table = make_table()
    if not path.exists():
        pq.write_table(table, path, row_group_size=700)
    data, expected = checked(path, target="y"), checked(table, target="y")
    numbers = np.array(rows, dtype=np.int64)
    same_rows(data.take(numbers), expected.take(numbers))
    # Parts are columns side by side, single rows are each in one piece.
    assert data.take(numbers).X.flags.c_contiguous
    start = ends.draw(st.integers(0, NUM_ROWS - 1))
    stop = ends.draw(st.integers(start + 1, NUM_ROWS))
    same_rows(read(data, start, stop), read(expected, start, stop))


def test_wrong_rows_are_refused_as_for_arrays(folder):
    data = checked(folder, target="y")
    with pytest.raises(ValueError, match=r"no row 3000: .* rows 0 to 2999"):
        data.take(np.array([3, 3000]))
    with pytest.raises(ValueError, match="1-D array of row numbers"):
        data.take(np.array([0.5]))


def test_rows_are_fetched_once_and_only_from_their_row_groups(folder, table, monkeypatch):
    monkeypatch.setattr("corebayes.data.parquet_files.PART_ROWS", 300)
    monkeypatch.setattr("corebayes.rows.RESERVE_ROWS", 10)
    monkeypatch.setattr("corebayes.data.decoded.MOST_BYTES", 0)
    data = checked(folder, target="y", features=["b"])
    decoded = data.meter.rows_decoded
    assert decoded == NUM_ROWS
    data.take(np.array([301, 302, 599]))
    assert data.meter.rows_decoded == decoded + 300
    rows = np.random.default_rng(1).permutation(NUM_ROWS)[:500]
    expected = checked(table, target="y", features=["b"]).take(rows)
    same_rows(data.take(rows), expected)
    decoded = data.meter.rows_decoded
    assert decoded <= 2 * NUM_ROWS + 300
    same_rows(data.take(rows[::-1]), expected.take(np.arange(499, -1, -1)))
    assert data.meter.rows_decoded == decoded, "what was fetched once is kept"


def test_a_large_row_group_is_decoded_by_parts(folder, table, monkeypatch):
    whole = checked(folder, target="y", counts="n")
    monkeypatch.setattr("corebayes.data.parquet.WHOLE_BYTES", 0)
    monkeypatch.setattr("corebayes.data.parquet.PART_ROWS", 70)
    parts = checked(folder, target="y", counts="n")
    same_rows(read(parts, 0, NUM_ROWS), read(whole, 0, NUM_ROWS))
    assert parts.meter.to_dict()["stages"]["checking"] == pytest.approx(
        whole.meter.to_dict()["stages"]["checking"], abs=60.0
    )
    monkeypatch.setattr("corebayes.rows.RESERVE_ROWS", 0)
    few = checked(folder, target="y", counts="n")
    rows = np.array([7, 1234, 1235, 2999])
    same_rows(few.take(rows), whole.take(rows))


def test_a_build_from_files_is_the_build_from_memory(folder, table):
    model = cb.LogisticRegression(intercept=True, prior=cb.Normal())
    options = {"target": "y", "features": ["b", "a"], "size": 12, "seed": 3}
    expected = cb.build(model, table, **options)
    found = cb.build(model, str(folder / "*.parquet"), **options)
    assert np.array_equal(found.indices, expected.indices)
    # Sums over other blocks differ in their last digits, which a fit to nothing left magnifies.
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-3)
    assert found.model.parameter_names == ("b", "a", "intercept")
    certificate = cb.certify(found, folder, target="y", features=["b", "a"])
    assert certificate.reverse_kl is not None


@pytest.mark.parametrize("counts", ["n", "array"])
def test_counts_and_dropped_rows(tmp_path, table, counts):
    a = table.column("a").to_numpy().copy()
    a[[17, 2501]] = np.nan, np.inf
    b = table.column("b").to_pylist()
    b[900] = None
    bad = table.set_column(0, "a", pa.array(a)).set_column(1, "b", pa.array(b, pa.float32()))
    pq.write_table(bad, tmp_path / "rows.parquet", row_group_size=800)
    given = counts if counts == "n" else np.arange(float(NUM_ROWS))
    features = ["a", "b"]
    message = "row 17, column 'a' of X is nan; 3 of 3,000 rows hold a NaN"
    options = {"target": "y", "features": features, "counts": given}
    for source in (bad, tmp_path / "rows.parquet"):
        with pytest.raises(ValueError, match=message):
            checked(source, **options)
    with pytest.warns(UserWarning, match=re.escape("3 of 3,000 rows")) as warned:
        data = checked(tmp_path / "rows.parquet", on_bad="drop", **options)
    assert len(warned) == 1 and warned[0].filename.endswith("opened.py")
    with pytest.warns(UserWarning):
        expected = checked(bad, on_bad="drop", **options)
    assert data.total_count == expected.total_count
    assert data.num_left_out == int(np.sum(read(data, 0, NUM_ROWS).counts == 0.0)) >= 3
    same_rows(read(data, 0, NUM_ROWS), read(expected, 0, NUM_ROWS))
    numbers = np.array([2501, 17, 16, 900, 17])
    same_rows(data.take(numbers), expected.take(numbers))
    assert data.take(numbers).counts.tolist()[:2] == [0.0, 0.0]


def test_the_first_bad_row_of_a_later_file_has_its_number_among_all(folder, table):
    changed = table.slice(1700).set_column(3, "n", pa.array(np.full(1300, -2)))
    pq.write_table(changed, folder / "part-2.parquet")
    message = re.escape("row 1700 counts -2 times; a count must be zero or positive (1,300 rows")
    with pytest.raises(ValueError, match=message):
        checked(folder, target="y", counts="n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "z"}, "target: there is no column 'z'; the columns are 'a', 'b', 'y', 'n'"),
        ({"target": "y", "features": ["aa"]}, "features: there is no column 'aa'; the columns are"),
        ({"target": "y", "features": ["y"]}, "'y' is the target and cannot be a feature"),
        ({"target": "y", "counts": "y"}, "cannot be the target and the counts"),
        ({"counts": np.ones(4)}, "X has 3,000, counts has 4"),
        ({"on_bad": "keep"}, 'on_bad must be "raise" or "drop"'),
    ],
)
def test_options_are_refused_as_for_frames(folder, options, message):
    with pytest.raises(ValueError, match=message):
        checked(folder, **options)


def test_columns_that_are_no_numbers_or_not_in_every_file(folder, table):
    words = table.append_column("word", pa.array(["x"] * NUM_ROWS))
    pq.write_table(words, folder / "part-1.parquet")
    with pytest.raises(ValueError, match=r"part-1.parquet has the columns \['word'\]"):
        checked(folder, target="y")
    assert checked(folder, target="y", features=["a", "b"]).num_rows == 2300 + NUM_ROWS
    with pytest.raises(ValueError, match="column 'word' holds type string, not real numbers"):
        checked(folder / "part-1.parquet", target="y")
    pq.write_table(table.drop(["b"]), folder / "part-1.parquet")
    with pytest.raises(ValueError, match=r"part-1.parquet: there is no column 'b'"):
        checked(folder, target="y")


def test_what_is_not_there_or_not_parquet(tmp_path):
    for missing in ("no.parquet", "no*.parquet"):
        with pytest.raises(FileNotFoundError, match=r"no.*parquet"):
            checked(tmp_path / missing)
    with pytest.raises(FileNotFoundError, match="has no Parquet files"):
        checked(tmp_path)
    (tmp_path / "rows.parquet").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    with pytest.raises(ValueError, match=r"cannot read .*rows.parquet as parquet"):
        checked(tmp_path)
    with pytest.raises(ValueError, match=r"cannot read rows.csv"):
        checked("rows.csv")
    pq.write_table(make_table(0), tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="the data is empty"):
        checked(tmp_path)


def test_names_of_folders_are_columns(tmp_path, table):
    for year in (2023, 2024):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(table.slice(0, 5), tmp_path / f"year={year}" / "rows.parquet")
    data = checked(tmp_path, target="y", features=["year", "a"])
    assert read(data, 0, 10).X[:, 0].tolist() == [2023.0] * 5 + [2024.0] * 5
    assert data.take(np.array([7])).X[0, 0] == 2024.0
    between = checked(tmp_path, target="y", features=["a", "year", "b"])
    assert read(between, 0, 10).X[:, 1].tolist() == [2023.0] * 5 + [2024.0] * 5
    for place, name in ((0, "a"), (2, "b")):
        expected = table.column(name).to_numpy()[:5]
        np.testing.assert_array_equal(read(between, 5, 10).X[:, place], expected)


def test_a_filtered_dataset_is_refused(folder):
    dataset = pyarrow.dataset.dataset(folder).filter(pyarrow.dataset.field("a") > 0)
    with pytest.raises(ValueError, match="Remove the filtering"):
        checked(dataset, target="y")


MEASURE = """
import json, re, sys
from pathlib import Path
import numpy as np
import corebayes as cb
from corebayes.data import decoded
from corebayes.scan.every_row import Counts
from corebayes.scan.query import Totals
from corebayes.tangent.monte_carlo import MonteCarloSpace

def peak():
    # Not ru_maxrss, which begins with what the process that started this one held.
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024

# Rows that are kept in memory are not what is measured.
decoded.MOST_BYTES = 0
draws = np.random.default_rng(0).normal(size=(20, 10))
small = cb.open(sys.argv[1], target="y")
model = cb.LogisticRegression(prior=cb.Normal()).with_names(small.column_names)
small.ask(Totals(MonteCarloSpace(model, draws)))
small.take(np.arange(0, small.num_rows, 7))
before = peak()
data = cb.open(sys.argv[2], target="y")
sums = data.ask(Totals(MonteCarloSpace(model, draws)))
rows = np.random.default_rng(1).choice(data.num_rows, 4000, replace=False)
taken = data.take(rows)
print(json.dumps([before, peak(), sums.weight, taken.X.sum()]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
def test_a_pass_never_holds_a_large_row_group(tmp_path):
    rng, num_rows = np.random.default_rng(0), 2_400_000
    columns = {f"x{k}": rng.normal(size=num_rows) for k in range(10)}
    table = pa.table({**columns, "y": (rng.random(num_rows) < 0.5).astype(float)})
    # One row group of 211 MB, and some of its rows in small ones.
    pq.write_table(table, tmp_path / "large.parquet", row_group_size=num_rows)
    pq.write_table(table.slice(0, 70_000), tmp_path / "small.parquet", row_group_size=35_000)
    result = subprocess.run(
        [sys.executable, "-c", MEASURE, *(str(tmp_path / f"{n}.parquet") for n in SIZES)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    before, after, weight, total = json.loads(result.stdout)
    assert weight == num_rows
    picked = np.random.default_rng(1).choice(num_rows, 4000, replace=False)
    X = np.column_stack(list(columns.values()))
    assert total == pytest.approx(X[picked].sum())
    # A dictionary, a page and what it is unpacked to for each of eleven columns, and a block: 65.
    assert after - before < 100, "the row group is 211 MB, and twice that as arrays"


SIZES = ("small", "large")
