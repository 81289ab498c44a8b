"""`corebayes report`: the page that the library writes."""

import json
import shlex

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corebayes as cb
from corebayes.cli import app as cli
from corebayes.cli.built import as_typed
from tests.problems import coins

BUILD = "build rows.parquet --target y --model logistic --size 12 --seed 3 --out c.parquet"


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Run a command line beside rows.parquet: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 500))
    y = coins(rng, 1.5 * a - 0.5 * b)
    pq.write_table(pa.table({"a": a, "b": b, "y": y}), "rows.parquet", row_group_size=100)

    def call(line: str):
        with pytest.raises(SystemExit) as exit_:
            cli.run(line.split())
        out, err = capsys.readouterr()
        return exit_.value.code, out, err

    return call


def test_the_page_has_the_verdict_and_the_command_that_built(call, tmp_path):
    call(BUILD)
    code, out, err = call("report c.parquet --data rows.parquet --draws 400 --title Trains")
    assert (code, err) == (0, "")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    verdict, last = out.splitlines()
    assert "is within" in verdict and last == "The page is report.html"
    assert verdict in page and "<h1>Trains</h1>" in page
    assert f"corebayes {BUILD}" in page
    assert cb.load("c.parquet").provenance["command"] == f"corebayes {BUILD}"


def test_the_command_is_written_as_people_type_it():
    words = ["build", "rows.csv", "--formula", "y ~ C(g, ref='a')", "--out", "my file"]
    for typed in (words, [*words, "--prior", "it's $5"], ["a'b`c`", "x\"'y"]):
        assert shlex.split(as_typed(typed)) == ["corebayes", *typed]
    assert as_typed(words).endswith("\"y ~ C(g, ref='a')\" --out 'my file'")


def test_without_rows_and_as_json(call, tmp_path):
    call(BUILD)
    code, out, err = call("report c.parquet --out page.html --draws 200")
    assert (code, err) == (0, "") and "no verdict" in out
    assert "written without the rows" in (tmp_path / "page.html").read_text(encoding="utf-8")
    code, out, err = call("report c.parquet --data rows.parquet --draws 400 --json")
    found = json.loads(out)
    assert (code, err, out.count("\n")) == (0, "", 1)
    expected = cb.certify(cb.load("c.parquet"), "rows.parquet", target="y", draws=400)
    assert found["certificate"]["reverse_kl"]["value"] == expected.reverse_kl.value


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("report nothing.parquet", "nothing.parquet"),
        ("report rows.parquet", "rows.parquet"),
        ("report c.parquet --out page.pdf", ".html"),
        ("report c.parquet --out nowhere/page.html", "nowhere"),
        ("report c.parquet --data others.parquet", "others.parquet"),
        ("report c.parquet --data rows.parquet --target z", "'z'"),
        ("report c.parquet --draws 1", "at least 100"),
        ("report", "coreset"),
    ],
)
def test_errors_are_one_sentence_with_exit_code_2(call, tmp_path, line, words):
    call(BUILD)
    code, out, err = call(line)
    assert (code, out) == (2, "")
    assert err.startswith("corebayes: ") and err.count("\n") == 1 and words in err
    assert not list(tmp_path.glob("*.html"))
