"""Formulas on the command line: which level is 1, and what happens to missing values."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

import corebayes as cb
from corebayes.cli.app import run


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_two_levels_and_missing_values(tmp_path, capsys, suffix):
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"x": rng.normal(size=60), "t": rng.uniform(size=60)})
    # No formula could use it, and none has to.
    frame["when"] = pandas.date_range("2020", periods=60)
    frame["late"] = np.where(frame["x"] + rng.logistic(size=60) > 0, "yes", "no")
    frame.loc[[3, 7], "x"] = np.nan
    rows, out = tmp_path / f"rows{suffix}", tmp_path / "coreset.parquet"
    if suffix == ".csv":
        frame.to_csv(rows, index=False)
    else:
        frame.to_parquet(rows)
    words = [
        "build",
        str(rows),
        "--model",
        "logistic",
        "--formula",
        "late ~ . - when - x + scale(x)",
    ]
    words += ["--size", "5", "--out", str(out)]
    with pytest.raises(SystemExit) as left:
        run(words)
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert "so are 2 of 60 values there" in said and "--missing drop" in said
    with pytest.raises(SystemExit) as left:
        run([*words, "--missing", "drop"])
    assert left.value.code in (0, None)
    said = capsys.readouterr().err
    assert "y is 1 where late = yes, and 0 elsewhere" in said
    assert "2 rows with missing values are left out" in said
    coreset = cb.load(out)
    assert coreset.total_count == 58 and not {3, 7} & set(coreset.indices.tolist())
    # The same columns, and the same rows left out, without being told again.
    with pytest.raises(SystemExit) as left:
        run(["certify", str(out), str(rows)])
    assert left.value.code in (0, 1, None)
    assert "of 58 rows" in capsys.readouterr().out


def test_an_empty_cell_of_a_text_is_missing(tmp_path, capsys):
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"x": rng.normal(size=60), "late": rng.choice(["yes", "no"], 60)})
    frame["city"] = rng.choice(["Oslo", "Rome"], 60)
    frame.loc[[2, 9, 11], "city"] = None
    rows, out = tmp_path / "rows.csv", tmp_path / "coreset.parquet"
    frame.to_csv(rows, index=False)
    words = ["build", str(rows), "--model", "logistic", "--formula", "late ~ x + city"]
    words += ["--size", "5", "--out", str(out)]
    with pytest.raises(SystemExit) as left:
        run(words)
    assert left.value.code == 2 and "column 'city'" in capsys.readouterr().err
    with pytest.raises(SystemExit) as left:
        run([*words, "--missing", "drop"])
    assert left.value.code in (0, None)
    # The model is written with the target's own name.
    assert "late == 'yes' ~ Bernoulli(" in capsys.readouterr().out
    assert cb.load(out).model.parameter_names == ("Intercept", "x", "city[T.Rome]")
