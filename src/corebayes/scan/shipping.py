"""Queries and data as bytes that another process understands."""

from __future__ import annotations

import importlib
import pickle
from typing import Any

from corebayes.extras import install


def packed(content: Any, what: str) -> bytes:
    """The content as bytes; functions of a script or a notebook travel with cloudpickle.

    A worker does not run the caller's script, so it finds no name that was defined there.
    """
    try:
        content_bytes = pickle.dumps(content, protocol=5)
        if b"__main__" not in content_bytes:
            return content_bytes
        problem = "it is defined in the script or notebook that runs"
    except Exception as error:
        problem = str(error)
    try:
        cloudpickle: Any = importlib.import_module("cloudpickle")
    except ImportError as error:
        raise TypeError(
            f"{what} cannot be sent to other processes: {problem}. Define functions and classes at "
            "the top level of a module that is imported, or install cloudpickle, which sends them "
            f"along: {install('cluster')}"
        ) from error
    try:
        return cloudpickle.dumps(content, protocol=5)
    except Exception as error:
        raise TypeError(f"{what} cannot be sent to other processes: {error}") from error


def packed_error(error: BaseException) -> bytes:
    """An exception as bytes; one that cannot travel is replaced by what it says."""
    try:
        content = pickle.dumps(error, protocol=5)
        pickle.loads(content)
        return content
    except Exception:
        return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"), protocol=5)
