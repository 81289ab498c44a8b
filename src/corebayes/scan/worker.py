"""The other end of a pipe: a process that answers shards until the pipe is closed.

Messages come through standard input and answers leave through standard output, which the code that
runs here gets to see neither of. When the process at the other end ends, however it ends, the pipe
does too and so does this process.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from dataclasses import dataclass
from typing import Any, BinaryIO

from corebayes.scan.passes import Pass, Shard
from corebayes.scan.shipping import packed_error


def serve() -> None:
    """Answer what is asked; see `processes.py` for the messages."""
    inbox, outbox = _take_over_pipes()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _reply(outbox, None, "ready", b"")
    data: Any = None
    work: Any = None
    while True:
        try:
            kind, ticket, content = pickle.load(inbox)
        except EOFError:
            return
        if kind == "data":
            data = _unpacked(content)
        elif kind == "query":
            asked = _unpacked(content)
            failed = next((part for part in (data, asked) if isinstance(part, _Failed)), None)
            work = failed or Pass(asked[0], data, asked[1])
        else:
            try:
                answer = pickle.dumps(work(Shard(*content)), protocol=5)
            except Exception as error:
                _reply(outbox, ticket, "error", packed_error(error))
            else:
                _reply(outbox, ticket, "answer", answer)


@dataclass(frozen=True)
class _Failed:
    """Stands for what could not be unpacked; the reason is told when a shard is asked for."""

    error: Exception

    def __call__(self, shard: Shard) -> Any:
        raise self.error


def _unpacked(content: bytes) -> Any:
    try:
        return pickle.loads(content)
    except Exception as error:
        return _Failed(error)


def _reply(outbox: BinaryIO, ticket: int | None, kind: str, content: bytes) -> None:
    try:
        pickle.dump((kind, ticket, content), outbox, protocol=5)
        outbox.flush()
    except BrokenPipeError:
        # Nobody is there to hear the answer.
        os._exit(0)


def _take_over_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The two pipes; to all others standard input is empty and standard output is for errors."""
    inbox, outbox = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    return inbox, outbox
