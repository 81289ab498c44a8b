"""What functions and methods are asked for: checked once, with the value in the message."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from corebayes.check_coreset import check_coreset
from corebayes.types import Coreset, Data

if TYPE_CHECKING:
    from corebayes.constructions.construction import Construction


def check_fields(method: Any, **ranges: float | tuple[float, float]) -> None:
    """Every number among the fields of a dataclass is one, and everything else an object.

    Whole where the field says `int`, at least one; positive and finite where it says `float`. In
    `ranges` a field has another smallest value, or the two ends that it must lie between.
    """
    for entry in fields(method):
        value, kind = getattr(method, entry.name), str(entry.type)
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


def check_method(method: Any) -> None:
    if isinstance(method, type):
        raise TypeError(f"method must be an object: write {method.__name__}(), with parentheses")
    if not (hasattr(method, "init") and hasattr(method, "step")):
        raise TypeError(
            f"method must be a construction such as SparseVI() or GIGA(), got {method!r}"
        )


def check_can_start(method: Construction, start: Any, size: int | None) -> None:
    from corebayes.constructions.construction import GrowingConstruction

    if start is None:
        return
    if not isinstance(start, Coreset):
        raise TypeError(f"start must be a coreset, got {type(start).__name__}")
    check_coreset(start)
    if not isinstance(method, GrowingConstruction):
        raise TypeError(
            f"{type(method).__name__} begins from nothing and cannot go on from a coreset; "
            "SparseVI() and AnnealedSparseVI() can"
        )
    if size is not None and size <= start.size:
        raise ValueError(f"size must be larger than the {start.size} rows of start, got {size}")
    if start.indices.min(initial=0) < 0:
        raise ValueError("start has learned rows, which are none of the data's to go on from")


def check_enough_rows(size: int | None, data: Data) -> None:
    if size is not None and size > data.num_rows:
        raise ValueError(f"size must be at most the number of rows, {data.num_rows}, got {size}")


def checked_sizes(sizes: Any) -> list[int]:
    if isinstance(sizes, (str, Integral)) or not isinstance(sizes, Iterable):
        raise TypeError(f"sizes must be a list of whole numbers of rows, got {sizes!r}")
    wanted = sorted({checked_size(size, None) or 0 for size in cast(Iterable[Any], sizes)})
    if not wanted:
        raise ValueError("sizes must name at least one number of rows")
    return wanted


def checked_size(size: Any, tol: float | None) -> int | None:
    if size is None or size == "auto":
        if tol is None:
            raise ValueError("give a size (how many rows to keep) or a tol (how small KL must be)")
        return None
    return checked_whole("size", size, of="rows")


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
