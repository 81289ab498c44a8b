"""A new construction is one file, one export line and one row: the one of the docs, in a copy."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "adding-a-construction.md"
EXPORT = "from corebayes.constructions.matching_pursuit import MatchingPursuit as MatchingPursuit\n"
FOLLOWS = """
import corebayes as cb
from corebayes.cli.inputs import METHODS
from corebayes.figures.methods import style_of
assert METHODS["matching-pursuit"] is cb.MatchingPursuit and "MatchingPursuit" in cb.__all__
assert style_of("MatchingPursuit, twice").marker == "p"
"""


@pytest.fixture
def copy(tmp_path):
    # With what is compiled: a copy has the same times.
    for folder in ("src/corebayes", "tests/contract"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "tests" / "__init__.py").touch()
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def run(folder, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.slow
def test_one_file_one_export_line_one_row(copy):
    constructions = copy / "src" / "corebayes" / "constructions"
    code = re.findall(r"```\{code-cell\} python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    (constructions / "matching_pursuit.py").write_text(code)
    exports = constructions / "__init__.py"
    text = exports.read_text()
    exports.write_text(text.replace("\n\n\ndef exported", f"\n{EXPORT}\n\ndef exported"))
    cases = copy / "tests" / "contract" / "cases.py"
    row = '    ("matching-pursuit", cb.MatchingPursuit()),\n'
    cases.write_text(cases.read_text().replace("CONSTRUCTIONS = [\n", f"CONSTRUCTIONS = [\n{row}"))

    suite = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/contract/test_constructions.py"]
    tested = run(copy, *suite, "-k", "matching or exported")
    assert tested.returncode == 0, tested.stdout[-3000:]
    assert re.search(r"\b33 passed", tested.stdout), tested.stdout[-300:]
    followed = run(copy, "-c", FOLLOWS)
    assert followed.returncode == 0, followed.stderr
