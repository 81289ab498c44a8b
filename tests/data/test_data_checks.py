"""Every bad value is refused with its place, or left out and counted."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from corebayes.data.checks import BLOCK_VALUES, find_bad_rows
from tests.opened import checked, read, shards


def rows(num_rows: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    return rng.standard_normal((num_rows, 3)), rng.standard_normal(num_rows)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_bad_feature_in_a_hundred_thousand_rows_is_named(value):
    X, y = rows(100_000)
    X[76_543, 1] = value
    pattern = re.escape(f"row 76543, column 1 of X is {value}; 1 of 100,000 rows")
    with pytest.raises(ValueError, match=pattern):
        checked((X, y))


def test_bad_target_is_named():
    X, y = rows()
    y[4] = np.inf
    with pytest.raises(ValueError, match="row 4, y is inf; 1 of 6 rows"):
        checked((X, y))


def test_bad_entry_of_a_mapping_is_named():
    images = np.zeros((4, 2, 3))
    images[2, 1, 0] = np.nan
    with pytest.raises(ValueError, match="row 2, column 1, 0 of images is nan"):
        checked({"z": np.arange(4), "images": images})


def test_first_bad_row_comes_first_whatever_its_field_and_rows_count_once():
    X, y = rows()
    X[5, 0] = X[3, 2] = X[3, 1] = y[2] = y[5] = np.nan
    with pytest.raises(ValueError, match="row 2, y is nan; 3 of 6 rows"):
        checked((X, y))


def test_masked_entries_are_missing():
    X = np.ma.masked_array(np.arange(6).reshape(3, 2), mask=[[0, 0], [0, 1], [0, 0]])
    with pytest.raises(ValueError, match="row 1, column 1 of X is nan"):
        checked(X)


@settings(deadline=None)
@given(
    places=st.sets(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1),
    stretch=st.integers(1, 3),
)
def test_bad_rows_are_found_across_blocks(places, stretch):
    step = BLOCK_VALUES // 3
    X = np.zeros((stretch * step + 4, 3), dtype=np.float32)
    numbers = sorted({row * stretch * step // 3 for row, _ in places})
    for row, column in places:
        X[row * stretch * step // 3, column] = np.inf
    assert find_bad_rows([("X", X)]).tolist() == numbers


def test_huge_values_are_no_overflow():
    X = np.full((5, 3), 1.7e308)
    X[::2] *= -1
    assert checked(X).num_rows == 5


def test_drop_equals_the_data_without_the_rows():
    X, y = rows(40_000)
    X[17, 1], X[20_000, 0], y[39_999] = np.nan, np.inf, -np.inf
    given = X.copy(), y.copy()
    with pytest.warns(UserWarning, match="3 of 40,000 rows .* row 17, column 1 of X is nan") as w:
        data = checked((X, y), on_bad="drop")
    assert len(w) == 1
    assert w[0].filename.endswith("opened.py")
    bad = [17, 20_000, 39_999]
    assert (data.num_rows, data.total_count, data.num_left_out) == (40_000, 39_997.0, 3)
    blocks = [read(data, start, stop) for start, stop in shards(data)]
    counts = np.concatenate([block.counts for block in blocks])
    assert np.flatnonzero(counts == 0.0).tolist() == bad
    values = np.concatenate([block.X for block in blocks])
    np.testing.assert_array_equal(values[counts > 0], np.delete(X, bad, axis=0))
    assert values[17].tolist() == [X[17, 0], 0.0, X[17, 2]]
    np.testing.assert_array_equal(X, given[0])
    np.testing.assert_array_equal(y, given[1])


def test_dropped_rows_are_finite_when_taken():
    X, y = rows()
    X[1], y[4] = np.nan, np.nan
    with pytest.warns(UserWarning, match="2 of 6 rows"):
        data = checked((X, y), on_bad="drop", counts=np.arange(6))
    block = data.take(np.array([4, 1, 0, 1]))
    assert block.counts.tolist() == [0.0, 0.0, 0.0, 0.0]
    assert block.X[[1, 3]].tolist() == [[0.0] * 3] * 2
    np.testing.assert_array_equal(block.X[2], X[0])
    assert block.y.tolist() == [0.0, y[1], y[0], y[1]]
    assert data.total_count == 0 + 2 + 3 + 5


def test_missing_count_is_a_bad_row():
    X, y = rows(3)
    with pytest.raises(ValueError, match="row 1, counts is nan; 1 of 3 rows"):
        checked((X, y), counts=[1.0, np.nan, 2.0])
    with pytest.warns(UserWarning, match="row 1, counts is nan"):
        data = checked((X, y), counts=[1.0, np.nan, 2.0], on_bad="drop")
    assert read(data, 0, 3).counts.tolist() == [1.0, 0.0, 2.0]


def test_drop_of_good_rows_changes_nothing_and_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = checked(rows(), on_bad="drop")
    assert data.num_left_out == 0
    assert read(data, 0, 6).counts is None


def test_drop_of_every_row_is_an_error():
    with (
        pytest.warns(UserWarning, match="2 of 2 rows"),
        pytest.raises(ValueError, match="every row counts zero times"),
    ):
        checked(np.full((2, 1), np.nan), on_bad="drop")


@pytest.mark.parametrize("on_bad", ["ignore", "", None, True])
def test_on_bad_is_raise_or_drop(on_bad):
    with pytest.raises(ValueError, match=f"on_bad .* got {on_bad!r}"):
        checked(rows(), on_bad=on_bad)


@pytest.mark.parametrize("on_bad", ["raise", "drop"])
def test_negative_count_is_named(on_bad):
    with pytest.raises(ValueError, match=r"row 3 counts -0.5 times; .*\(2 rows"):
        checked(rows(), counts=[1, 2, 0, -0.5, 1, -2], on_bad=on_bad)


def test_all_counts_zero():
    with pytest.raises(ValueError, match="every row counts zero times"):
        checked(rows(), counts=np.zeros(6))


def test_counts_shape_and_names():
    with pytest.raises(ValueError, match="X has 6, y has 6, counts has 2"):
        checked(rows(), counts=[1, 2])
    with pytest.raises(ValueError, match=r"counts .* shape \(6, 1\)"):
        checked(rows(), counts=np.ones((6, 1)))
    with pytest.raises(ValueError, match="counts='n' names a column"):
        checked(rows(), counts="n")
    with pytest.raises(ValueError, match="counts: there is no column 'm'"):
        checked({"x": [1.0], "n": [2]}, counts="m")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ((np.zeros((3, 2)), np.zeros(4)), "numbers of rows differ: X has 3, y has 4"),
        ({"a": np.zeros(3), "b": np.zeros(2)}, "a has 3, b has 2"),
        (np.zeros((3, 2, 2)), r"3 axes: \(3, 2, 2\)"),
        (np.zeros((0, 2)), "no rows"),
        ([], "no rows"),
        (np.zeros((3, 0)), r"X has no columns: its shape is \(3, 0\)"),
        ({"z": np.zeros((3, 2, 0))}, "z has no columns"),
        ({}, "mapping of names to arrays is empty"),
        (np.array(3.0), "an entry for each row, got the number 3.0"),
        ((np.zeros((3, 2)), np.zeros((3, 2))), r"y must be one column, got the shape \(3, 2\)"),
        ((np.zeros(3),), "got 1 elements"),
        ((np.zeros(3), np.zeros(3), np.zeros(3)), "got 3 elements"),
        ([[1, 2], [3]], "X is not a rectangular array"),
        ([[[1, 2], [3, 4]], [0, 1]], "X is not a rectangular array"),
        (np.array([[1, 2j]]), "X holds dtype complex128, not real numbers"),
        (np.array([["a", "b"]]), "X holds dtype <U1, not real numbers: encode"),
        ((np.zeros((2, 1)), ["yes", "no"]), "y holds dtype <U3, not real numbers"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "X holds dtype datetime64"),
        (np.array([[1.0, "x"], [2.0, 3]], dtype=object), "row 0, column 1 of X holds the str 'x'"),
        ([[1.0, 2.0], [3.0, None]], "row 1, column 1 of X holds the NoneType None"),
        (np.array([[1, 2]], dtype=object), r"X holds dtype object \(convert it"),
        (np.ones((2, 1), dtype=np.longdouble), "X has dtype float128|X has dtype longdouble"),
        (scipy.sparse.csr_array(np.eye(2)), r"sparse matrix: pass its \.toarray"),
    ],
)
def test_wrong_shapes_and_kinds(source, message):
    with pytest.raises(ValueError, match=message):
        checked(source)


@pytest.mark.parametrize(
    "source", [None, 3, {1.0, 2.0}, (np.zeros(2), None), (np.zeros(2), iter([1]))], ids=range(5)
)
def test_what_is_no_data_is_a_type_error(source):
    with pytest.raises(TypeError, match="cannot be made from"):
        checked(source)


@pytest.mark.parametrize("option", ["target", "features"])
def test_column_names_need_a_frame(option):
    for source in (np.zeros((2, 1)), (np.zeros((2, 1)), np.zeros(2)), {"x": np.zeros(2)}):
        with pytest.raises(ValueError, match=f"{option}='a' has no meaning for"):
            checked(source, **{option: "a"})
