"""What `build` is asked for: checked once, with the value in the message."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, cast

import numpy as np

from corebayes.constructions.construction import Construction, GrowingConstruction
from corebayes.rows import Rows
from corebayes.types import Coreset


def check_can_start(method: Construction, start: Any, size: int | None) -> None:
    if start is None:
        return
    if not isinstance(start, Coreset):
        raise TypeError(f"start must be a coreset, got {type(start).__name__}")
    if not isinstance(method, GrowingConstruction):
        raise TypeError(
            f"{type(method).__name__} begins from nothing and cannot go on from a coreset; "
            "SparseVI() and AnnealedSparseVI() can"
        )
    if size is not None and size <= start.size:
        raise ValueError(f"size must be larger than the {start.size} rows of start, got {size}")
    if start.indices.min(initial=0) < 0:
        raise ValueError("start has learned rows, which are none of the data's to go on from")


def check_enough_rows(size: int | None, data: Rows) -> None:
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
    if isinstance(size, bool) or not isinstance(size, Integral):
        raise TypeError(f"size must be a whole number of rows, got {size!r}")
    if int(size) < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    return int(size)


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
