"""A new family is one file, one export and one row: added to a copy of the package, it passes."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np

import corebayes
from corebayes.models import glm

HEAD = """
from dataclasses import dataclass
import numpy as np
from corebayes.models.glm import GLM
"""
ROW = """    ModelCase(
        "exponential",
        cb.ExponentialRegression(prior=PRIOR),
        lambda rng, eta: rng.exponential(np.exp(-0.5 * eta)),
    ),
"""


def _insert(path: Path, before: str, text: str) -> None:
    content = path.read_text()
    assert before in content
    path.write_text(content.replace(before, text + before, 1))


def _add_family(root: Path) -> None:
    """The family of the documentation of `models/glm.py`, and what it needs elsewhere."""
    written = textwrap.dedent(glm.__doc__.split("This one is complete:")[1])
    (root / "corebayes/models/exponential.py").write_text(HEAD + written)
    _insert(
        root / "corebayes/models/exponential.py",
        "    def log_density",
        '    command_line = {"exponential": {}}\n\n',
    )
    exports = root / "corebayes/models/__init__.py"
    line = "from corebayes.models.exponential import ExponentialRegression\n"
    _insert(exports, "from corebayes.models.gaussian", line)
    _insert(exports, '    "GLM",', '    "ExponentialRegression",\n')
    _insert(root / "tests/contract/cases.py", "]\n\nGEOMETRIES = [", ROW)


def _run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=root, env=environment, capture_output=True, text=True
    )


def test_one_file_one_export_one_row(tmp_path):
    package, tests = Path(corebayes.__file__).parent, Path(__file__).parents[1]
    shutil.copytree(package, tmp_path / "corebayes", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(tests / "contract", tmp_path / "tests/contract")
    (tmp_path / "tests/__init__.py").touch()
    shutil.copy(tests / "opened.py", tmp_path / "tests")
    _add_family(tmp_path)
    chosen = "exponential and (geometries or samplers or uniform or annealed) and not nuts"
    suite = _run(tmp_path, "-m", "pytest", "-q", "tests/contract", "-k", chosen)
    assert suite.returncode == 0 and " passed" in suite.stdout, suite.stdout[-2000:]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    np.savez(tmp_path / "rows.npz", X=X, y=rng.exponential(np.exp(-X[:, 0])))
    command = "-m corebayes build rows.npz --model exponential --size 6 --out c.parquet"
    built = _run(tmp_path, *command.split())
    assert built.returncode == 0, built.stderr
