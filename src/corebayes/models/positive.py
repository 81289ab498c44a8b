"""The check of constants that must be positive."""

from __future__ import annotations

import math


def check_positive(value: float, argument: str) -> None:
    """Refuse anything but a positive, finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"{argument} must be a number, got {value!r}")
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{argument} must be positive and finite, got {value!r}")
