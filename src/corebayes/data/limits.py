"""How much memory a file may ask for before anyone has looked at what is in it."""

from __future__ import annotations

import os
import re
from numbers import Real
from typing import Any

DEFAULT_LIMIT, VARIABLE = "100MB", "COREBAYES_LIMIT"


# Numbers are packed to a hundredth of their size at most; a bomb of zeros, to a thousandth.
USUAL_RATIO = 100


class FileLimitError(ValueError):
    """A file says that it holds more than may be read."""


def as_limit(limit: str | int | None = None) -> int:
    """Bytes that reading a file may take: as given, else from the environment, else 100 MB."""
    if limit is not None:
        return num_bytes(limit, "limit")
    return num_bytes(os.environ.get(VARIABLE) or DEFAULT_LIMIT, VARIABLE)


def check_within(limit: int, needed: int, what: str) -> None:
    """An error with what is there, what it takes, the limit, and how to raise it."""
    if needed > limit:
        more = f"{-(-needed // 10**6)}MB"
        raise FileLimitError(
            f"{what}, which may take {written(needed)} to read, above the limit of "
            f'{written(limit)}: if you trust the file, raise it (limit="{more}", or '
            f"{VARIABLE}={more} on the command line)"
        )


def check_unpacked(limit: int, packed: int, unpacked: int) -> None:
    """Refuse what unpacks from next to nothing to more than the limit.

    What is packed as data may be is read whatever its size, since it is there.
    """
    if unpacked > USUAL_RATIO * packed:
        check_within(limit, unpacked, f"{packed:,} bytes unpack to {unpacked:,}")


UNITS = {"": 1, "B": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
BINARY_UNITS = {"KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


def num_bytes(size: Any, argument: str) -> int:
    """The bytes of "500MB" or of a number; an error that names the argument.

    >>> num_bytes("1.5 GB", "memory")
    1500000000
    """
    if isinstance(size, str):
        return _parsed(size, argument)
    if isinstance(size, bool) or not isinstance(size, Real):
        raise TypeError(f'{argument} must be a size such as "500MB" or a number of bytes: {size!r}')
    if not 1.0 <= float(size) < float("inf"):
        raise ValueError(f"{argument} must be a positive number of bytes, got {size!r}")
    return int(float(size))


def written(size: int) -> str:
    """Bytes as a person writes them: 500MB, 1.5GB."""
    for unit in ("TB", "GB", "MB", "kB"):
        if size >= UNITS[unit[0].upper()]:
            return f"{size / UNITS[unit[0].upper()]:.4g}{unit}"
    return f"{size}B"


def _parsed(text: str, argument: str) -> int:
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([A-Za-z]*?)B?\s*", text, re.IGNORECASE)
    unit = "" if match is None else match[2].upper()
    size = UNITS.get(unit) or BINARY_UNITS.get(unit)
    if match is None or size is None or float(match[1]) * size < 1.0:
        raise ValueError(
            f'{argument} must be a positive size such as "500MB", "2GB" or "1.5GiB", got {text!r}'
        )
    return int(float(match[1]) * size)
