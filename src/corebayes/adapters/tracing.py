"""One lock for all that runs or takes apart another library's model.

NumPyro keeps the handlers that are at work in one list for all threads, PyTensor its settings and
the graphs of a model. So one model is traced at a time, whichever thread asks; compiled functions
run in as many threads as call them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

# The same thread may enter again: taking a model apart runs it.
TRACING = threading.RLock()


def one_at_a_time(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """The function, entered by one thread at a time."""

    @wraps(function)
    def locked(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        with TRACING:
            return function(*args, **kwargs)

    return locked
