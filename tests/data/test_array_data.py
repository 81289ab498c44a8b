"""Arrays in memory: what is read is what was given, and nothing is copied without need."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from corebayes.data.arrays import ArrayData
from tests.opened import checked, read, shards, table


def rows(num_rows: int = 7, num_columns: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return rng.standard_normal((num_rows, num_columns)), rng.integers(0, 2, num_rows)


def read_all(data: ArrayData) -> dict[str, np.ndarray]:
    blocks = [read(data, start, stop) for start, stop in shards(data)]
    return {name: np.concatenate([b[name] for b in blocks]) for name in blocks[0].fields}


def test_pair_has_fields_X_and_y_as_float64():
    X, y = rows()
    data = checked((X, y))
    block = read(data, 2, 5)
    assert list(block.fields) == ["X", "y"]
    assert block.counts is None
    assert block.X.dtype == block.y.dtype == np.float64
    np.testing.assert_array_equal(block.X, X[2:5])
    np.testing.assert_array_equal(block.y, y[2:5])
    assert (data.num_rows, data.total_count) == (7, 7.0)
    assert (data.column_names, data.target_name) == ((), "y")


def test_list_pair_of_arrays_is_a_pair_and_a_list_of_lists_is_a_matrix():
    X, y = rows(2, 2)
    assert list(table(checked([X, y])).fields) == ["X", "y"]
    data = checked([[1, 2], [3, 4]])
    assert list(table(data).fields) == ["X"]
    np.testing.assert_array_equal(read(data, 0, 2).X, [[1.0, 2.0], [3.0, 4.0]])


def test_one_axis_becomes_one_column():
    x = np.arange(4.0)
    assert read(checked(x), 0, 4).X.shape == (4, 1)
    assert read(checked((x, x)), 0, 4).X.shape == (4, 1)
    assert read(checked({"X": x}), 0, 4).X.shape == (4, 1)


def test_target_of_one_column_is_flattened():
    X, y = rows()
    np.testing.assert_array_equal(read(checked((X, y[:, None])), 0, 7).y, y)


def test_mapping_keeps_names_and_trailing_shapes():
    times, images = np.arange(5), np.arange(5 * 2 * 3).reshape(5, 2, 3)
    data = checked({"times": times, "images": images, "y": times[:, None]})
    block = data.take(np.array([4, 0]))
    assert {name: values.shape for name, values in block.fields.items()} == {
        "times": (2,),
        "images": (2, 2, 3),
        "y": (2, 1),
    }
    np.testing.assert_array_equal(block["images"], images[[4, 0]])


def test_counts_of_a_mapping_may_be_one_of_its_entries():
    data = checked({"x": np.arange(3.0), "n": [2, 0, 1]}, counts="n")
    assert list(table(data).fields) == ["x"]
    assert data.total_count == 3.0


def test_opened_rows_are_the_same_rows_and_not_checked_again():
    data = checked(rows())
    again = checked(data)
    assert table(again) is table(data)
    assert (data.meter.rows_decoded, again.meter.rows_decoded) == (7, 0)
    for options in ({"target": "y"}, {"features": ["a"]}, {"counts": [1]}, {"on_bad": "drop"}):
        with pytest.raises(ValueError, match=next(iter(options))):
            checked(data, **options)


def test_float64_shards_are_views_that_cannot_be_written_to():
    X, _ = rows()
    before = X.copy()
    block = read(checked(X), 1, 4)
    assert np.shares_memory(block.X, X)
    with pytest.raises(ValueError, match="read-only"):
        block.X[0, 0] = 1.0
    np.testing.assert_array_equal(X, before)
    assert X.flags.writeable


def test_taken_rows_are_copies():
    X, _ = rows()
    taken = checked(X).take(np.array([1, 1]))
    taken.X[0] = 9.0
    assert not np.any(X == 9.0)


@pytest.mark.parametrize(
    "change",
    [
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        lambda X: X[::-1].copy()[::-1],
        lambda X: X.astype(X.dtype.newbyteorder()),
        lambda X: X.tolist(),
        lambda X: np.ma.masked_array(X),
    ],
    ids=["fortran", "rows", "columns", "reversed", "byte order", "lists", "no mask"],
)
def test_layouts_of_memory_read_the_same(change):
    X, y = rows()
    X.flags.writeable = False
    data = checked((change(X), y))
    for block in (read(data, 0, 7), data.take(np.arange(7))):
        assert block.X.flags.c_contiguous
        assert block.X.dtype == np.dtype("=f8")
        np.testing.assert_array_equal(block.X, X)


@pytest.mark.parametrize("dtype", ["f2", "f4", "i1", "u8", "i8", "?"])
def test_types_of_numbers_are_kept_and_read_as_float64(dtype):
    X = np.array([[0, 1], [1, 0], [1, 1]]).astype(dtype)
    data = checked(X)
    assert table(data).fields["X"].dtype == X.dtype
    assert np.shares_memory(table(data).fields["X"], X)
    np.testing.assert_array_equal(read(data, 0, 3).X, X.astype(float))


def test_shards_cover_all_rows_in_order():
    data = checked(np.zeros((40_000, 1)))
    assert list(shards(data)) == [(0, 16_384), (16_384, 32_768), (32_768, 40_000)]
    assert list(shards(checked(np.zeros(16_384)))) == [(0, 16_384)]
    small = ArrayData(fields={"X": np.arange(5.0)[:, None]}, shard_rows=2)
    assert list(shards(small)) == [(0, 2), (2, 4), (4, 5)]
    np.testing.assert_array_equal(read_all(small)["X"][:, 0], np.arange(5.0))


@settings(deadline=None)
@given(
    X=arrays.arrays(
        st.sampled_from(["f8", "f4", "i4"]),
        st.tuples(st.integers(1, 12), st.integers(1, 3)),
        elements=st.integers(-9, 9),
    ),
    shard_rows=st.integers(1, 13),
    picks=st.lists(st.integers(0, 11), max_size=15),
)
def test_read_and_take_are_numpy_indexing(X, shard_rows, picks):
    data = ArrayData(fields={"X": X}, counts=np.arange(len(X)) + 0.5, shard_rows=shard_rows)
    np.testing.assert_array_equal(read_all(data)["X"], X)
    numbers = np.array([pick % len(X) for pick in picks], dtype=np.int64)
    taken = checked(data).take(numbers)
    np.testing.assert_array_equal(taken.X, X[numbers])
    np.testing.assert_array_equal(taken.counts, numbers + 0.5)


def test_taking_no_rows_keeps_the_shapes():
    block = checked(rows()).take(np.empty(0, dtype=np.int64))
    assert (block.X.shape, block.y.shape) == ((0, 3), (0,))


@pytest.mark.parametrize("numbers", [[7], [0, -1], [2, 100]])
def test_rows_out_of_range_are_named(numbers):
    with pytest.raises(ValueError, match=f"no row {numbers[-1]}: .* rows 0 to 6"):
        checked(rows()).take(np.array(numbers))


@pytest.mark.parametrize("numbers", [[0.5], [True, False], [[0, 1]]])
def test_rows_must_be_row_numbers(numbers):
    with pytest.raises(ValueError, match="1-D array of row numbers"):
        checked(rows()).take(np.array(numbers))


def test_counts_travel_with_their_rows():
    X, y = rows()
    counts = np.array([1, 2, 0, 4, 5, 6, 7])
    data = checked((X, y), counts=counts)
    assert data.total_count == 25.0
    assert read(data, 1, 3).counts.tolist() == [2.0, 0.0]
    assert data.take(np.array([6, 0, 6])).counts.tolist() == [7.0, 1.0, 7.0]
    counts[:] = -1
    assert data.total_count == 25.0


def test_fingerprint_is_that_of_the_content_not_of_the_memory():
    X, y = rows()
    same = checked((X, y)).fingerprint()
    assert len(same) == 64
    assert checked((np.asfortranarray(X), y.copy())).fingerprint() == same
    assert pickle.loads(pickle.dumps(checked((X, y)))).fingerprint() == same


def test_fingerprint_changes_with_every_part():
    X, y = rows()
    moved, flipped = X.copy(), y.copy()
    moved[3, 1] = np.nextafter(moved[3, 1], np.inf)
    flipped[0] = 1 - flipped[0]
    variants = [
        checked((X, y)),
        checked((moved, y)),
        checked((X, flipped)),
        checked((X[:, [1, 0, 2]], y)),
        checked((X[[1, 0, 2, 3, 4, 5, 6]], y)),
        checked((X.astype("f4"), y)),
        checked((X, y), counts=np.ones(7)),
        checked((X, y), counts=np.r_[2.0, np.ones(6)]),
        checked(X),
        checked({"X": X, "z": y}),
        checked(X.reshape(3, 7)),
    ]
    assert len({data.fingerprint() for data in variants}) == len(variants)


def test_fingerprint_sees_the_last_of_many_shards():
    X = np.zeros((50_000, 2))
    before = checked(X).fingerprint()
    X[-1, -1] = 1.0
    assert checked(X).fingerprint() != before


def test_repr_is_one_line():
    assert repr(checked(rows())) == "Rows(7 rows in 1 shards: X (7, 3) float64, y (7,) int64)"
