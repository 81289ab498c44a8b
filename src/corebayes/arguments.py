"""What functions and methods are asked for: checked once, with the value in the message."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields
from numbers import Integral, Real
from typing import Any, cast

import numpy as np


def check_fields(method: Any, **ranges: float | tuple[float, float]) -> None:
    """Every number among the fields of a dataclass is one, and everything else an object.

    Whole where the field says `int`, at least one; positive and finite where it says `float`. In
    `ranges` a field has another smallest value, or the two ends that it must lie between.
    """
    for entry in fields(method):
        value, kind = getattr(method, entry.name), _written(entry.type)
        if value is None and "None" in kind:
            continue
        numeric = kind.removesuffix(" | None")
        if numeric == "int":
            least = ranges.get(entry.name, 1)
            checked_whole(entry.name, value, cast(int, least))
        elif numeric == "float":
            _check_number(entry.name, value, ranges.get(entry.name, (0.0, math.inf)))
        elif numeric == "bool":
            if not isinstance(value, bool | np.bool_):
                raise TypeError(f"{entry.name} must be True or False, got {value!r}")
        elif kind == "Schedule":
            if not callable(value):
                _check_number(entry.name, value, (0.0, math.inf))
        elif kind == "tuple[float, float]":
            if not isinstance(value, tuple) or len(cast(tuple[Any, ...], value)) != 2:
                raise TypeError(f"{entry.name} must be two numbers, got {value!r}")
            for number in cast(tuple[Any, ...], value):
                _check_number(entry.name, number, (-1e-300, 1.0))
        else:
            _check_object(entry.name, value)


def _written(annotation: Any) -> str:
    """An annotation as it is written, also where it is not kept as text."""
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _check_number(name: str, value: Any, allowed: float | tuple[float, float]) -> None:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    number = float(value)
    if isinstance(allowed, tuple):
        low, high = allowed
        right = low < number < high
        words = f"between {low:g} and {high:g}" if math.isfinite(high) else f"finite, above {low:g}"
    else:
        right, words = allowed <= number < math.inf, f"finite, at least {allowed:g}"
    if not right:
        raise ValueError(f"{name} must be {words}, got {value!r}")


def _check_object(name: str, value: Any) -> None:
    """What an algorithm is made of is an object, not its name and not its class."""
    if isinstance(value, type):
        raise TypeError(f"{name} must be an object: write {value.__name__}(), with parentheses")
    if isinstance(value, str | bytes | Real | Iterable) and not callable(cast(Any, value)):
        raise TypeError(f"{name} must be one of corebayes' objects, not {cast(Any, value)!r}")


def checked_whole(name: str, value: Any, least: int = 1, of: str = "") -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number{of and ' of '}{of}, got {value!r}")
    if int(value) < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return int(value)


def checked_positive(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    number = float(value)
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be positive and finite, got {value}")
    return number


def checked_seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, Integral) or int(seed) < 0:
        raise TypeError(f"seed must be a whole number that is not negative, got {seed!r}")
    return int(seed)


def check_choices(on_bad: Any, duplicates: Any, unit: Any) -> None:
    """What may be asked of all sources of rows alike."""
    if on_bad not in ("raise", "drop"):
        raise ValueError(f'on_bad must be "raise" or "drop", got {on_bad!r}')
    if duplicates not in (None, "count"):
        raise ValueError(f'duplicates must be "count" or left out, got {duplicates!r}')
    if duplicates is not None and unit is not None:
        raise ValueError("duplicates counts rows, and unit keeps them apart: leave one of them out")
