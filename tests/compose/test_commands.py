"""The commands update, merge and refit, from files to files."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corebayes as cb
from corebayes.cli import app
from tests.compose.rows import piece


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        X, y = piece(number, 2000)
        np.savez(f"n{number}.npz", X=X, y=y)

    def call(line):
        with pytest.raises(SystemExit) as exit_:
            app.run(line.split())
        return exit_.value.code, *capsys.readouterr()

    return call


def test_a_table_that_grows_and_another_one(call):
    build = "--model logistic --prior-sd 1 --size 12"
    assert call(f"build n0.npz {build} --reserve 30 --out a.parquet")[0] == 0
    code, out, _ = call("update a.parquet n1.npz --name monday --out b.parquet --json")
    told = json.loads(out)
    assert code == 0 and told["sources"] == ["source-0", "monday"] and told["num_rows"] == 4000
    assert told["reserve"] > 12 and told["step"]["kind"] == "update"
    assert call(f"build n2.npz {build} --out c.parquet")[0] == 0
    code, out, _ = call("merge b.parquet c.parquet --out d.parquet --size 12")
    assert code == 0 and "12 of 6,000 rows are in d.parquet" in out
    merged = cb.load("d.parquet")
    assert [s.name for s in merged.sources] == ["b/source-0", "b/monday", "c"]
    assert cb.certify(merged, [piece(number, 2000) for number in range(3)]).certified
    code, out, _ = call("refit d.parquet --prior-sd 2 --draws 250 --json")
    told = json.loads(out)
    assert code == 1 and told["certificate"] is None and told["distance"] < 0.1
    around = "--around d.parquet"
    assert call(f"build n2.npz {build} --reserve 30 {around} --out e.parquet")[0] == 2
    assert call(f"build n2.npz {build} {around} --out e.parquet")[0] == 0
    assert call(f"merge b.parquet e.parquet --size 12 {around} --out f.parquet")[0] == 0
    code, _, err = call("merge b.parquet --out e.parquet")
    assert code == 2 and "at least two" in err


def test_all_sources_and_the_sum_of_steps(call):
    build = "build n0.npz --model logistic --prior-sd 1 --size 12 --out a.parquet"
    assert call(build)[0] == 0
    assert call("certify a.parquet --note")[0] == 2
    code, _, err = call("certify a.parquet n0.npz --note --draws 400")
    assert code == 0, err
    assert call("update a.parquet n1.npz --certify --out b.parquet")[0] == 0
    code, out, _ = call("certify b.parquet n0.npz n1.npz --draws 400 --json")
    told = json.loads(out)
    assert code == 0 and told["rows"] == ["n0.npz", "n1.npz"]
    code, out, _ = call("certify b.parquet --json")
    told = json.loads(out)
    assert code == 0 and told["rows"] is None and "By the sum of its 2 steps" in told["verdict"]
    code, out, _ = call("refit b.parquet --prior-sd 2 --data n0.npz --data n1.npz --draws 250")
    assert code == 0 and "of 4,000 rows" in out


def test_categories_by_a_formula_are_counted(call):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"a": rng.choice(["u", "v", "w"], 900)})
    frame["y"] = (rng.random(900) < 0.4).astype(float)
    frame.to_parquet("few.parquet")
    line = "build few.parquet --model logistic --formula y~a --size 6 --duplicates count"
    code, out, err = call(line + " --out f.parquet --json")
    assert code == 0, err
    assert json.loads(out)["num_rows"] == 6 and json.loads(out)["total_count"] == 900
    code, out, err = call("certify f.parquet few.parquet")
    assert code == 0 and "6 of 6 rows" in out, err


def test_repeated_rows_are_remembered(call):
    X = np.tile([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], (200, 1))
    y = (np.random.default_rng(0).random(600) < 0.4).astype(float)
    np.savez("few.npz", X=X, y=y)
    line = "build few.npz --model logistic --prior-sd 1 --size 4 --duplicates count"
    line += " --out f.parquet --json"
    code, out, _ = call(line)
    assert code == 0 and json.loads(out)["num_rows"] == 6
    assert json.loads(out)["total_count"] == 600
    assert call("certify f.parquet few.npz --tol 1")[0] in (0, 1)


@pytest.mark.parametrize(
    ("how", "suffix"), [("--target y --features a,b", "parquet"), ("--formula y~a+b", "csv")]
)
def test_patients_enter_as_a_whole(call, suffix, how):
    pandas = pytest.importorskip("pandas")
    X, y = piece(5, 600)
    frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y})
    frame["who"] = [f"P{number % 200}" for number in range(600)]
    frame.to_parquet("v.parquet")
    frame.to_csv("v.csv", index=False)
    line = f"build v.{suffix} --model logistic {how} --unit who --size 12 --out u.parquet --json"
    code, out, err = call(line)
    assert code == 0, err
    assert json.loads(out)["num_rows"] == 200
    code, out, err = call(f"certify u.parquet v.{suffix} --tol 0.1")
    assert code == 0, err
    assert "units" in out


def test_a_night_without_rows(call):
    assert call("build n0.npz --model logistic --prior-sd 1 --size 12 --out a.parquet")[0] == 0
    np.savez("none.npz", X=np.ones((0, 3)), y=np.ones(0))
    code, out, err = call("update a.parquet none.npz --out b.parquet --json")
    told = json.loads(out)
    assert code == 0 and "the coreset of 12 rows stays as it is" in err
    assert told["num_rows"] == 2000 and told["step"] is None
    assert np.array_equal(cb.load("b.parquet").weights, cb.load("a.parquet").weights)


def test_what_is_missing_is_called_by_its_name_and_units_are_counted(call, tmp_path):
    X, y = piece(5, 600)
    table = {"x": X[:, 0], "z": X[:, 1], "y": y, "patient": np.arange(600) // 4}
    pq.write_table(pa.table(table), tmp_path / "rows.parquet")
    build = "build rows.parquet --model logistic --target y --size 8"
    for name, columns in (("a", "x,z"), ("b", "x"), ("u", "x,z --unit patient")):
        assert call(f"{build} --features {columns} --out {name}.parquet")[0] == 0
    code, _, told = call("merge a.parquet b.parquet --out c.parquet")
    assert code != 0 and "column 2 is 'z' in one and missing in the other" in told
    code, out, _ = call("update u.parquet rows.parquet --name again --out v.parquet")
    assert code == 0 and "of 300 units are in" in out and "units for the next time" in out
    assert "--data" in call("refit a.parquet --features x --draws 100")[1]
