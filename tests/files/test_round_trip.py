"""A coreset file comes back bit for bit."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from corebayes.coreset import CorruptFile, load
from corebayes.models import (
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
from tests.files.saved import (
    FEATURES,
    INDICES,
    LABELS,
    assert_same,
    custom_model,
    make_coreset,
    rng,
    saved,
)


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
