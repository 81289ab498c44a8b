"""The commands on the posterior of all rows."""

import json

import numpy as np
import pytest

from corebayes.cli.app import run
from tests.exact.rows import poisson_rows


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    import pandas as pd

    folder = tmp_path_factory.mktemp("exact")
    X, y = poisson_rows(300, 2, seed=8)
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}).to_parquet(folder / "rows.parquet")
    rows, coreset = str(folder / "rows.parquet"), str(folder / "coreset.parquet")
    command = ["build", rows, "--model", "poisson-log", "--target", "y", "--size", "6"]
    assert ended([*command, "--out", coreset]) == 0
    return coreset, rows


def ended(arguments):
    with pytest.raises(SystemExit) as exit_:
        run(arguments)
    return exit_.value.code


def test_correct_writes_draws_and_says_what_it_took(files, tmp_path, capsys):
    out = tmp_path / "posterior.nc"
    assert ended(["correct", *files, "--draws", "100", "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "accepted on all rows" in told
    assert "over the rows" in told
    assert out.exists()


def test_correct_in_json(files, capsys):
    capsys.readouterr()
    assert ended(["correct", *files, "--draws", "100", "--method", "psis", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["command"] == "correct"
    assert len(found["parameters"]) == 2
    assert found["num_passes"] == 1


def test_evidence_and_loo_in_json(files, capsys):
    capsys.readouterr()
    assert ended(["evidence", *files, "--draws", "400", "--json"]) == 0
    evidence = json.loads(capsys.readouterr().out)
    assert ended(["loo", *files, "--draws", "100", "--json"]) == 0
    loo = json.loads(capsys.readouterr().out)
    assert loo["n_data_points"] == 300
    # Both are sums of 300 log densities, and the prior costs the evidence some nats.
    assert 0.0 < loo["elpd_loo"] - evidence["log_evidence"] < 20.0
    assert np.isfinite(evidence["standard_error"])


def test_in_words(files, capsys):
    assert ended(["evidence", *files]) == 0
    assert ended(["loo", *files]) == 0
    told = capsys.readouterr().out
    assert "log evidence of 300 rows" in told
    assert "elpd_loo" in told


def test_a_method_that_is_none_is_one_sentence(files, capsys):
    assert ended(["correct", *files, "--method", "magic"]) == 2
    assert capsys.readouterr().err.strip().count("\n") == 0


def test_what_a_terminal_would_obey_is_not_printed(files, capsys):
    assert ended(["evidence", files[0], "rows\x1b[2J.csv"]) == 2
    assert "\x1b" not in capsys.readouterr().err
