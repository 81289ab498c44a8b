"""Ctrl-C and a polite kill, as one: both raise KeyboardInterrupt, and the exit code tells which."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

_last = [int(signal.SIGINT)]


def listen() -> None:
    """From now on SIGTERM interrupts as Ctrl-C does: a build hands over the coreset so far. An
    interrupt that comes while Python tidies up, where it would drop it, comes again."""
    signal.signal(signal.SIGTERM, _interrupt)
    if os.name == "posix":
        sys.unraisablehook = _unraisable


def exit_code() -> int:
    """What a shell expects of a program that the last signal ended: 130 or 143."""
    return 128 + _last[0]


def is_interrupt(error: BaseException | None) -> bool:
    """Whether it is one, or came of one: in the midst of a lock it leaves as a RuntimeError."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


@contextmanager
def leave_at_once() -> Generator[None]:
    """Whoever interrupts does not wait for Python to take its modules down, which takes seconds on
    a busy machine: files are closed and workers have ended by then."""
    try:
        yield
    except SystemExit as end:
        if end.code != exit_code():
            raise
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(exit_code())


def _unraisable(unraisable: Any) -> None:
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    # From a thread: here it would be dropped once more.
    again = threading.Timer(0.05, os.kill, [os.getpid(), _last[0]])
    again.daemon = True
    again.start()


def _interrupt(number: int, frame: Any) -> None:
    _last[0] = number
    raise KeyboardInterrupt
