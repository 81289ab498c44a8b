"""The README's examples run as they are written, on fewer rows."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import corebayes as cb
from corebayes.cli import app as cli
from tests.problems import coins

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_examples_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    mixed, priors = blocks("python")
    names: dict = {}
    assert mixed.count("100_000") == 3
    exec(mixed.replace("100_000", "20_000"), names)
    coreset = cb.load("coreset.parquet")
    assert np.array_equal(coreset.weights, names["coreset"].weights)
    assert coreset.size <= 200 and len(names["kept"]) == coreset.size
    printed = capsys.readouterr().out
    assert "of the full posterior" in printed and "shared parameters" in printed
    assert abs(float(names["posterior"].posterior["distance"].mean()) - 0.4) < 0.1
    assert priors.count("100_000") == 1 and "20.0, 50)" in priors
    exec(priors.replace("100_000", "5_000").replace("20.0, 50)", "20.0, 3)"), names)
    means = names["refit"].posterior["beta"].mean(("chain", "draw")).values
    assert np.allclose(means, [0.3, -0.2, 0.1, 0.0, 0.5], atol=0.1)


def test_the_table_of_peers_is_that_of_its_page():
    """What `python -m benchmarks.peers` wrote, in both places."""
    page = (ROOT / "docs" / "peers.md").read_text()
    tables = [
        re.search(r"<!-- peers -->\n(.*?)<!-- end of peers -->", text, re.DOTALL)
        for text in (README, page)
    ]
    assert tables[0] is not None and tables[1] is not None
    assert tables[0][1] == tables[1][1] and "corebayes" in tables[0][1]


def test_the_command_line_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 1000))
    y = coins(rng, a - 0.5 * b).astype(int)
    pa.parquet.write_table(pa.table({"a": a, "b": b, "y": y}), "rows.parquet")
    (example,) = [block for block in blocks("sh") if block.startswith("corebayes")]
    for line in example.splitlines():
        command, *arguments = line.split()
        assert command == "corebayes"
        with pytest.raises(SystemExit) as exit_:
            cli.run(arguments)
        assert exit_.value.code == 0, capsys.readouterr()
    assert (tmp_path / "posterior.nc").exists()


def test_links_and_make_targets_are_there():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target
    makefile = (ROOT / "Makefile").read_text()
    texts = README + (ROOT / "CONTRIBUTING.md").read_text()
    for target in set(re.findall(r"`make (\w+)`|^make (\w+)", texts, re.MULTILINE)):
        assert f"\n{''.join(target)}: setup" in makefile or f"\n{''.join(target)}:" in makefile


def test_every_extra_is_explained():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for extra in set(project["optional-dependencies"]) - {"dev", "all"}:
        assert f"| `{extra}` |" in README
    for name in ("demo.png", "demo-mixed.png"):
        assert (ROOT / "docs" / "images" / name).stat().st_size < 150_000


def test_named_things_exist():
    """Every `cb.name` and every capitalised name in the box is in the package."""
    for name in re.findall(r"cb\.(\w+)", README):
        assert hasattr(cb, name), name
    box = README.split("## What is in the box")[1].split("\n## ")[0]
    for name in re.findall(r"`([A-Z]\w+)`", box):
        assert hasattr(cb, name), name
