"""A coreset file comes back bit for bit, or is refused; it never runs code."""

from __future__ import annotations

import errno
import json
import os
import pickle
import resource
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from corebayes.coreset import Coreset, CorruptFile, files, load
from corebayes.models import (
    CustomModel,
    GaussianMean,
    LinearRegression,
    LogisticRegression,
    NegativeBinomialRegression,
    Normal,
    PoissonRegression,
    StudentTRegression,
)
from corebayes.rows import open_rows
from corebayes.types import Block

rng = np.random.default_rng(4)
FEATURES = rng.standard_normal((50, 3))
LABELS = rng.integers(0, 2, 50)
INDICES = np.array([41, 7, 19])


def make_coreset(model=None, data=None, **changes) -> Coreset:
    data = open_rows((FEATURES, LABELS), counts=np.arange(50)) if data is None else data
    model = LogisticRegression(intercept=True, prior=Normal()) if model is None else model
    coreset = Coreset(
        indices=INDICES,
        weights=np.array([0.1, 1e-300, 123456.789]),
        rows=data.take(INDICES),
        model=model.bind(data),
        num_rows=data.num_rows,
        total_count=data.total_count,
        reason="size",
        trace=({"step": 1, "kl": 0.25}, {"step": 2, "kl": None}),
        provenance={"seed": 3, "data": data.fingerprint()},
    )
    return replace(coreset, **changes)


def custom_model() -> CustomModel:
    return CustomModel(
        lambda draws, block: -0.5 * (block["z"][:, :1] - draws[:, 0]) ** 2,
        lambda draws: -0.5 * draws[:, 0] ** 2,
        dim=1,
    )


def assert_same_bits(one: np.ndarray, other: np.ndarray):
    assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


def assert_same(one: Coreset, other: Coreset):
    assert_same_bits(one.indices, other.indices)
    assert_same_bits(one.weights, other.weights)
    assert list(one.rows.fields) == list(other.rows.fields)
    for name in one.rows.fields:
        assert_same_bits(one.rows[name], other.rows[name])
    assert (one.rows.counts is None) == (other.rows.counts is None)
    if one.rows.counts is not None:
        assert_same_bits(one.rows.counts, other.rows.counts)
    assert (one.num_rows, one.total_count) == (other.num_rows, other.total_count)
    assert (one.reason, one.trace) == (other.reason, other.trace)
    assert one.provenance == other.provenance
    assert type(one.model) is type(other.model)
    if hasattr(one.model, "config"):
        assert one.model.config() == other.model.config()


def saved(tmp_path: Path, coreset: Coreset | None = None) -> Path:
    path = tmp_path / "coreset.parquet"
    (coreset or make_coreset()).save(path)
    return path


def rewrite(path: Path, *, digest: bool = True, columns=None, **changes) -> None:
    """What a person with the source could write: other content, with the SHA-256 made anew."""
    table = pq.read_table(path)
    content = {**json.loads(table.schema.metadata[b"corebayes"]), **changes}
    arrays = {name: table.column(name).to_numpy() for name in table.column_names}
    arrays.update(columns or {})
    content.pop("sha256")
    if digest:
        content["sha256"] = files._digest(content, arrays)
    metadata = {b"corebayes": json.dumps(content).encode()}
    pq.write_table(pa.table(arrays).replace_schema_metadata(metadata), path)


def test_round_trip_through_the_methods_of_a_coreset(tmp_path):
    coreset = make_coreset()
    coreset.save(str(tmp_path / "c.parquet"))
    back = load(str(tmp_path / "c.parquet"))
    assert_same(back, coreset)
    draws = rng.standard_normal((5, 4))
    np.testing.assert_array_equal(
        back.model.potentials(draws, back.rows), coreset.model.potentials(draws, coreset.rows)
    )
    np.testing.assert_array_equal(back.model.log_prior(draws), coreset.model.log_prior(draws))


@pytest.mark.parametrize(
    "model",
    [
        LinearRegression(noise_sd=0.3, prior=Normal(1.5, 2.0)),
        LogisticRegression(prior=Normal(np.arange(3.0), np.diag([1.0, 2.0, 3.0]))),
        PoissonRegression(link="softplus", prior=Normal()),
        PoissonRegression(link="log", intercept=True, prior=Normal()),
        StudentTRegression(scale=0.5, df=4.0, prior=Normal()),
        NegativeBinomialRegression(dispersion=1.0, prior=Normal()),
    ],
    ids=repr,
)
def test_every_built_in_regression_comes_back(tmp_path, model):
    coreset = make_coreset(model)
    back = load(saved(tmp_path, coreset))
    assert_same(back, coreset)
    draws = rng.standard_normal((4, coreset.model.dim))
    np.testing.assert_array_equal(
        back.model.potentials(draws, back.rows), coreset.model.potentials(draws, coreset.rows)
    )
    np.testing.assert_array_equal(back.model.log_prior(draws), coreset.model.log_prior(draws))


def test_gaussian_mean_comes_back(tmp_path):
    coreset = make_coreset(GaussianMean(np.diag([1.0, 2.0, 0.1])), open_rows(FEATURES))
    back = load(saved(tmp_path, coreset))
    assert_same(back, coreset)
    draws = rng.standard_normal((4, 3))
    np.testing.assert_array_equal(
        back.model.potentials(draws, back.rows), coreset.model.potentials(draws, coreset.rows)
    )


any_float = st.floats(width=64, allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None, max_examples=60)
@given(
    size=st.integers(1, 6),
    width=st.integers(1, 4),
    data=st.data(),
    reason=st.text(),
    entry=json_values,
)
def test_round_trip_of_any_numbers(size, width, data, reason, entry):
    draw = data.draw
    weights = draw(arrays.arrays(float, size, elements=st.floats(0, 1e308, exclude_min=True)))
    rows = Block(
        {
            "X": draw(arrays.arrays(float, (size, width), elements=any_float)),
            "y": draw(arrays.arrays(float, size, elements=any_float)),
            "z": draw(arrays.arrays(float, (size, 2, width), elements=any_float)),
        },
        draw(st.none() | arrays.arrays(float, size, elements=st.floats(0, 9))),
    )
    model, numbers = custom_model(), st.integers(0, 49)
    coreset = make_coreset(
        indices=np.array(draw(st.lists(numbers, min_size=size, max_size=size, unique=True)), int),
        weights=weights,
        rows=rows,
        num_rows=50,
        total_count=50 if rows.counts is None else draw(st.floats(60, 1e300)),
        reason=reason,
        trace=({"entry": entry},),
        provenance={"column_names": draw(st.lists(st.text(max_size=3), max_size=4, unique=True))},
    )
    coreset = replace(coreset, model=model)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.parquet"
        coreset.save(path)
        assert_same(load(path, model), coreset)


def test_file_is_a_plain_table(tmp_path):
    frame = pd.DataFrame(FEATURES, columns=["age", "dose", "weight"]).assign(label=LABELS)
    data = open_rows(frame, target="label", counts=np.arange(50))
    names = {"column_names": data.column_names, "target_name": data.target_name}
    coreset = make_coreset(data=data, provenance=names)
    path = saved(tmp_path, coreset)
    table = pd.read_parquet(path)
    # A feature may be called like one of our own columns.
    assert list(table) == ["row_id", "weight", "age", "dose", "X.weight", "label", "count"]
    assert list(table.dtypes) == ["int64"] + ["float64"] * 6
    np.testing.assert_array_equal(table["row_id"], INDICES)
    np.testing.assert_array_equal(table["weight"], coreset.weights)
    np.testing.assert_array_equal(table[["age", "dose", "X.weight"]], FEATURES[INDICES])
    np.testing.assert_array_equal(table["label"], LABELS[INDICES])
    np.testing.assert_array_equal(table["count"], INDICES)
    assert pl.read_parquet(path).columns == list(table)
    assert load(path).provenance == {"column_names": ["age", "dose", "weight"]} | {
        "target_name": "label"
    }


def test_columns_without_names_and_further_fields(tmp_path):
    data = open_rows({"z": FEATURES, "t": LABELS, "m": np.zeros((50, 1, 2))})
    coreset = make_coreset(custom_model(), data)
    path = saved(tmp_path, coreset)
    assert list(pd.read_parquet(path))[2:] == ["z[0]", "z[1]", "z[2]", "t", "m[0,0]", "m[0,1]"]
    plain = saved(tmp_path, make_coreset(data=open_rows((FEATURES, LABELS))))
    assert list(pd.read_parquet(plain)) == ["row_id", "weight", "x0", "x1", "x2", "y"]


def test_numpy_values_in_trace_and_provenance(tmp_path):
    trace = (
        {"kl": np.float64(0.1), "size": np.int64(3), "ok": np.bool_(True), "f": np.float32(0.1)},
    )
    provenance = {"shape": (2, 3), "means": np.array([[0.1, np.inf]]), "name": np.str_("μ")}
    back = load(saved(tmp_path, make_coreset(trace=trace, provenance=provenance)))
    assert back.trace == ({"kl": 0.1, "size": 3, "ok": True, "f": float(np.float32(0.1))},)
    assert list(back.trace[0]) == ["kl", "size", "ok", "f"]
    assert [type(value) for value in back.trace[0].values()] == [float, int, bool, float]
    assert back.provenance == {"shape": [2, 3], "means": [[0.1, float("inf")]], "name": "μ"}


def test_nan_in_the_trace_comes_back(tmp_path):
    back = load(saved(tmp_path, make_coreset(trace=({"kl": float("nan")},))))
    assert np.isnan(back.trace[0]["kl"])


def test_what_json_cannot_hold_is_named_and_the_old_file_stays(tmp_path):
    path = saved(tmp_path)
    before = path.read_bytes()
    with pytest.raises(TypeError, match=r"coreset\['trace'\]\[0\]\['kl'\] .* no complex"):
        make_coreset(trace=({"kl": 1j},)).save(path)
    assert path.read_bytes() == before


def test_same_coreset_same_bytes(tmp_path):
    first = saved(tmp_path).read_bytes()
    assert saved(tmp_path).read_bytes() == first


def test_custom_model_must_be_given_again(tmp_path):
    model = custom_model()
    coreset = make_coreset(model, open_rows({"z": FEATURES}))
    path = saved(tmp_path, coreset)
    with pytest.raises(ValueError, match=r"CustomModel, .* load\(path, model=\.\.\.\)") as caught:
        load(path)
    assert not isinstance(caught.value, CorruptFile)
    back = load(path, model=model)
    assert back.model is model
    assert_same(back, coreset)


def test_model_given_must_be_of_the_saved_kind(tmp_path):
    coreset = make_coreset()
    path = saved(tmp_path, coreset)
    assert load(path, model=coreset.model).model is coreset.model
    data = open_rows((FEATURES, LABELS))
    with pytest.raises(
        ValueError, match="for a LogisticRegression with 4 parameters, not for a Po"
    ):
        load(
            path,
            model=PoissonRegression(intercept=True, link="softplus", prior=Normal()).bind(data),
        )
    with pytest.raises(ValueError, match="with 4 parameters, not for a LogisticRegression with 3"):
        load(path, model=LogisticRegression(prior=Normal()).bind(data))


def test_a_family_of_ones_own_must_be_given_again(tmp_path):
    class Mine(LogisticRegression):
        pass

    coreset = make_coreset(Mine())
    path = saved(tmp_path, coreset)
    with pytest.raises(ValueError, match=r"for a Mine, .* pass the model"):
        load(path)
    assert load(path, model=coreset.model).model is coreset.model


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


def other_coreset() -> Coreset:
    return make_coreset(weights=np.array([7.0, 8.0, 9.0]))


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_disk_full_leaves_the_old_file_alone(tmp_path, monkeypatch, call):
    path = saved(tmp_path)
    before = path.read_bytes()

    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, call, full)
        with pytest.raises(OSError, match="No space left"):
            other_coreset().save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]
    other_coreset().save(path)
    assert_same(load(path), other_coreset())


def test_write_that_stops_half_way_leaves_the_old_file_alone(tmp_path):
    path = saved(tmp_path)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            other_coreset().save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_interrupt_leaves_the_old_file_alone(tmp_path, monkeypatch):
    path = saved(tmp_path)

    def interrupt(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            other_coreset().save(path)
    assert_same(load(path), make_coreset())
    assert os.listdir(tmp_path) == [path.name]


def test_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    calls: list[str] = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *a, _name=name, _real=real: (calls.append(_name), _real(*a))[1]
        )
    saved(tmp_path)
    assert calls == ["fsync", "replace", "fsync"]


def test_link_stays_a_link_and_permissions_are_usual(tmp_path):
    target, link, usual = tmp_path / "real.parquet", tmp_path / "link.parquet", tmp_path / "usual"
    make_coreset().save(target)
    link.symlink_to(target)
    other_coreset().save(link)
    assert link.is_symlink()
    assert_same(load(target), other_coreset())
    usual.write_text("")
    assert target.stat().st_mode == usual.stat().st_mode
