"""How much memory a file may ask for before anyone has looked at what is in it."""

from __future__ import annotations

import os

from corebayes.data.sizes import num_bytes, written

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
