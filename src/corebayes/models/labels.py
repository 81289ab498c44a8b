"""Labels of two classes: 0 and 1, or −1 and 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corebayes.types import Array


def signs(y: Array) -> Array:
    """Labels as ±1."""
    return np.copysign(1.0, y - 0.5)


def check_labels(y: Array, lowest: float) -> tuple[NDArray[np.bool_], str]:
    """Which targets are no labels of two classes."""
    bad = ~((y == 1.0) | (y == 0.0) | (y == -1.0))
    negatives = y[y < 1.0]
    if np.any(bad) or negatives.size == 0:
        return bad, "labels must be 0 and 1, or -1 and 1, or bool"
    negative = lowest if lowest < 1.0 else negatives[0]
    return (y < 1.0) & (y != negative), (
        f"earlier rows have {negative:g} for the same class; "
        "labels must be 0 and 1, or -1 and 1, not both"
    )
