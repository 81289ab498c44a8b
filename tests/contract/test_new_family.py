"""A new family is one file, one export and one row: added to a copy of the package, it passes."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import corebayes
from corebayes.models.families import family, glm

HEAD = """
from dataclasses import dataclass
import numpy as np
import pytest
from corebayes.models.families.family import Constant, Family, Jet
from corebayes.models.families.glm import GLM
from corebayes.models.priors.scale import HalfStudentT
"""
ROWS = {
    "RateRegression": """    ModelCase(
        "rate",
        cb.RateRegression(prior=PRIOR),
        lambda rng, eta: rng.exponential(np.exp(-0.5 * eta)),
    ),
""",
    "LogisticNoiseRegression": """    ModelCase(
        "logistic-noise",
        cb.LogisticNoiseRegression(prior=PRIOR),
        lambda rng, eta: eta + 0.5 * rng.logistic(size=eta.size),
    ),
""",
}


def _insert(path: Path, before: str, text: str) -> None:
    content = path.read_text()
    assert before in content
    path.write_text(content.replace(before, text + before, 1))


def _add_family(root: Path, name: str, documented: str) -> None:
    """A family of the documentation: one file, one line of export, one row."""
    written = textwrap.dedent(documented.split("complete:\n")[1])
    (root / "corebayes/models/families/added.py").write_text(HEAD + written)
    line = f"from corebayes.models.families.added import {name} as {name}\n"
    _insert(root / "corebayes/models/__init__.py", "from corebayes.models.base", line)
    _insert(root / "tests/contract/cases.py", "]\n\nGEOMETRIES = [", ROWS[name])


def _run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=root, env=environment, capture_output=True, text=True
    )


def _copied(tmp_path: Path) -> None:
    package, tests = Path(corebayes.__file__).parent, Path(__file__).parents[1]
    # With what is compiled: a copy has the same times.
    shutil.copytree(package, tmp_path / "corebayes")
    shutil.copytree(tests / "contract", tmp_path / "tests/contract")
    (tmp_path / "tests/__init__.py").touch()
    shutil.copy(tests / "opened.py", tmp_path / "tests")


def _built(tmp_path: Path, model: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    np.savez(tmp_path / "rows.npz", X=X, y=rng.exponential(np.exp(-X[:, 0])))
    command = f"-m corebayes build rows.npz --model {model} --size 12 --out c.parquet"
    built = _run(tmp_path, *command.split())
    assert built.returncode == 0, built.stderr


@pytest.mark.slow
def test_one_file_one_export_one_row(tmp_path):
    _copied(tmp_path)
    _add_family(tmp_path, "RateRegression", glm.__doc__)
    _insert(
        tmp_path / "corebayes/models/families/added.py",
        "    def log_density",
        '    command_line = {"rate": {}}\n\n',
    )
    chosen = (
        "rate and not logistic and (geometries or samplers or uniform or annealed) and not nuts"
    )
    suite = _run(tmp_path, "-m", "pytest", "-q", "tests/contract", "-k", chosen)
    assert suite.returncode == 0 and " passed" in suite.stdout, suite.stdout[-2000:]
    _built(tmp_path, "rate")


@pytest.mark.slow
def test_the_same_with_several_predictors(tmp_path):
    _copied(tmp_path)
    _add_family(tmp_path, "LogisticNoiseRegression", family.__doc__)
    chosen = "logistic-noise and (monte-carlo or uniform) and not guarded and not nuts"
    suite = _run(tmp_path, "-m", "pytest", "-q", "tests/contract", "-k", chosen)
    assert suite.returncode == 0 and " passed" in suite.stdout, suite.stdout[-2000:]
    _built(tmp_path, "logistic-noise")
    made = "import corebayes as cb; m = cb.load('c.parquet').model; print(m.parameter_names)"
    shown = _run(tmp_path, "-c", made)
    assert "'log width'" in shown.stdout, shown.stderr
