"""Few shapes for many sizes: compiled code is for one shape, so rows and draws are padded.

A coreset that grows row by row then meets a handful of shapes and compiles a handful of times.
Padding repeats a real entry, never zeros, for which a likelihood may not be defined.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALLEST = 64
# From here on a bucket is a multiple of this: a full block of a pass wastes little.
STEP = 128


def bucket(number: int) -> int:
    """The padded size: 1, 64, 128, 256, 384, 512, …"""
    if number <= 1:
        return 1
    if number <= SMALLEST:
        return SMALLEST
    if number <= STEP:
        return STEP
    return -(-number // STEP) * STEP


def pad(values: NDArray[Any], size: int) -> NDArray[Any]:
    """The first axis filled up to `size` with copies of its first entry."""
    missing = size - values.shape[0]
    if missing == 0:
        return values
    return np.concatenate([values, np.broadcast_to(values[:1], (missing, *values.shape[1:]))])
