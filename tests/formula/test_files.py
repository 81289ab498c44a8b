"""Formulas of Parquet files, read in parts: the same columns as from a frame in memory."""

import numpy as np
import pandas as pd
import pytest

import corebayes as cb
from corebayes.formula import rows as formula_rows
from corebayes.formula.rows import design_rows

FORMULAS = [
    "y ~ x + g + (1 | g)",
    "y ~ scale(x) + C(k) + (1 + z | g) + (1 | k)",
    "y ~ bs(x, df=4) + scale(log(w)) + (1 | g:flag) + (0 + x | k)",
    "y ~ poly(scale(x), 2) + shade + (1 | g/k)",
    "late ~ x + flag + offset(log(w)) + (1 | shade)",
    "y ~ . - late - w",
]


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch):
    monkeypatch.setattr(formula_rows, "HELD_NUMBERS", 0)


def table(num_rows: int = 5000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=num_rows),
            "z": rng.normal(size=num_rows),
            "w": rng.gamma(2.0, size=num_rows),
            "g": np.array(["ü", "b", "AA", "a b"])[rng.integers(4, size=num_rows)],
            "k": rng.integers(3, 7, size=num_rows),
            "flag": rng.random(num_rows) < 0.3,
            "shade": pd.Categorical.from_codes(
                rng.integers(3, size=num_rows), ["pale", "dark", "black"]
            ),
        }
    )
    # A group that only the last rows have.
    frame.loc[num_rows - 40 :, "g"] = "zz"
    eta = 0.5 * frame.x - 0.3 * frame.z + frame.g.map({"ü": 1.0, "b": -1.0}).fillna(0.0)
    frame["y"] = eta + rng.normal(size=num_rows)
    frame["late"] = np.where(eta + rng.logistic(size=num_rows) > 0, "yes", "no")
    return frame


def written(frame: pd.DataFrame, folder, row_group_size: int = 700) -> str:
    """Two files, of several row groups each."""
    middle = len(frame) // 3
    frame[:middle].to_parquet(folder / "a.parquet", row_group_size=row_group_size)
    frame[middle:].to_parquet(folder / "b.parquet", row_group_size=row_group_size)
    return str(folder)


@pytest.mark.parametrize("formula", FORMULAS)
def test_files_make_the_columns_of_a_frame(formula, tmp_path):
    frame = table()
    held, stored = design_rows(formula, frame), design_rows(formula, written(frame, tmp_path))
    assert stored.column_names == held.column_names and stored.target_name == held.target_name
    known = {name: value for name, value in held.design.items() if name != "states"}
    assert {name: value for name, value in stored.design.items() if name != "states"} == known
    numbers = np.array([4999, 0, 1666, 1667, 3210])
    for rows in (numbers, np.arange(len(frame))):
        np.testing.assert_allclose(stored.take(rows).X, held.take(rows).X, atol=1e-12)
        np.testing.assert_array_equal(stored.take(rows).y, held.take(rows).y)


def test_a_mixed_model_of_files_is_built_certified_and_sampled(tmp_path):
    path = written(table(20_000, seed=4), tmp_path, 3000)
    model, rows = cb.from_formula("late ~ x + z + (1 | g)", path, family="bernoulli", memory="1GB")
    coreset = cb.build(model, rows, size=40, seed=1, progress=False)
    found = cb.certify(coreset, path, tol=0.02, seed=2)
    assert found.certified, found
    held = cb.from_formula("late ~ x + z + (1 | g)", table(20_000, seed=4), family="bernoulli")
    other = cb.certify(coreset, held[1], tol=0.02, seed=2)
    assert found.reverse_kl.value == pytest.approx(other.reverse_kl.value, abs=1e-6)
    effects = cb.sample(coreset, draws=400, chains=2, seed=3).posterior
    assert "zz" in str(effects.coords)


@pytest.mark.slow
def test_passes_on_processes_see_the_same(tmp_path):
    path = written(table(9000, seed=7), tmp_path, 2000)
    model, rows = cb.from_formula("y ~ x + (1 | g)", path, family="gaussian")
    one = cb.build(model, rows, size=40, seed=1, progress=False)
    with cb.processes(2) as executor:
        two = cb.build(model, rows, size=40, seed=1, progress=False, executor=executor)
    np.testing.assert_array_equal(one.indices, two.indices)
    np.testing.assert_array_equal(one.weights, two.weights)


def test_missing_values_are_named_or_dropped(tmp_path):
    frame = table(3000, seed=2)
    frame.loc[[5, 2100, 2999], "x"] = np.nan
    frame.loc[700:1500, "g"] = None
    path = written(frame, tmp_path, 250)
    message = r"row 5, column 'x' is missing; so are 3 of 3,000 values there and 801 in 'g'"
    with pytest.raises(ValueError, match=message):
        cb.from_formula("y ~ x + (1 | g)", path, family="gaussian")
    with pytest.warns(UserWarning, match="804 rows with missing values are left out"):
        model, rows = cb.from_formula("y ~ x + (1 | g)", path, family="gaussian", missing="drop")
    assert rows.total_count == 3000 - 804
    coreset = cb.build(model, rows, size=30, seed=0, progress=False)
    assert not np.isin(coreset.indices, [5, 2100, 2999, *range(700, 1501)]).any()
    assert cb.certify(coreset, path, tol=0.05).certified


def test_rows_of_other_files_that_do_not_fit_are_named(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    frame = table(3000)
    model, rows = cb.from_formula(
        "y ~ x + (1 | g)", written(frame, tmp_path / "one"), family="gaussian"
    )
    coreset = cb.build(model, rows, size=30, seed=0, progress=False)
    frame.loc[2345, "g"] = "new"
    with pytest.raises(ValueError, match="row 2345, column 'g': the group 'new' is not one"):
        cb.certify(coreset, written(frame, tmp_path / "two"))


def test_counts_are_a_column(tmp_path):
    frame = table(4000, seed=3).assign(often=lambda f: 1 + f.k % 3)
    path = written(frame, tmp_path)
    held = design_rows("y ~ x + (1 | g)", frame, counts="often")
    stored = design_rows("y ~ x + (1 | g)", path, counts="often")
    assert stored.total_count == held.total_count
    some = np.array([3, 1999, 3999])
    np.testing.assert_array_equal(stored.take(some).counts, held.take(some).counts)


def test_bad_columns_are_sentences(tmp_path):
    frame = table(2000)
    path = written(frame.assign(day=pd.Timestamp("2024-01-01")), tmp_path)
    with pytest.raises(ValueError, match="row 0, column 'x' is no group"):
        design_rows("y ~ z + (1 | x)", path)
    with pytest.raises(ValueError, match="'day' holds timestamp"):
        design_rows("y ~ day", path)
    with pytest.raises(ValueError, match="nope"):
        design_rows("y ~ nope", path)
    (tmp_path / "mixed").mkdir()
    frame[:900].to_parquet(tmp_path / "mixed" / "a.parquet")
    frame[900:].assign(g=1.0).to_parquet(tmp_path / "mixed" / "b.parquet")
    with pytest.raises(ValueError, match="'g' holds"):
        design_rows("y ~ x + (1 | g)", str(tmp_path / "mixed"))
    with pytest.raises(TypeError, match="path of Parquet files"):
        design_rows("y ~ x", "table.txt")


def test_folders_that_spell_a_column_out(tmp_path):
    frame = table(4000)
    frame.to_parquet(tmp_path / "parts", partition_cols=["g"])
    stored = design_rows("y ~ x + (1 | g)", str(tmp_path / "parts"))
    assert stored.design["groups"][0]["levels"] == [sorted(set(frame.g))]
    assert stored.num_rows == 4000
