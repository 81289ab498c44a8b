"""Ctrl-C and a polite kill, as one: both raise KeyboardInterrupt, and the exit code tells which."""

from __future__ import annotations

import signal
from typing import Any

_last = [int(signal.SIGINT)]


def listen() -> None:
    """From now on SIGTERM interrupts as Ctrl-C does: a build hands over the coreset so far."""
    signal.signal(signal.SIGTERM, _interrupt)


def exit_code() -> int:
    """What a shell expects of a program that the last signal ended: 130 or 143."""
    return 128 + _last[0]


def _interrupt(number: int, frame: Any) -> None:
    _last[0] = number
    raise KeyboardInterrupt
