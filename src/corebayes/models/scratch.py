"""Buffers that a thread uses again for every block, so that a pass allocates none."""

from __future__ import annotations

import math
import threading

import numpy as np

from corebayes.types import Array

# 8 MB: larger arrays are rare, and would stay in memory for the life of the thread.
LARGEST_KEPT = 1 << 20


class _Buffers(threading.local):
    def __init__(self) -> None:
        self.by_name: dict[str, Array] = {}


_buffers = _Buffers()


def scratch(name: str, shape: tuple[int, ...]) -> Array:
    """An uninitialised array, valid until this thread asks for the same name again."""
    size = math.prod(shape)
    if size > LARGEST_KEPT:
        return np.empty(shape)
    flat = _buffers.by_name.get(name)
    if flat is None or flat.size < size:
        flat = _buffers.by_name[name] = np.empty(size)
    return flat[:size].reshape(shape)
