"""Frames of pandas, polars and Arrow are the arrays they hold, with names."""

from __future__ import annotations

import datetime
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tests.opened import checked, read, table

rng = np.random.default_rng(3)
X = rng.standard_normal((5, 2))
Y = rng.integers(0, 2, 5)
N = np.array([1, 3, 2, 0, 1])
COLUMNS = {"age": X[:, 0], "label": Y, "n": N, "dose": X[:, 1]}


class Stream:
    """A table of some other library: all it has is Arrow's stream interface."""

    def __init__(self, table: pa.Table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def stream(columns: dict) -> Stream:
    return Stream(pa.table(columns))


FRAMES = [pd.DataFrame, pl.DataFrame, pa.table, stream]
every_frame = pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "polars", "arrow", "stream"])


def assert_same_rows(data, expected):
    assert data.num_rows == expected.num_rows
    one, other = read(data, 0, data.num_rows), read(expected, 0, data.num_rows)
    assert list(one.fields) == list(other.fields)
    for name in one.fields:
        np.testing.assert_array_equal(one[name], other[name])
        assert one[name].flags.c_contiguous
    np.testing.assert_array_equal(one.multiplicity(), other.multiplicity())


@every_frame
def test_frame_is_the_pair_of_arrays(frame):
    data = checked(frame(COLUMNS), target="label", counts="n")
    assert_same_rows(data, checked((X, Y), counts=N))
    assert (data.column_names, data.target_name) == (("age", "dose"), "label")
    assert data.total_count == 7.0


@every_frame
def test_features_choose_and_order_the_columns(frame):
    data = checked(frame(COLUMNS), target="label", features=["dose", "n", "age"])
    assert_same_rows(data, checked((np.column_stack([X[:, 1], N, X[:, 0]]), Y)))
    assert data.column_names == ("dose", "n", "age")


@every_frame
def test_frame_without_target_is_all_features(frame):
    data = checked(frame(COLUMNS), counts=N)
    assert list(table(data).fields) == ["X"]
    assert data.column_names == tuple(COLUMNS)
    assert data.total_count == 7.0


def test_all_frames_have_one_fingerprint():
    prints = {checked(f(COLUMNS), target="label", counts="n").fingerprint() for f in FRAMES}
    assert len(prints) == 1
    assert checked(pd.DataFrame(COLUMNS), target="n").fingerprint() not in prints


@pytest.mark.parametrize(
    ("features", "target"),
    [
        (pd.DataFrame({"a": X[:, 0], "b": X[:, 1]}), pd.Series(Y, name="label")),
        (pl.DataFrame({"a": X[:, 0], "b": X[:, 1]}), pl.Series("label", Y)),
        (pa.table({"a": X[:, 0], "b": X[:, 1]}), pa.table({"label": Y})),
        (pd.DataFrame({"a": X[:, 0], "b": X[:, 1]}), pd.DataFrame({"label": Y})),
    ],
    ids=["pandas", "polars", "arrow", "one-column frame"],
)
def test_pair_of_frame_and_series_keeps_names(features, target):
    data = checked((features, target))
    assert_same_rows(data, checked((X, Y)))
    assert (data.column_names, data.target_name) == (("a", "b"), "label")


def test_pairs_of_mixed_kinds():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "n": N})
    for y in (Y, Y.tolist(), pd.Series(Y), pl.Series(Y), pa.array(Y), pa.chunked_array([Y])):
        data = checked((frame, y), counts="n")
        assert_same_rows(data, checked((X, Y), counts=N))
        assert (data.column_names, data.target_name) == (("a", "b"), "y")
    data = checked((frame, Y), features=["b"], counts=pd.Series(N))
    assert_same_rows(data, checked((X[:, 1], Y), counts=N))
    data = checked({"X": frame[["a", "b"]], "y": pl.Series(Y)})
    assert_same_rows(data, checked((X, Y)))
    assert data.column_names == ("a", "b")
    data = checked(pd.Series(Y, name="z"))
    assert_same_rows(data, checked(Y))
    assert data.column_names == ("z",)


def test_pandas_indexes_must_agree():
    frame = pd.DataFrame(X, index=[3, 1, 2, 0, 4])
    with pytest.raises(ValueError, match="different pandas indexes"):
        checked((frame, pd.Series(Y)))
    assert_same_rows(checked((frame, Y)), checked((X, Y)))
    assert_same_rows(checked((frame, pd.Series(Y, index=frame.index))), checked((X, Y)))


def test_names_that_are_numbers():
    data = checked(pd.DataFrame(np.column_stack([X, Y])), target=2)
    assert_same_rows(data, checked((X, Y)))
    assert (data.column_names, data.target_name) == (("0", "1"), "2")


@every_frame
def test_missing_value_is_named(frame):
    columns = {"a": [1.0, 2.0, 3.0], "b": [0.5, 1.5, None], "label": [0, None, 1]}
    with pytest.raises(ValueError, match=r"row 1, column 'label' \(the target y\) is nan; 2 of 3"):
        checked(frame(columns), target="label")
    with pytest.raises(ValueError, match="row 2, column 'b' of X is nan; 1 of 3"):
        checked(frame(columns), features=["a", "b"])
    with pytest.warns(UserWarning, match="2 of 3 rows"):
        data = checked(frame(columns), target="label", on_bad="drop")
    assert read(data, 0, 3).counts.tolist() == [1.0, 0.0, 0.0]
    assert read(data, 0, 3).X.tolist() == [[1.0, 0.5], [2.0, 1.5], [3.0, 0.0]]


@pytest.mark.parametrize(
    "values",
    [
        pd.array([True, None, False], dtype="boolean"),
        pd.array([1, None, 0], dtype="Int8"),
        pd.array([1.0, None, 0.0], dtype="Float32"),
        pd.array([1, None, 0], dtype="int64[pyarrow]"),
        pd.array([True, None, False], dtype="bool[pyarrow]"),
        pl.Series([1, None, 0], dtype=pl.Int16),
        pl.Series([True, None, False]),
        pl.Series(["1", None, "0"]).cast(pl.Decimal(4, 2)),
        pa.array([1, None, 0], pa.uint8()),
        pa.array([True, None, False]),
        pa.array([1.0, None, 0.0], pa.float32()),
        pa.array([1, None, 0]).cast(pa.decimal128(22, 2)),
    ],
    ids=lambda values: str(getattr(values, "dtype", None) or values.type),
)
def test_kinds_of_numbers_with_missing_values(values):
    column = pd.Series(values) if isinstance(values, pd.api.extensions.ExtensionArray) else values
    with pytest.warns(UserWarning, match="1 of 3 rows"):
        data = checked({"z": column}, on_bad="drop")
    np.testing.assert_array_equal(table(data).fields["z"], [1.0, np.nan, 0.0])


def test_all_null_columns_are_missing_not_text():
    for source in (pl.DataFrame({"a": [None, None]}), pa.table({"a": [None, None]})):
        with pytest.raises(ValueError, match="row 0, column 'a' of X is nan; 2 of 2"):
            checked(source)


TEXTS = ["x", "y"]
DATES = [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)]


@pytest.mark.parametrize(
    "source",
    [
        pd.DataFrame({"a": [1, 2], "city": TEXTS}),
        pd.DataFrame({"city": pd.Series([True, False], dtype="category")}),
        pd.DataFrame({"city": pd.Series([1, None], dtype=object)}),
        pd.DataFrame({"city": [1j, 2j]}),
        pd.DataFrame({"city": pd.to_datetime(["2020-01-01", "2021-01-01"])}),
        pl.DataFrame({"a": [1, 2], "city": TEXTS}),
        pl.DataFrame({"city": pl.Series(TEXTS, dtype=pl.Categorical)}),
        pl.DataFrame({"city": [[1], [2]]}),
        pl.DataFrame({"city": DATES}),
        pa.table({"a": [1, 2], "city": TEXTS}),
        pa.table({"city": pa.array(TEXTS).dictionary_encode()}),
        pa.table({"city": DATES}),
        (np.zeros((2, 1)), pd.Series(TEXTS, name="city")),
        (np.zeros((2, 1)), pl.Series("city", TEXTS)),
    ],
)
def test_columns_that_are_no_numbers_are_named(source):
    with pytest.raises(ValueError, match=r"column 'city' holds .*encode it .*formula"):
        checked(source)


def test_text_in_a_column_that_is_not_used_is_no_error():
    frame = pd.DataFrame({"a": [1, 2], "city": TEXTS, "y": [0, 1]})
    assert checked(frame, target="y", features=["a"]).column_names == ("a",)


@every_frame
def test_columns_that_are_not_there(frame):
    with pytest.raises(
        ValueError, match="target: there is no column 'lable'; did you mean 'label'"
    ):
        checked(frame(COLUMNS), target="lable")
    with pytest.raises(ValueError, match="features: there is no column 'agee'; did you mean 'age'"):
        checked(frame(COLUMNS), features=["dose", "agee"])
    with pytest.raises(ValueError, match=r"counts: .* 'zzz'; the columns are 'age', 'label', 'n'"):
        checked(frame(COLUMNS), counts="zzz")


def test_roles_of_columns_must_differ():
    frame = pd.DataFrame(COLUMNS)
    with pytest.raises(ValueError, match="'label' is the target and cannot be a feature"):
        checked(frame, target="label", features=["age", "label"])
    with pytest.raises(ValueError, match="'n' is the counts and cannot be a feature"):
        checked(frame, counts="n", features=["n"])
    with pytest.raises(ValueError, match="'n' cannot be the target and the counts"):
        checked(frame, target="n", counts="n")
    with pytest.raises(ValueError, match="more than once"):
        checked(frame, features=["age", "age"])
    with pytest.raises(ValueError, match="list of column names, got the string 'age'"):
        checked(frame, features="age")
    with pytest.raises(ValueError, match="no column is left"):
        checked(frame[["label"]], target="label")
    with pytest.raises(ValueError, match="no column is left"):
        checked(frame, features=[])


def test_duplicate_names():
    twice = pd.DataFrame(np.zeros((2, 3)), columns=["a", "b", "a"])
    table = pa.table([[1.0], [2.0]], names=["a", "a"])
    for source in (twice, table, (twice, np.zeros(2))):
        with pytest.raises(ValueError, match=r"more than once: \['a'\]"):
            checked(source)


def test_frames_without_rows():
    with pytest.raises(ValueError, match="no rows"):
        checked(pd.DataFrame({"a": pd.Series([], dtype=float)}))


def test_frames_are_not_written_to():
    frame = pd.DataFrame({"a": [1.0, np.nan], "y": [0.0, 1.0]})
    with pytest.warns(UserWarning):
        data = checked(frame, target="y", on_bad="drop")
    with pytest.raises(ValueError, match="read-only"):
        read(checked(frame[["y"]]), 0, 1).X[0] = 3.0
    assert np.isnan(frame["a"][1])
    assert np.isfinite(read(data, 0, 2).X).all()


def test_arrays_load_no_frame_library():
    code = (
        "import sys, numpy, corebayes; "
        "corebayes.open((numpy.ones((3, 2)), numpy.ones(3))).fingerprint(); "
        "sys.exit(bool({'pandas', 'polars', 'pyarrow'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_missing_pyarrow_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    class Foreign:
        def __arrow_c_stream__(self):
            raise AssertionError("never asked")

    with pytest.raises(ImportError, match=r'pip install "corebayes\[files\]"'):
        checked(Foreign())
