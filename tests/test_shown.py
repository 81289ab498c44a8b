"""Coresets, certificates, models and draws as people see them: frames, pictures, notebooks."""

import sys

import numpy as np
import pandas as pd
import pytest

import corebayes as cb
from corebayes.predict.check import bins_of, plot_bins


def flights(num_rows=600, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "distance": rng.gamma(2.0, 300.0, num_rows),
            "carrier": rng.choice(["AA", "B6", "UA"], num_rows),
            "month": rng.integers(1, 5, num_rows),
            "origin": rng.choice(["JFK", "EWR"], num_rows),
        }
    )
    eta = 0.002 * frame.distance - 1.0 + (frame.carrier == "B6")
    return frame.assign(late=(rng.random(num_rows) < 1 / (1 + np.exp(-eta))).astype(int))


@pytest.mark.parametrize(
    "formula",
    [
        "late ~ distance + carrier + C(month)",
        "late ~ 0 + carrier + distance:carrier + C(month, Sum) + distance",
        "late ~ distance + carrier + C(month) + (1 | origin)",
    ],
)
def test_a_frame_has_the_columns_of_the_user(formula):
    frame = flights()
    model, rows = cb.from_formula(formula, frame)
    coreset = cb.build(model, rows, size=25, method=None if "|" in formula else cb.Uniform())
    shown = coreset.to_frame()
    assert list(shown.columns[:2]) == ["row_id", "weight"]
    np.testing.assert_array_equal(shown.weight, coreset.weights)
    own = [name for name in frame if name in formula]
    assert set(shown.columns[2:]) == set(own)
    assert shown.columns[-1] == "late"
    chosen = frame.iloc[shown.row_id].reset_index(drop=True)
    for name in own:
        assert (chosen[name].to_numpy() == shown[name].to_numpy()).all(), name


def test_functions_of_columns_stay_and_plain_rows_have_names():
    frame = flights()
    model, rows = cb.from_formula("late ~ log(distance)", frame)
    shown = cb.build(model, rows, size=5, method=cb.Uniform()).to_frame()
    assert list(shown) == ["row_id", "weight", "log(distance)", "late"]
    plain = cb.build(
        cb.LogisticRegression(prior=cb.Normal()),
        frame[["distance", "late"]],
        target="late",
        size=5,
        method=cb.Uniform(),
    )
    assert list(plain.to_frame()) == ["row_id", "weight", "distance", "late"]


def test_certify_needs_no_names_again(tmp_path):
    frame = flights()[["distance", "month", "late"]].assign(distance=lambda f: f.distance / 500)
    counts = np.random.default_rng(0).integers(1, 3, len(frame))
    frame = frame.assign(unused=1.0, n=counts)[["unused", "n", "late", "month", "distance"]]
    frame.to_parquet(tmp_path / "rows.parquet")
    coreset = cb.build(
        cb.LogisticRegression(intercept=True, prior=cb.Normal()),
        frame,
        target="late",
        features=["distance", "month"],
        counts="n",
        size=10,
    )
    known = cb.certify(
        coreset, frame, target="late", features=["distance", "month"], counts="n", draws=100
    )
    for rows in (frame, tmp_path / "rows.parquet", str(tmp_path / "rows.parquet")):
        assert cb.certify(coreset, rows, draws=100).reverse_kl == known.reverse_kl
    with pytest.raises(ValueError, match="no column 'month'"):
        cb.certify(coreset, frame.drop(columns="month"))


def test_summary_has_real_names_and_right_numbers():
    frame = flights()
    model, rows = cb.from_formula("late ~ carrier", frame)
    drawn = cb.sample(cb.build(model, rows, size=12))
    table = cb.summary(drawn)
    assert list(table.index) == ["Intercept", "carrier[T.B6]", "carrier[T.UA]"]
    values = drawn.posterior["carrier"].sel(carrier_dim="T.B6").values
    line = table.loc["carrier[T.B6]"]
    np.testing.assert_allclose(line["mean"], values.mean())
    np.testing.assert_allclose(line["eti90_upper"], np.quantile(values, 0.95))
    assert line["ess_bulk"] > 100 and line["ess_tail"] > 100 and abs(line["r_hat"] - 1.0) < 0.05
    narrow = cb.summary(drawn.posterior, kind="hdi", interval=0.5).loc["carrier[T.B6]"]
    inside = (values >= narrow["hdi50_lower"]) & (values <= narrow["hdi50_upper"])
    np.testing.assert_allclose(inside.mean(), 0.5, atol=0.001)
    width = line["sd"] * 2 * 0.674
    np.testing.assert_allclose(narrow["hdi50_upper"] - narrow["hdi50_lower"], width, rtol=0.15)
    with pytest.raises(TypeError, match="summary takes draws"):
        cb.summary(frame.to_numpy())


def test_the_narrowest_interval_of_a_skewed_density_begins_at_its_mode():
    import xarray

    draws = np.random.default_rng(0).exponential(size=(4, 5000))
    posterior = xarray.Dataset({"rate": (("chain", "draw"), draws)})
    line = cb.summary(posterior, kind="hdi").loc["rate"]
    assert line["hdi90_lower"] < 0.01
    np.testing.assert_allclose(line["hdi90_upper"], -np.log(0.1), rtol=0.05)


def test_notebooks_show_escaped_text_and_no_script():
    frame = flights().rename(columns={"distance": "<script>alert(1)</script>"})
    name = "<script>alert(1)</script>"
    coreset = cb.build(
        cb.LogisticRegression(prior=cb.Normal()),
        frame[[name, "late"]],
        target="late",
        size=9,
        method=cb.Uniform(),
    )
    certificate = cb.certify(coreset, frame, draws=100)
    for shown in (coreset, certificate, coreset.model):
        text = shown._repr_html_()
        assert text.startswith("<div>") and "<script" not in text
    assert "&lt;script&gt;" in coreset._repr_html_()
    assert "1 more rows" in coreset._repr_html_()
    assert "KL(coreset" in certificate._repr_html_()
    mixed, _ = cb.from_formula("late ~ month + (1 | origin)", frame)
    assert "MixedRegression" in mixed._repr_html_() and "MixedRegression" in repr(mixed)


def test_plots_have_the_weights():
    pytest.importorskip("matplotlib").use("agg")
    frame = flights()
    coreset = cb.build(
        cb.LogisticRegression(prior=cb.Normal()),
        frame[["distance", "month", "late"]],
        target="late",
        size=9,
        method=cb.Uniform(),
    )
    first, second = coreset.plot()
    heights = [segment[1][1] for segment in first.collections[0].get_segments()]
    np.testing.assert_allclose(heights, np.sort(coreset.weights)[::-1])
    assert (second.get_xlabel(), second.get_ylabel()) == ("distance", "month")
    assert len(second.collections[0].get_offsets()) == 9
    import matplotlib.pyplot as plt

    plt.close("all")


def test_rows_that_count_zero_times_are_not_counted(tmp_path):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"x": rng.normal(size=200), "y": rng.integers(0, 2, 200)})
    frame.loc[[3, 5, 8], "x"] = np.nan
    with pytest.warns(UserWarning, match="3 rows with missing values are left out"):
        model, rows = cb.from_formula("y ~ x", frame, family="bernoulli", missing="drop")
    coreset = cb.build(model, rows, size=10, progress=False)
    coreset.save(tmp_path / "c.parquet")
    for one in (coreset, cb.load(tmp_path / "c.parquet")):
        assert (one.num_rows, one.num_counted) == (200, 197)
        assert "of 197 rows" in repr(one) and "of 197 rows" in one._repr_html_()
    assert "of 197 rows" in cb.certify(coreset, rows).verdict
    with pytest.warns(UserWarning, match="the same rows: they count twice"):
        later = cb.update(coreset, rows, size=10, progress=False)
    assert (later.num_rows, later.num_counted) == (400, 394)


def test_pictures_without_matplotlib_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    rows = np.random.default_rng(0).normal(size=(30, 2)), np.tile([0.0, 1.0], 15)
    coreset = cb.build(cb.LogisticRegression(), rows, size=4, method=cb.Uniform(), progress=False)
    bins = bins_of(np.arange(4.0), np.full((3, 5), 0.2))
    for plot in (coreset.plot, lambda: plot_bins(bins, "y")):
        with pytest.raises(ImportError, match=r"figures need matplotlib: pip install .*\[plot\]"):
            plot()
