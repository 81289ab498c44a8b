"""Answers as bytes: every bit comes back, and nothing in the bytes can run."""

import json
import os
import pickle
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from corebayes.checkpoint.encoding import KNOWN, NotEncodable, decode, encode
from corebayes.scan.query import Best, Sums
from corebayes.types import Block, Points


def same(first, second):
    """Types, shapes, orders in memory and bits, all the way down."""
    assert type(first) is type(second)
    if isinstance(first, np.ndarray):
        assert (first.dtype, first.shape) == (second.dtype, second.shape)
        assert first.flags.f_contiguous == second.flags.f_contiguous
        assert first.tobytes() == second.tobytes()
    elif isinstance(first, Block):
        same(dict(first.fields), dict(second.fields))
        same(first.counts, second.counts)
    elif isinstance(first, dict):
        assert list(first) == list(second)
        for name in first:
            same(first[name], second[name])
    elif isinstance(first, tuple | list):
        assert len(first) == len(second)
        for a, b in zip(first, second, strict=True):
            same(a, b)
    elif isinstance(first, float | np.floating):
        assert struct.pack("d", first) == struct.pack("d", second)
    else:
        assert first == second


numbers = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.floats().map(np.float64),
    st.integers(-(2**63), 2**63 - 1).map(np.int64),
)
arrays = hnp.arrays(
    st.sampled_from([np.float64, np.float32, np.int64, np.bool_]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
values = st.recursive(
    st.one_of(numbers, arrays, arrays.map(np.asfortranarray)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(), inner, max_size=3),
        st.tuples(inner, inner, inner).map(lambda items: Sums(*items)),
    ),
    max_leaves=8,
)


@given(values)
def test_every_bit_comes_back(value):
    same(decode(encode(value)), value)


def test_the_best_rows_of_a_pass_come_back():
    rows = Block(
        {"X": np.arange(6.0).reshape(2, 3), "y": np.array([1.0, -0.0])}, np.array([2.0, 1])
    )
    best = Best(Points(np.array([5, 7]), rows), np.array([0.5, np.inf]), 3)
    again = decode(encode(best))
    same(again, best)
    again.scores[0] = 1.0


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, np.array([None]), np.array(["a"]), lambda: 0, 1j, os.system]
)
def test_what_is_not_known_is_not_encoded(value):
    with pytest.raises(NotEncodable):
        encode((1.0, [value]))


def test_a_namesake_is_not_taken_for_the_known_type():
    from collections import namedtuple

    with pytest.raises(NotEncodable):
        encode(namedtuple("Sums", "total mean weight")(1.0, 2.0, 3.0))


class Bomb:
    def __reduce__(self):
        return (os.mkdir, ("exploded",))


def framed(structure, tail=b""):
    text = structure if isinstance(structure, bytes) else json.dumps(structure).encode()
    return struct.pack("<Q", len(text)) + text + tail


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 7,
        pickle.dumps(Bomb()),
        framed(pickle.dumps(Bomb())),
        framed(["os.system", "mkdir exploded"]),
        framed(["Bomb"]),
        framed({"__class__": "Bomb"}),
        framed(["Sums", 1.0]),
        framed(["Block", 1.0]),
        framed([["Sums"], 1.0]),
        framed(["dict", 3]),
        framed([]),
        framed(["array", "|O", [1], "C"], b"\0" * 8),
        framed(["array", "<f8", [2], "C"], b"\0" * 8),
        framed(["array", "<f8", [-1], "C"], b"\0" * 8),
        framed(["array", "<f8", [10**30], "C"], b"\0" * 8),
        framed(["array", "<f8", ["x"], "C"], b"\0" * 8),
        framed(["array", "<f8", [1], "K"], b"\0" * 8),
        framed(1.0, b"too much"),
        framed(b"[" * 100_000),
        struct.pack("<Q", 2**63) + b"{}",
    ],
)
def test_bytes_that_encode_never_wrote_are_refused_and_nothing_runs(content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="no answer of a pass"):
        decode(content)
    assert list(tmp_path.iterdir()) == []


def test_every_known_type_is_a_named_tuple_of_the_package():
    assert all(kind.__module__.startswith("corebayes.") for kind in KNOWN.values())
    assert all(issubclass(kind, tuple) and hasattr(kind, "_fields") for kind in KNOWN.values())
