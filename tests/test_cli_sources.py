"""The command line on files that are not read whole, and on several processes."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import corebayes as cb
from corebayes.cli import app as cli
from tests.problems import coins

NUM_ROWS = 900


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, NUM_ROWS))
    delayed = coins(rng, 1.5 * a - 0.5 * b)
    table = pa.table({"a": a, "b": b, "delayed": delayed})
    (tmp_path / "rows").mkdir()
    for k in range(3):
        pq.write_table(table.slice(300 * k, 300), f"rows/{k}.parquet", row_group_size=100)
    return table


@pytest.fixture
def call(table, capsys):
    def call(line: str):
        with pytest.raises(SystemExit) as exit_:
            cli.run(line.split())
        out, err = capsys.readouterr()
        return exit_.value.code, out, err

    return call


OPTIONS = "--target delayed --model logistic --prior-sd 1 --size 15 --seed 3 --out coreset.parquet"


@pytest.mark.parametrize("rows", ["rows", "rows/*.parquet"])
def test_a_folder_and_a_pattern_are_rows(call, table, rows):
    code, out, err = call(f"build {rows} {OPTIONS}")
    assert (code, err) == (0, "") and "15 of 900 rows" in out
    expected = cb.build(
        cb.LogisticRegression(prior=cb.Normal()), table, target="delayed", size=15, seed=3
    )
    written = cb.load("coreset.parquet")
    # Sums over other blocks differ in their last digits, and so may the choice of the last rows.
    assert np.intersect1d(written.indices, expected.indices).size >= 12
    assert written.weights.sum() == pytest.approx(expected.weights.sum(), rel=0.2)


@pytest.mark.slow
def test_workers_give_the_same_coreset_and_certificate(call):
    assert call(f"build rows {OPTIONS}")[0] == 0
    alone = cb.load("coreset.parquet")
    code, _, err = call(f"build rows {OPTIONS} --workers 2")
    assert (code, err) == (0, "")
    together = cb.load("coreset.parquet")
    assert np.array_equal(together.indices, alone.indices)
    assert np.array_equal(together.weights, alone.weights)
    first = call("certify coreset.parquet rows --json")
    second = call("certify coreset.parquet rows --json --workers 2")
    assert json.loads(first[1]) == json.loads(second[1])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"build nothing/*.parquet {OPTIONS}", "nothing/*.parquet"),
        (f"build rows {OPTIONS} --workers 0", "at least 1, got 0"),
        (f"build rows {OPTIONS} --workers 2 --dask tcp://127.0.0.1:1", "--dask"),
        (f"build rows --target delay {OPTIONS[17:]}", "did you mean 'delayed'"),
    ],
)
def test_errors_are_one_sentence(call, line, words):
    code, out, err = call(line)
    assert (code, out) == (2, "") and words in err and err.count("\n") == 1


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_formula_names_the_columns_of_the_posterior(call, table, suffix):
    group = pa.array(np.array(["north", "south", "west"])[np.arange(NUM_ROWS) % 3])
    whole = pa.array(table["delayed"].to_numpy().astype(int))
    grouped = pa.table({"a": table["a"], "g": group, "late": whole})
    write = pa.csv.write_csv if suffix == "csv" else pq.write_table
    write(grouped, f"grouped.{suffix}")
    code, out, err = call(
        f"build grouped.{suffix} --formula late~a+C(g) --model logistic --size 20 --seed 3 "
        "--out coreset.parquet"
    )
    assert (code, err) == (0, "") and "20 of 900 rows" in out
    model, data = cb.from_formula("late ~ a + C(g)", grouped, family="logistic")
    expected = cb.build(model, data, size=20, seed=3)
    assert np.array_equal(cb.load("coreset.parquet").indices, expected.indices)
    drawn = "sample coreset.parquet --draws 100 --chains 2 --out draws.nc"
    code, out, _ = call(drawn)
    names = ["Intercept", "a", "C(g)[T.south]", "C(g)[T.west]"]
    assert code == 0 and all(name in out for name in names)
    # The rows are read again as the formula says, without saying it again.
    assert call(f"certify coreset.parquet grouped.{suffix}")[0] == 0


def test_a_formula_with_group_terms(call, table):
    groups = np.array(["p", "q", "r"])[np.random.default_rng(4).integers(0, 3, size=NUM_ROWS)]
    pyarrow.csv.write_csv(table.append_column("g", pa.array(groups)), "grouped.csv")
    code, out, err = call(
        "build grouped.csv --model bernoulli --formula delayed~a+(1+b|g) --group-sd 2 --size 40 "
        "--out coreset.parquet --json"
    )
    assert code == 0, err
    names = ["Intercept", "a", "log 1|g_sigma", "log b|g_sigma", "1|g[p]", "b|g[p]"]
    assert json.loads(out)["parameters"][:6] == names
    loaded = cb.load("coreset.parquet")
    assert loaded.model.terms[0].scales == (cb.HalfNormal(2.0),) * 2
    code, out, err = call("certify coreset.parquet grouped.csv --json")
    assert code == 0, err
    assert json.loads(out)["certified"]
    code, out, err = call(
        "build grouped.csv --model linear --formula delayed~a --group-sd 2 --size 9 "
        "--out other.parquet"
    )
    assert code == 2 and "group_sd is for formulas with group terms" in err


@pytest.mark.slow
def test_whole_groups_are_units(call, table):
    groups = np.random.default_rng(5).integers(0, 24, size=NUM_ROWS)
    pyarrow.csv.write_csv(table.append_column("g", pa.array(groups)), "grouped.csv")
    command = "build grouped.csv --model bernoulli --formula delayed~a+(1|g) --out groups.parquet"
    code, out, err = call(f"{command} --unit group --size 10")
    assert code == 0 and "10 of 24 groups are in groups.parquet" in out, err
    assert isinstance(cb.load("groups.parquet"), cb.GroupCoreset)
    code, out, err = call("sample groups.parquet --draws 100 --json")
    assert code == 0, err
    assert [one["name"] for one in json.loads(out)["parameters"]] == ["Intercept", "a", "1|g_sigma"]
    code, out, err = call("certify groups.parquet grouped.csv --tol 0.05")
    assert code == 0 and "10 of 24 groups" in out, err
    code, out, err = call(f"{command} --rows-per-group 8 --json")
    assert code == 0 and json.loads(out)["size"] <= 8 * 24, err
