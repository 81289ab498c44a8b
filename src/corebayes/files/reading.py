"""Files that strangers wrote: opened only if they are files, their words shown on one line."""

from __future__ import annotations

import os
import stat


def check_regular(path: str | os.PathLike[str]) -> None:
    """Refuse pipes and devices, which may have no end or nobody who writes to them.

    What is not there at all is for whoever opens it to say.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise ValueError(f"{os.fspath(path)} is a pipe or a device, and no file")


def first_line(error: Exception) -> str:
    """The first line of what an error says, which may quote what is in the file."""
    text = f"there is no entry {error}" if isinstance(error, LookupError) else str(error)
    return printable((text.splitlines() or [type(error).__name__])[0][:300])


def printable(text: str) -> str:
    """Without what would move a terminal's cursor."""
    return "".join(c if c.isprintable() else "?" for c in text)
