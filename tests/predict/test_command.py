"""`corebayes predict` on files."""

import json

import numpy as np
import pandas as pd
import pytest

import corebayes as cb
from corebayes.cli.app import run


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=800), "g": rng.choice(["u", "v"], 800)})
    frame["y"] = (rng.random(800) < 1 / (1 + np.exp(-frame.a - (frame.g == "v")))).astype(int)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.drop(columns="y").iloc[:40].to_parquet(tmp_path / "new.parquet")
    model, rows = cb.from_formula("y ~ a + g", frame)
    cb.build(model, rows, size=12).save(tmp_path / "c.parquet")
    return tmp_path


def call(*arguments):
    with pytest.raises(SystemExit) as ended:
        run([str(argument) for argument in arguments])
    return ended.value.code


def test_predictions_are_shown_or_written(folder, capsys):
    rows = folder / "new.parquet"
    assert call("predict", folder / "c.parquet", rows) == 0
    assert "mean_lower" in capsys.readouterr().out
    out = folder / "p.parquet"
    assert call("predict", folder / "c.parquet", rows, "--out", out, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["num_rows"] == 40
    frame = pd.read_parquet(out)
    assert frame["mean"].between(0.0, 1.0).all()
    assert frame["mean_lower"].le(frame["mean_upper"]).all()


def test_what_cannot_be_predicted_is_one_sentence(folder, capsys):
    assert call("predict", folder / "c.parquet", folder / "none.parquet") == 2
    assert "there is no file" in capsys.readouterr().err
    assert call("predict", folder / "c.parquet", folder / "new.parquet", "--keep-draws") == 2
    assert "--out" in capsys.readouterr().err
    pd.DataFrame({"a": [1.0], "g": ["w"]}).to_csv(folder / "other.csv", index=False)
    assert call("predict", folder / "c.parquet", folder / "other.csv") == 2
    assert "'w' is none of the levels" in capsys.readouterr().err
