"""Checks of the numbers that people give a model."""

from __future__ import annotations

import math
from typing import Any

LEARNED: Any = None
"""Instead of a number: it is unknown, and learned from the rows."""


def is_given(value: Any) -> bool:
    """Whether an argument of a model says something that no argument does not."""
    return value is not None and value is not False


def check_positive(value: float, argument: str) -> None:
    """Refuse anything but a positive, finite number."""
    _check_number(value, argument)
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{argument} must be positive and finite, got {value!r}")


def check_finite(value: float, argument: str) -> None:
    """Refuse anything but a finite number."""
    _check_number(value, argument)
    if not math.isfinite(value):
        raise ValueError(f"{argument} must be finite, got {value!r}")


def _check_number(value: float, argument: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"{argument} must be a number, got {value!r}")
