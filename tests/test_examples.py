"""The example scripts run as they are, on fewer rows, and say what they promise."""

import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples"
# What a script must print, beside a verdict.
SAYS = {
    "custom_model": ["is within", "treatment +0."],
    "larger_than_memory": ["1,000 rows in 5 files", "passes", "is within"],
    "logistic_regression": ["1,000 rows became 25", "is within", "beta[0] = +1."],
    "numpyro_model": ["is within", "slope -0."],
    "tolerance": ["rows are enough", "KL to the full posterior"],
}


@pytest.fixture
def restored():
    """Scripts may change JAX for the whole process."""
    yield
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_enable_x64", False)


def test_every_script_is_tested_and_short():
    scripts = {path.stem: path.read_text() for path in FOLDER.glob("*.py")}
    assert set(scripts) == set(SAYS)
    assert max(text.count("\n") for text in scripts.values()) < 40


# JAX compiles for half a minute.
SLOW = {"numpyro_model": [pytest.mark.slow]}


@pytest.mark.parametrize("name", [pytest.param(n, marks=SLOW.get(n, [])) for n in SAYS])
def test_examples_run(name, tmp_path, monkeypatch, capsys, restored):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROWS", "1000")
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    said = capsys.readouterr().out
    for words in SAYS[name]:
        assert words in said
    assert ("report.html" in said) == (tmp_path / "report.html").exists()
