"""Arrays in files: the bits of arrays in memory, and never the whole file."""

from __future__ import annotations

import os
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corebayes as cb
from corebayes.data.arrays import ArrayData
from corebayes.data.npy import FileArray
from corebayes.data.watch import ChangedDataError
from tests.opened import checked, read, shards, table
from tests.problems import coins

NUM_ROWS = 40_000


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(NUM_ROWS, 3))
    return X, coins(rng, X @ [1.0, -2.0, 0.5])


@pytest.fixture
def folder(tmp_path, arrays, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = arrays
    np.save("X.npy", X)
    np.save("y.npy", y)
    np.save("fortran.npy", np.asfortranarray(X.astype(np.float32)))
    np.save("all.npy", np.column_stack([y, X, np.arange(NUM_ROWS) % 3]))
    return tmp_path


def mapped(name, **options):
    return np.load(name, mmap_mode="r", **options)


def same(data, expected):
    assert not isinstance(data, ArrayData)
    assert (data.num_rows, data.total_count) == (expected.num_rows, expected.total_count)
    assert shards(data) == shards(expected)
    rows = np.array([39_999, 0, 17_000, 0, 16_383, 16_384])
    for block, other in [
        *((read(data, *shard), read(expected, *shard)) for shard in shards(data)),
        (read(data, 16_000, 17_000), read(expected, 16_000, 17_000)),
        (data.take(rows), expected.take(rows)),
        (data.take(np.arange(5, 30_000, 3)), expected.take(np.arange(5, 30_000, 3))),
        (data.take(rows[:0]), expected.take(rows[:0])),
    ]:
        assert list(block.fields) == list(other.fields)
        for name, values in block.fields.items():
            assert values.dtype == np.float64 and values.flags.c_contiguous
            np.testing.assert_array_equal(values, other.fields[name])
        assert (block.counts is None) == (other.counts is None)
        if block.counts is not None:
            np.testing.assert_array_equal(block.counts, other.counts)


SOURCES = {
    "paths": lambda X, y: (("X.npy", "y.npy"), (X, y)),
    "maps": lambda X, y: ((mapped("X.npy"), mapped("y.npy")), (X, y)),
    "map and array": lambda X, y: ((mapped("X.npy"), y), (X, y)),
    "path alone": lambda X, y: ("X.npy", X),
    "one column": lambda X, y: ("y.npy", y),
    "fortran": lambda X, y: ("fortran.npy", X.astype(np.float32)),
    "slice": lambda X, y: (mapped("X.npy")[:, 1:], X[:, 1:]),
    "strided": lambda X, y: (mapped("X.npy")[:, ::2], X[:, ::2]),
    "fortran slice": lambda X, y: (mapped("fortran.npy")[:, 1:], X[:, 1:].astype(np.float32)),
    "mapping": lambda X, y: ({"X": "X.npy", "z": mapped("y.npy")}, {"X": X, "z": y}),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_files_and_maps_read_as_the_arrays_do(folder, arrays, kind):
    source, expected = SOURCES[kind](*arrays)
    same(checked(source), checked(expected))


@pytest.mark.parametrize("name", ["X.npy", "fortran.npy"])
def test_a_few_rows_do_not_cost_the_file(folder, name):
    data = checked(name)
    tracemalloc.start()
    read(data, 20_000, 20_100)
    data.take(np.array([3, 39_000]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000, "the file has 480 kB or more"


def test_rows_of_a_sliced_map(folder, arrays):
    data = checked(mapped("X.npy")[100:39_000:3])
    expected = checked(arrays[0][100:39_000:3])
    np.testing.assert_array_equal(read(data, 0, 9000).X, read(expected, 0, 9000).X)
    rows = np.array([12_000, 3])
    np.testing.assert_array_equal(data.take(rows).X, expected.take(rows).X)


@settings(deadline=None, max_examples=50)
@given(
    shape=st.tuples(st.integers(2, 9), st.integers(1, 4), st.integers(1, 3)),
    dtype=st.sampled_from(["<f8", ">f8", "<f4", "<i2", "?"]),
    fortran=st.booleans(),
    picks=st.lists(st.integers(0, 8), max_size=6),
)
def test_any_shape_type_and_order(tmp_path_factory, shape, dtype, fortran, picks):
    values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    path = tmp_path_factory.getbasetemp() / "any.npy"
    np.save(path, np.asfortranarray(values) if fortran else values)
    data = checked({"z": path})
    np.testing.assert_array_equal(read(data, 0, shape[0])["z"], values.astype(float))
    rows = np.array([pick % shape[0] for pick in picks], dtype=np.int64)
    np.testing.assert_array_equal(data.take(rows)["z"], values[rows].astype(float))


@pytest.mark.parametrize("target", [0, "0"])
def test_columns_of_one_matrix_are_called_by_number(folder, arrays, target):
    X, y = arrays
    counts = np.arange(NUM_ROWS) % 3
    same(checked("all.npy", target=target, counts=4), checked((X, y), counts=counts))
    same(checked("all.npy", target=target, features=[3, "1"]), checked((X[:, [2, 0]], y)))
    same(checked("all.npy", counts=counts), checked(np.load("all.npy"), counts=counts))
    with pytest.raises(ValueError, match="target: there is no column 9; they are numbered 0 to 4"):
        checked("all.npy", target=9)
    with pytest.raises(ValueError, match="column '0' is the target and cannot be a feature"):
        checked("all.npy", target=0, features=[0, 1])
    with pytest.raises(ValueError, match="target='y' has no meaning for several arrays"):
        checked(("X.npy", "y.npy"), target="y")


def test_counts_of_a_mapping_may_be_one_of_its_files(folder, arrays):
    np.save("n.npy", np.arange(NUM_ROWS) % 5)
    expected = checked({"X": arrays[0]}, counts=np.arange(NUM_ROWS) % 5)
    same(checked({"X": "X.npy", "n": "n.npy"}, counts="n"), expected)


def test_a_build_has_the_bits_of_the_build_from_memory(folder, arrays):
    options = {"size": 10, "seed": 1}
    expected = cb.build(cb.LogisticRegression(prior=cb.Normal()), arrays, **options)
    found = cb.build(cb.LogisticRegression(prior=cb.Normal()), ("X.npy", "y.npy"), **options)
    assert np.array_equal(found.indices, expected.indices)
    assert np.array_equal(found.weights, expected.weights)


def test_bad_values_are_named_or_dropped(folder, arrays):
    X = arrays[0].copy()
    X[20_000, 1] = np.nan
    np.save("X.npy", X)
    message = "row 20000, column 1 of X is nan; 1 of 40,000 rows"
    with pytest.raises(ValueError, match=message):
        checked(("X.npy", "y.npy"))
    with pytest.warns(UserWarning, match=message.split(";")[0]):
        data = checked(("X.npy", "y.npy"), on_bad="drop")
    with pytest.warns(UserWarning, match="20000"):
        same(data, checked((X, arrays[1]), on_bad="drop"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (np.array(["a"]), "not real numbers"),
        (np.ones(4, dtype=complex), "not real numbers"),
        (np.ones((3, 2, 2)), "got 3 axes"),
        (np.ones((0, 2)), "it has no rows"),
        (np.array(3.0), "one number and no rows"),
        (np.array([{"a": 1}], dtype=object), "holds Python objects"),
    ],
)
def test_files_that_hold_no_rows_of_numbers(tmp_path, content, message):
    np.save(tmp_path / "rows.npy", content, allow_pickle=True)
    with pytest.raises(ValueError, match=message):
        checked(tmp_path / "rows.npy")


def test_files_that_are_missing_damaged_or_of_other_lengths(folder):
    with pytest.raises(FileNotFoundError, match=r"there is no file no.npy"):
        checked(("X.npy", "no.npy"))
    np.save("y.npy", np.ones(7))
    with pytest.raises(ValueError, match="X has 40,000, y has 7"):
        checked(("X.npy", "y.npy"))
    with open("X.npy", "r+b") as file:
        file.truncate(1000)
    with pytest.raises(ValueError, match=r"cannot read X.npy as npy: it was cut short"):
        checked("X.npy")
    with open("X.npy", "wb") as file:
        file.write(b"nonsense")
    with pytest.raises(ValueError, match=r"cannot read X.npy as npy"):
        checked("X.npy")


@pytest.mark.parametrize("how", ["written", "shorter"])
def test_a_file_that_changed_since_opening_is_refused(folder, how):
    data = checked(("X.npy", "y.npy"))
    copy = pickle.loads(pickle.dumps(data))
    if how == "shorter":
        with open("X.npy", "r+b") as file:
            file.truncate(500_000)
    else:
        writable = np.load("X.npy", mmap_mode="r+")
        writable[0, 0] = 7.0
        writable.flush()
        os.utime("X.npy", ns=(1, 1))
    for reader in (data, copy):
        with pytest.raises(ChangedDataError, match=r"X.npy changed since the data was opened"):
            read(reader, 0, 10)


def test_a_map_travels_as_its_path_and_fingerprints_see_content(folder, arrays):
    data = checked((mapped("X.npy"), mapped("y.npy")))
    assert isinstance(table(data).source.fields["X"], FileArray)
    assert len(pickle.dumps(table(data))) < 2000
    same = checked(("X.npy", "y.npy")).fingerprint()
    assert data.fingerprint() == same
    variants = {same, checked("X.npy").fingerprint(), checked("all.npy", target=0).fingerprint()}
    variants |= {checked("all.npy", target=4).fingerprint()}
    X = arrays[0].copy()
    X[0, 0] += 1.0
    np.save("X.npy", X)
    assert len(variants | {checked(("X.npy", "y.npy")).fingerprint()}) == 5


def test_a_private_map_is_read_from_memory(folder, arrays):
    private = np.load("X.npy", mmap_mode="c")
    private[3, 1] = 42.0
    assert read(checked(private), 3, 4).X[0, 1] == 42.0
    np.testing.assert_array_equal(read(checked(mapped("X.npy")[::-1]), 0, 4).X, arrays[0][::-1][:4])
