"""The data of the experiments: a folder that the environment names, or the one beside this tree."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder():
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("COREBAYES_DATA") or beside)
    assert folder.is_dir(), f"the experiments need their data: set COREBAYES_DATA (tried {folder})"
    return folder
