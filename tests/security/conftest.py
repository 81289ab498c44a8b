"""Files are opened in a process of its own, whose imports are made once."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corebayes.cli import app as cli
from tests.coresets import logistic, weighted


@pytest.fixture(scope="session")
def opened():
    """Opens a file by `tests.security.measured`, whose imports are made once."""
    command = [sys.executable, "-m", "tests.security.measured"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None

        def ask(kind: str, path: Path) -> dict[str, Any]:
            process.stdin.write(json.dumps([kind, str(path)]) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield ask
        process.stdin.close()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Rows and a coreset, with a cache folder of our own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    model, data = logistic()
    block = data.take(np.arange(data.num_rows))
    np.savez("rows.npz", X=block.X, y=block.y)
    weighted(model, data, np.arange(6), 200 / 6).save("c.parquet")
    return tmp_path


@pytest.fixture
def call(folder, capsys):
    def call(line: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit_:
            cli.run(line.split())
        out, err = capsys.readouterr()
        return exit_.value.code, out, err

    return call


@pytest.fixture
def sentinel(tmp_path, monkeypatch):
    """Nothing is opened, run or evaluated, and no file `pwned` appears."""
    monkeypatch.chdir(tmp_path)
    yield
    assert not os.path.exists("pwned")
