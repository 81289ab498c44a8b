"""Formulas in a stranger's coreset file: nothing of them runs."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corebayes as cb
from corebayes.cli import app as cli

pytestmark = pytest.mark.usefixtures("sentinel")


CALL = ["call", "exec", [["literal", "open('pwned', 'w')"]], {}]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Rows, and a coreset of them that was built with a formula."""
    folder = tmp_path_factory.mktemp("built")
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 300))
    rows = pa.table({"x": x, "z": z, "y": (rng.random(300) < 0.5).astype(int)})
    pq.write_table(rows, folder / "rows.parquet")
    command = ["build", str(folder / "rows.parquet"), "--formula", "y ~ x + z", "--size", "10"]
    with pytest.raises(SystemExit) as exit_:
        cli.run([*command, "--model", "logistic", "--out", str(folder / "coreset.parquet")])
    assert exit_.value.code == 0
    return folder


BAD = "y ~ x + z + I(np.f2py.os.system('touch pwned')*x)"


def call(capsys, *arguments) -> tuple[int, str]:
    with pytest.raises(SystemExit) as exit_:
        cli.run([str(argument) for argument in arguments])
    return exit_.value.code, capsys.readouterr().err


def with_provenance(built, change) -> None:
    coreset = cb.load(built / "coreset.parquet")
    change(coreset.provenance)
    coreset.save("hostile.parquet")


@pytest.mark.parametrize("command", ["certify", "report"])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p: p["columns"].update(formula=BAD), "the design of another"),
        (lambda p: (p["columns"].update(formula=BAD), p.pop("design")), "--formula"),
        (lambda p: p["design"].update(formula=BAD), "the design of another"),
        (lambda p: p["design"].update(target=CALL), "no function 'exec'"),
        (lambda p: p["design"]["factors"].append([CALL, None]), "no function 'exec'"),
        (lambda p: p["design"]["terms"].pop(), "its columns are not the coreset's"),
        (lambda p: p.update(design=BAD), "cannot be used"),
    ],
)
def test_a_strangers_file_runs_nothing(built, capsys, command, change, words):
    with_provenance(built, change)
    rows = built / "rows.parquet"
    arguments = [rows] if command == "certify" else ["--data", rows, "--out", "page.html"]
    code, err = call(capsys, command, "hostile.parquet", *arguments)
    assert code == 2 and err.count("\n") == 1 and words in err, err


def test_the_demonstration_in_a_process_of_its_own(built):
    with_provenance(built, lambda p: (p["columns"].update(formula=BAD), p.pop("design")))
    line = [sys.executable, "-m", "corebayes", "certify", "hostile.parquet"]
    done = subprocess.run([*line, built / "rows.parquet"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr


def test_a_file_without_a_design_is_certified_with_the_formula_again(built, capsys):
    rows = built / "rows.parquet"
    with_provenance(built, lambda p: p.pop("design"))
    assert call(capsys, "certify", "hostile.parquet", rows)[0] == 2
    assert call(capsys, "certify", "hostile.parquet", rows, "--formula", "y ~ x + z")[0] == 0
    code, err = call(capsys, "certify", "hostile.parquet", rows, "--formula", BAD)
    assert code == 2 and "no function 'np.f2py.os.system'" in err


@pytest.mark.slow
def test_a_file_without_a_design_is_reported_with_the_formula_again(built, capsys):
    with_provenance(built, lambda p: p.pop("design"))
    page = ["report", "hostile.parquet", "--data", built / "rows.parquet", "--out", "page.html"]
    assert call(capsys, *page, "--formula", "y ~ x + z")[0] == 0
    assert os.path.getsize("page.html") > 1000
