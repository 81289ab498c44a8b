"""Trials, offsets, exposures and events on the command line, without a formula."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

import corebayes as cb
from corebayes.cli.app import run

CASES = {
    "binomial": ("binomial", ["--trials", "n"]),
    "poisson": ("poisson", ["--exposure", "n", "--offset", "z"]),
    "weibull": ("weibull", ["--event", "seen"]),
}


def table() -> pandas.DataFrame:
    rng = np.random.default_rng(0)
    x, n = rng.normal(size=80), rng.integers(1, 9, 80)
    seen, z = (rng.uniform(size=80) < 0.8) * 1.0, 0.3 * rng.normal(size=80)
    wins = rng.binomial(n, 1.0 / (1.0 + np.exp(-x)))
    columns = {"x": x, "n": n, "seen": seen, "z": z, "wins": wins + 0.0}
    return pandas.DataFrame({**columns, "wait": rng.weibull(1.5, 80) * np.exp(0.3 * x)})


def leave(words: list[str]) -> int:
    with pytest.raises(SystemExit) as left:
        run(words)
    return int(left.value.code or 0)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == "poisson" else pytest.mark.slow) for n in CASES]
)
def test_columns_of_rows_are_no_features(tmp_path, name):
    model, options = CASES[name]
    rows, out = tmp_path / "rows.csv", tmp_path / "c.parquet"
    table().to_csv(rows, index=False)
    target = "wait" if name == "weibull" else "wins"
    words = ["build", str(rows), "--model", model, "--target", target, "--features", "x"]
    words += [*options, "--intercept", "--size", "12", "--out", str(out)]
    assert leave(words) == 0
    coreset = cb.load(out)
    assert coreset.model.fixed_names == ("x", "intercept")
    given = dict(zip([word[2:] for word in options[::2]], options[1::2], strict=True))
    assert coreset.model.family.row_columns == given
    assert leave(["certify", str(out), str(rows)]) in (0, 1)


def test_what_means_nothing_is_refused(tmp_path, capsys):
    rows, out = tmp_path / "rows.csv", tmp_path / "c.parquet"
    table().to_csv(rows, index=False)
    words = ["build", str(rows), "--model", "linear", "--target", "wait", "--size", "5"]
    assert leave([*words, "--trials", "n", "--out", str(out)]) == 2
    assert "--trials means nothing to the linear model" in capsys.readouterr().err


@pytest.mark.parametrize("name", CASES)
def test_they_go_with_a_formula_too(tmp_path, name):
    model, options = CASES[name]
    rows, out = tmp_path / "rows.csv", tmp_path / "c.parquet"
    table().to_csv(rows, index=False)
    target = "wait" if name == "weibull" else "wins"
    words = ["build", str(rows), "--model", model, "--formula", f"{target} ~ x", *options]
    words += ["--method", "uniform"]
    assert leave([*words, "--size", "12", "--out", str(out)]) == 0
    written = cb.load(out).provenance["design"]["formula"]
    assert (
        written
        == {
            "binomial": "p(wins, `n`) ~ x",
            "poisson": "wins ~ x + offset(`z`) + offset(log(`n`))",
            "weibull": "Surv(wait, `seen`) ~ x",
        }[name]
    )
    if name == "poisson":
        # The others take longer, and are read in the same way.
        assert leave(["certify", str(out), str(rows)]) in (0, 1)
