"""Libraries that are not always there, and what to type when they are missing."""

from __future__ import annotations

import importlib
from typing import Any


def install(extra: str) -> str:
    """How to get what an extra has: from an index, and in a clone of the repository."""
    return f'pip install "corebayes[{extra}]", or pip install -e ".[{extra}]" in a clone'


def import_extra(module: str, what: str, extra: str) -> Any:
    """A library of an extra, or an error that says what to install: `what` is what needs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{what} {module}: {install(extra)}", name=module) from error


def import_pyplot() -> Any:
    """matplotlib.pyplot, for axes where none are given."""
    import_extra("matplotlib", "figures need", "plot")
    return importlib.import_module("matplotlib.pyplot")
