"""The command line: the same results as the library, errors in one sentence."""

import json
import re
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import corebayes as cb
from corebayes.cli import app as cli
from corebayes.cli.inputs import MODELS, ModelOptions, make_model
from corebayes.rows import open_rows
from tests.problems import coins

NUM_ROWS = 400


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, NUM_ROWS))
    y = coins(rng, 1.5 * a - 0.5 * b + 0.3)
    n = 1 + rng.integers(3, size=NUM_ROWS)
    return pa.table({"a": a, "b": b, "y": y.astype(np.int64), "n": n})


@pytest.fixture
def folder(tmp_path, table, monkeypatch):
    monkeypatch.chdir(tmp_path)
    a, b, y, n = (table.column(name).to_numpy() for name in table.column_names)
    pa.parquet.write_table(table, "rows.parquet")
    pa.csv.write_csv(table, "rows.csv")
    np.savez("rows.npz", X=np.column_stack([a, b]), y=y, n=n)
    np.save("rows.npy", np.column_stack([a, b, y, n]))
    return tmp_path


@pytest.fixture
def call(folder, capsys):
    """Run a command line: exit code, stdout, stderr."""

    def call(line: str):
        with pytest.raises(SystemExit) as exit_:
            cli.run(line.split())
        out, err = capsys.readouterr()
        return exit_.value.code, out, err

    return call


BUILD = "--model logistic --intercept --prior-sd 1 --size 8 --seed 3 --out coreset.parquet"
SOURCES = {
    "rows.parquet": "--target y --features a,b --counts n",
    "rows.csv": "--target y --counts n",
    "rows.npz": "--counts n",
    "rows.npy": "--target 2 --counts 3",
}


@pytest.mark.parametrize("source", SOURCES)
def test_build_writes_the_coreset_that_the_library_builds(call, table, source):
    code, out, err = call(f"build {source} {SOURCES[source]} {BUILD}")
    assert (code, err) == (0, "")
    assert f"8 of {NUM_ROWS} rows" in out and "coreset.parquet" in out
    model = cb.LogisticRegression(intercept=True, prior=cb.Normal())
    expected = cb.build(model, table, target="y", counts="n", size=8, seed=3)
    written = cb.load("coreset.parquet")
    assert np.array_equal(written.indices, expected.indices)
    # The closest two decimal numbers in a .csv are the same number: every source is exact.
    assert np.array_equal(written.weights, expected.weights)
    assert np.array_equal(written.rows.counts, expected.rows.counts)


def test_build_prints_one_json_object(call):
    code, out, err = call(f"build rows.parquet --target y --features a,b {BUILD} --json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert out.count("\n") == 1
    assert found["size"] == 8 and found["num_rows"] == NUM_ROWS
    assert found["reason"] == cb.load("coreset.parquet").reason != ""
    assert found["parameters"] == ["a", "b", "intercept"]


def test_build_names_the_columns_of_the_file(call):
    call(f"build rows.csv --target y --features b,a {BUILD}")
    names = pa.parquet.read_table("coreset.parquet").column_names
    assert names[:5] == ["row_id", "weight", "b", "a", "y"]


def test_build_stops_at_a_tolerance_or_a_time(call):
    line = "build rows.npz --model logistic --out coreset.parquet --json"
    _, out, _ = call(f"{line} --tol 0.05")
    assert json.loads(out)["reason"].startswith("certified KL(π_w ‖ π) ≤ 0.05")
    _, out, _ = call(f"{line} --size 100 --max-time 1e-9")
    assert json.loads(out)["reason"].startswith("time limit")


def test_uniform_and_dropped_rows(call, table):
    a = table.column("a").to_numpy().copy()
    a[17] = np.nan
    pa.parquet.write_table(table.set_column(0, "a", pa.array(a)), "bad.parquet")
    line = f"build bad.parquet --target y {BUILD} --method uniform"
    code, out, err = call(line)
    assert (code, out) == (2, "") and "row 17" in err and "'a'" in err
    code, out, err = call(f"{line} --on-bad drop")
    assert code == 0 and "corebayes: warning:" in err and "row 17" in err
    assert cb.load("coreset.parquet").total_count == NUM_ROWS - 1
    # What was dropped once is dropped again, without being told.
    code, _, err = call("certify coreset.parquet bad.parquet")
    assert code == 1 and "row 17" in err


def test_sample_prints_a_table_and_writes_netcdf(call):
    call(f"build rows.parquet --target y --features a,b {BUILD}")
    code, out, err = call("sample coreset.parquet --draws 200 --chains 2 --out posterior.nc")
    assert (code, err) == (0, "")
    header, first = out.splitlines()[:2]
    assert header.split() == ["parameter", "mean", "sd", "5%", "95%", "ess", "r_hat"]
    assert first.split()[0] == "a"
    import arviz

    posterior = arviz.from_netcdf("posterior.nc").posterior
    draws = posterior["a"].values
    assert draws.shape == (2, 200)
    assert float(first.split()[1]) == pytest.approx(draws.mean(), rel=1e-3)
    code, out, _ = call("sample coreset.parquet --draws 200 --chains 2 --json")
    found = {entry["name"]: entry for entry in json.loads(out)["parameters"]}
    assert list(found) == ["a", "b", "intercept"]
    assert found["a"]["mean"] == draws.mean()
    assert found["a"]["sd"] == pytest.approx(draws.std(ddof=1))
    assert found["a"]["5%"] == pytest.approx(np.quantile(draws, 0.05))
    assert 20 < found["a"]["ess"] < 2000 and 0.98 < found["a"]["r_hat"] < 1.1


def test_certify_tells_good_from_bad(call):
    columns = "--target y --features a,b"
    call(f"build rows.parquet {columns} {BUILD.replace('--size 8', '--size 25')}")
    code, out, err = call("certify coreset.parquet rows.parquet --json")
    good = json.loads(out)
    assert (code, err) == (0, "") and good["certified"]
    expected = cb.certify(
        cb.load("coreset.parquet"),
        pa.parquet.read_table("rows.parquet"),
        target="y",
        features=["a", "b"],
    )
    assert good["reverse_kl"]["value"] == expected.reverse_kl.value
    call(f"build rows.parquet {columns} {BUILD} --method uniform")
    code, out, _ = call("certify coreset.parquet rows.parquet")
    assert code == 1 and "Not certified" in out


ERRORS = {
    "build rows.parquet --model logstic --target y --size 5 --out c.parquet": "'logistic'",
    "build rows.parquet --model logistic --target y --out c.parquet": "--size",
    "build rows.parquet --model logistic --size 5 --out c.parquet": "target",
    "build rows.parquet --model logistic --target yy --size 5 --out c.parquet": "'yy'",
    "build rows.parquet --model logistic --target y --features a,c --size 5 --out c.parquet": "'c'",
    "build rows.parquet --model logistic --target y --size 0 --out c.parquet": "0",
    "build rows.parquet --model logistic --target y --size 5000 --out c.parquet": "5000",
    "build rows.parquet --model logistic --target y --size five --out c.parquet": "--size",
    "build rows.parquet --model logistic --target a --size 5 --out c.parquet": "row 0",
    "build rows.parquet --model logistic --target y --size 5 --out c.csv": ".parquet",
    "build rows.parquet --model logistic --target y --size 5 --out no/c.parquet": "no",
    "build rows.parquet --model logistic --target y --size 5": "--out",
    "build rows.parquet --model logistic --target y --tol 0.1 --method unifrom --out c.parquet": (
        "'uniform'"
    ),
    "build rows.parquet --model logistic --target y --size 5 --noise-sd 2 --out c.parquet": (
        "--noise-sd"
    ),
    "build rows.parquet --model linear --target y --size 5 --noise-sd -2 --out c.parquet": "-2",
    "build rows.parquet --model linear --target y --size 5 --prior-sd 0 --out c.parquet": "prior",
    "build rows.parquet --model gaussian-mean --intercept --size 5 --out c.parquet": "--intercept",
    "build rows.npz --model logistic --target y --size 5 --out c.parquet": "--target",
    "build rows.npy --model logistic --target 9 --size 5 --out c.parquet": "9",
    "build rows.txt --model logistic --target y --size 5 --out c.parquet": "rows.txt",
    "build broken.parquet --model logistic --target y --size 5 --out c.parquet": "broken.parquet",
    "build broken.npz --model logistic --size 5 --out c.parquet": "broken.npz",
    "build pickle.npy --model logistic --target 0 --size 5 --out c.parquet": "pickle.npy",
    "build nothing.csv --model logistic --target y --size 5 --out c.parquet": "nothing.csv",
    "sample nothing.parquet": "nothing.parquet",
    "sample rows.parquet": "rows.parquet",
    "sample broken.parquet": "broken.parquet",
    "certify nothing.parquet rows.parquet": "nothing.parquet",
    "demo --rows 0": "--rows",
    "biuld": "build",
}


@pytest.mark.parametrize("line", ERRORS)
def test_errors_are_one_sentence_with_exit_code_2(call, folder, line):
    (folder / "rows.txt").write_text("a b\n1 2\n")
    (folder / "broken.parquet").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    (folder / "broken.npz").write_bytes(b"PK\x03\x04" + bytes(50))
    np.save("pickle.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    code, out, err = call(line)
    assert (code, out) == (2, "")
    assert err.startswith("corebayes: ") and err.count("\n") == 1
    assert ERRORS[line] in err
    assert not (folder / "c.parquet").exists()


def test_another_data_set_is_refused(call, table):
    call(f"build rows.parquet --target y --features a,b {BUILD}")
    pa.parquet.write_table(table.slice(0, NUM_ROWS - 1), "other.parquet")
    code, out, err = call("certify coreset.parquet other.parquet")
    assert (code, out) == (2, "") and "399" in err


@pytest.mark.parametrize(
    ("error", "words"),
    [(MemoryError(), "memory"), (ZeroDivisionError("by zero"), "ZeroDivisionError")],
)
def test_no_error_is_a_traceback(call, monkeypatch, error, words):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(cb, "build", fail)
    code, out, err = call(f"build rows.parquet --target y {BUILD}")
    assert (code, out) == (2, "") and words in err and err.count("\n") == 1


def test_a_missing_library_is_named_with_its_extra(call, monkeypatch):
    call(f"build rows.parquet --target y {BUILD}")
    monkeypatch.setitem(sys.modules, "nutpie", None)
    # Independent draws need no NUTS.
    code, out, err = call("sample coreset.parquet --sampler nuts")
    assert (code, out) == (2, "") and 'pip install "corebayes[sample]"' in err


@pytest.mark.parametrize(
    "command", ["", "build", "sample", "certify", "report", "reproduce", "demo"]
)
def test_help_has_an_example(call, command):
    code, out, err = call(f"{command} --help")
    assert (code, err) == (0, "")
    assert "xample: corebayes" in out or "corebayes demo" in out
    assert call("")[1] == call("--help")[1]


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_a_name_and_takes_its_options(name):
    options = {
        "linear": {"noise_sd": 2.0},
        "gaussian-mean": {"noise_sd": 2.0},
        "student-t": {"noise_sd": 2.0, "df": 7.0},
        "negative-binomial": {"dispersion": 0.5},
    }.get(name, {})
    model = make_model(name, ModelOptions(prior=cb.Normal(0.0, 3.0), intercept=False, **options))
    X = np.arange(1.0, 7.0).reshape(3, 2) ** 2
    y = np.array([0.4, 0.2, 0.7] if getattr(model, "measured", False) else [1.0, 0.0, 1.0])
    bound = model.bind(open_rows(X if name == "gaussian-mean" else (X, y)))
    hessian = bound.log_prior_hessian(np.zeros(bound.dim))
    assert np.allclose(hessian[:2, :2], -np.eye(2) / 9.0)
    given = {
        "linear": lambda: bound.noise_sd == 2.0,
        "gaussian-mean": lambda: np.allclose(bound.covariance, 4.0 * np.eye(2)),
        "student-t": lambda: (bound.scale, bound.df) == (2.0, 7.0),
        "negative-binomial": lambda: bound.dispersion == 0.5,
        "poisson": lambda: bound.link == "log",
        "poisson-softplus": lambda: bound.link == "softplus",
        "poisson-log": lambda: bound.link == "log",
    }
    assert given.get(name, lambda: True)()


@pytest.mark.slow
def test_demo_writes_its_figure_and_its_numbers(call, folder):
    code, out, err = call("demo --rows 2000 --size 60 --json")
    assert code == 0
    report = json.loads(out)
    assert report["certificate"]["certified"]
    assert report["comparison"]["largest_mean_difference_in_sd"] < 0.3
    assert 0.9 < report["comparison"]["smallest_sd_ratio"] < 1.1
    assert report["comparison"]["laplace_kl"] < 0.02
    assert re.search(r"2,000 rows became (5\d|60) weighted rows", err)
    mixed = report["mixed"]
    assert mixed["certificate"]["certified"] and mixed["size"] <= 16 < mixed["num_rows"] == 2000
    # NUTS on all rows, of 400 draws, is the noisier of the two.
    assert mixed["comparison"]["largest_mean_difference_in_sd"] < 0.35
    assert 0.85 < mixed["comparison"]["median_sd_ratio"] < 1.15
    for name in ("demo.png", "demo-mixed.png"):
        png = (folder / "demo" / name).read_bytes()
        assert png.startswith(b"\x89PNG") and len(png) < 150_000


@pytest.mark.parametrize(
    ("after", "kill"),
    [
        (0, "SIGINT"),
        (3, "SIGTERM"),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((0, "SIGTERM"), (3, "SIGINT"))),
    ],
)
def test_an_interrupt_saves_the_coreset_so_far(folder, kill, after):
    line = "corebayes build rows.npz --model logistic --size 20 --out coreset.parquet"
    line += " --method sparse-vi"
    program = f"""
import os, signal, sys
import corebayes as cb
from corebayes.cli import inputs
from corebayes.__main__ import main

class Interrupted(cb.SparseVI):
    def step(self, rng, problem, state):
        if state.points.size == {after}:
            os.kill(os.getpid(), signal.{kill})
        return super().step(rng, problem, state)

inputs.METHODS["sparse-vi"] = Interrupted
sys.argv = {line.split()}
main()
"""
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    code = 128 + signal.Signals[kill]
    if after == 0:
        assert (result.returncode, result.stdout) == (code, "")
        assert result.stderr == "corebayes: interrupted, nothing was written\n"
        assert not (folder / "coreset.parquet").exists()
        return
    assert result.returncode == code and "interrupted" in result.stdout
    so_far = f"the {after} rows so far are in coreset.parquet"
    assert result.stderr == f"corebayes: interrupted, {so_far}\n"
    coreset = cb.load("coreset.parquet")
    assert coreset.reason == "interrupted" and coreset.size == after
