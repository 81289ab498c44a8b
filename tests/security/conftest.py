"""Files are opened in a process of its own, whose imports are made once."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


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
