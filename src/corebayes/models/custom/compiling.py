"""Calls of functions that JAX compiles, in float64, which keep to the deadline.

Compiling takes seconds and looks at no clock. So where there is a deadline, the first call with
arguments of new shapes is made in a thread of its own and waited for until then; what was given up
goes on in the background, and the next call of its kind waits for it instead of compiling again.
"""

from __future__ import annotations

import importlib
import sys
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebayes.deadline import current_deadline

Key = tuple[int, tuple[Any, ...]]

_known: set[Key] = set()
_under_way: dict[Key, Future[Any]] = {}


def float64() -> AbstractContextManager[Any]:
    """JAX in float64 in this thread until the block ends, whatever the user's JAX is set to.

    Next to free where it is so already; else 5 µs, which a small density would notice.
    """
    jax: Any = sys.modules.get("jax") or importlib.import_module("jax")
    return nullcontext() if jax.config.jax_enable_x64 else jax.enable_x64(True)


def call(kernel: Any, *arguments: Any) -> Any:
    """kernel(*arguments) of a function that `jax.jit` made, in float64."""
    if current_deadline().is_set:
        key = _key(kernel, arguments)
        if key not in _known:
            _wait(key, _under_way.get(key) or _begin(key, kernel, arguments))
            _known.add(key)
    return _run(kernel, arguments)


def pad(values: NDArray[Any], size: int) -> NDArray[Any]:
    """The first axis filled up to `size` with copies of its first entry.

    Compiled code is for one shape, so rows and draws come in a few sizes. Never zeros, for which a
    likelihood may not be defined.
    """
    missing = size - values.shape[0]
    if missing == 0:
        return values
    return np.concatenate([values, np.broadcast_to(values[:1], (missing, *values.shape[1:]))])


def _run(kernel: Any, arguments: tuple[Any, ...]) -> Any:
    with float64():
        return kernel(*arguments)


def _begin(key: Key, kernel: Any, arguments: tuple[Any, ...]) -> Future[Any]:
    current_deadline().check()
    found = _under_way[key] = Future[Any]()

    def work() -> None:
        try:
            found.set_result(_run(kernel, arguments))
        except BaseException as error:
            found.set_exception(error)

    # No daemon: a process that ends while JAX compiles would abort.
    Thread(target=copy_context().run, args=(work,)).start()
    return found


def _wait(key: Key, found: Future[Any]) -> None:
    """Until it is done; an error there is raised here, and so is that of the deadline."""
    deadline = current_deadline()
    try:
        found.result(timeout=max(deadline.seconds_left(), 0.0))
    finally:
        if found.done():
            _under_way.pop(key, None)
        else:
            deadline.check()


def _key(kernel: Any, arguments: tuple[Any, ...]) -> Key:
    """The function, and the shapes that it is compiled for."""
    leaves = sys.modules["jax"].tree_util.tree_leaves(arguments)
    return id(kernel), tuple(getattr(leaf, "shape", None) for leaf in leaves)
