"""What is installed, and what importing it costs."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import corebayes as cb

ROOT = Path(__file__).resolve().parents[1]
OPTIONAL = (
    "arviz",
    "arviz_stats",
    "jax",
    "matplotlib",
    "numba",
    "nutpie",
    "pandas",
    "polars",
    "pyarrow",
    "rich",
    "scipy.stats",
    "threadpoolctl",
    "typer",
)


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


def test_import_waits_for_no_library_and_a_model_for_numpy_and_scipy_only():
    result = python(
        "import sys, corebayes\n"
        "ours = [name for name in sys.modules if name.startswith('corebayes.')]\n"
        "print(ours, [name for name in ('numpy', 'scipy') if name in sys.modules])\n"
        "corebayes.build, corebayes.certify, corebayes.sample, corebayes.LogisticRegression\n"
        f"print([name for name in {OPTIONAL} if name in sys.modules])"
    )
    assert result.stdout == "['corebayes.version'] []\n[]\n", result.stderr


def test_an_import_from_a_room_does_not_hide_the_function_of_its_name():
    result = python(
        "from corebayes.build.loop import build\n"
        "import corebayes, pickle\n"
        "assert corebayes.build is build and callable(corebayes.report)\n"
        "assert corebayes.diagnostics.__name__ == 'corebayes.diagnostics'\n"
        "assert pickle.loads(pickle.dumps(corebayes)) is corebayes\n"
        "assert not hasattr(corebayes, 'builds')"
    )
    assert result.returncode == 0, result.stderr


def test_a_build_and_its_certificate_wait_for_no_frames_and_no_plots(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    table = pyarrow.table({"a": X[:, 0], "b": X[:, 1], "y": rng.poisson(1.0, size=500)})
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    code = (
        "import sys, corebayes as cb\n"
        "rows = cb.open(sys.argv[1], target='y')\n"
        "coreset = cb.build(cb.PoissonRegression(), rows, size=20, progress=False)\n"
        "assert cb.certify(coreset, rows).certified\n"
        "print([name for name in ('pandas', 'arviz_stats', 'matplotlib') if name in sys.modules])"
    )
    result = python(code.replace("sys.argv[1]", repr(str(tmp_path / "rows.parquet"))))
    assert result.stdout.strip() == "[]", result.stderr


def test_public_names_are_there_and_are_the_documented_ones():
    for name in cb.__all__:
        assert getattr(cb, name) is not None
    assert set(cb.__all__) <= set(dir(cb))
    assert callable(cb.build) and callable(cb.certify) and callable(cb.sample)


def test_type_checkers_read_the_names_that_are_there():
    tree = ast.parse(Path(cb.__file__).read_text())
    (checked,) = (node for node in tree.body if isinstance(node, ast.If))
    read = {name.asname for node in checked.body[:-1] for name in node.names} - {None}
    lists = {*cb.models.__all__, *cb.constructions.__all__}
    assert {*read, "__version__", "open"} == set(cb.__all__) - lists


def test_one_version_everywhere():
    assert metadata.version("corebayes") == cb.__version__
    assert f"version: {cb.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## [{cb.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_every_dependency_of_every_extra_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = {
        re.split("==", line)[0].lower().replace("_", "-")
        for name in ("lock.txt", "docs.txt", "peers.txt")
        for line in (ROOT / "requirements" / name).read_text().split()
    }
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(line for extra in extras for line in extra)]
    names = {re.split(r"[\[<>=~ ]", line)[0].lower() for line in wanted} - {"corebayes"}
    assert names <= pinned
    assert "numpy" in names and "nutpie" in names


@pytest.mark.parametrize(
    ("target", "last", "in_ci"),
    [
        # What failed is tried once more.
        ("test", "pytest", "make test || .venv/bin/pytest"),
        ("lint", "pyright", "make lint\n"),
    ],
)
def test_what_make_runs_and_that_it_decides(target, last, in_ci):
    printed = subprocess.run(
        ["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    commands = [line.split("/bin/")[1] for line in printed if line.startswith(".venv/bin/")]
    wanted = ("ruff check", "ruff format --check", last)
    assert all(line.startswith(step) for line, step in zip(commands[-3:], wanted, strict=True))
    ci = (ROOT / ".ci" / "run").read_text()
    assert "\nset -euo pipefail\n" in ci and f"\n{in_ci}" in ci


@pytest.mark.parametrize("missing", ["typer", pytest.param("rich", marks=pytest.mark.slow)])
def test_without_the_cli_extra_the_command_says_what_to_install(missing):
    result = python(
        f"import sys; sys.modules[{missing!r}] = None; sys.argv = ['corebayes', 'demo']\n"
        "from corebayes.__main__ import main; main()"
    )
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert missing in result.stderr and 'pip install "corebayes[cli]"' in result.stderr


def test_a_mistake_of_ours_is_not_blamed_on_a_missing_extra():
    result = python(
        "import sys; sys.modules['corebayes.cli.inputs'] = None\n"
        "from corebayes.__main__ import main; main()"
    )
    assert "pip install" not in result.stderr and "Traceback" in result.stderr


def test_runs_as_a_module():
    result = subprocess.run(
        [sys.executable, "-m", "corebayes"], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0
    assert all(command in result.stdout for command in ("build", "sample", "certify", "demo"))
