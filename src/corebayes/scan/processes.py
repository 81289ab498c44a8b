"""The pass on worker processes of this machine.

The workers are fresh interpreters that never run the caller's script. The data goes to each once,
the query once a pass, and then only row numbers and answers travel.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import subprocess
import sys
import threading
import weakref
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from corebayes.scan.dispatch import Event, checked_deadline, dispatch
from corebayes.scan.passes import Pass, Shard
from corebayes.scan.shipping import packed

# One thread each: the processes share the cores, and sums must not depend on their number.
ONE_THREAD = {
    f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "ARROW")
}
# A worker in the midst of an import or a shard does not hear that its pipe has ended, so from its
# first moment on it looks whether its caller is still there. What queries and models are made of is
# loaded with `build`, before it says that it is ready: the time of a shard counts from then on.
PROGRAM = """
import os, sys, threading, time

def end_with(caller):
    while os.getppid() == caller:
        time.sleep(0.5)
    os._exit(0)

threading.Thread(target=end_with, args=({caller},), daemon=True).start()
sys.path[:] = {path!r}
import corebayes
from corebayes.scan.worker import serve
corebayes.build
serve()
"""
# A worker that is not up by then never will be.
SECONDS_TO_START = 120.0
# So many workers in a row may fail to start.
MAX_FAILED_STARTS = 3


class Processes:
    """Shards on `num_workers` processes; see `processes`."""

    def __init__(self, num_workers: int | None = None, *, deadline: float | None = None) -> None:
        if num_workers is None:
            num_workers = os.cpu_count() or 1
        if isinstance(num_workers, bool) or not isinstance(num_workers, int) or num_workers < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"the number of workers must be at least 1, got {num_workers!r}")
        self.num_workers = num_workers
        self.deadline = checked_deadline(deadline)
        self._crew = _ProcessCrew(num_workers)
        # Also when nobody closes it: at the end of the program, and when nobody holds it any more.
        self._finalizer = weakref.finalize(self, _end_all, self._crew.workers)

    def map(self, work: Pass, shards: Sequence[Shard]) -> Generator[Any]:
        if not shards:
            return
        self._crew.prepare(work, min(self.num_workers, len(shards)))
        yield from dispatch(self._crew, shards, self.deadline)

    def process_ids(self) -> list[int]:
        """Of the workers that run; they are started by the first pass."""
        return [worker.process.pid for worker in self._crew.workers]

    def close(self) -> None:
        """End the workers. A later pass starts new ones."""
        _end_all(self._crew.workers)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"processes({self.num_workers})"


def processes(num_workers: int | None = None, *, deadline: float | None = None) -> Processes:
    """Passes on worker processes of this machine, by default one for each core.

    `deadline` is how many seconds a shard may take before it is sent to another worker as well
    (default: 30, or 20 times the median of the shards so far). The answers have the same bits as
    those of one process. Workers start with the first pass and end with `close()`, at the end of
    a `with` block, or with the program, however that ends.
    """
    return Processes(num_workers, deadline=deadline)


# What it is, the ticket of a shard, and the content; None is the last.
Message = tuple[str, int | None, Any] | None


@dataclass(eq=False)
class _Worker:
    """A process, and the thread that talks to it: whoever hangs, the caller does not."""

    process: subprocess.Popen[bytes]
    events: queue.SimpleQueue[tuple[_Worker, Event]]
    messages: queue.SimpleQueue[Message] = field(default_factory=queue.SimpleQueue[Message])
    ready: bool = False
    late: bool = False
    ticket: int | None = None
    data: Any = None
    """The data that was sent to it."""
    query: Any = None

    def talk(self) -> None:
        inbox: Any = self.process.stdin
        outbox: Any = self.process.stdout
        try:
            pickle.load(outbox)
            self.events.put((self, Event(None)))
            while (message := self.messages.get()) is not None:
                pickle.dump(message, inbox, protocol=5)
                inbox.flush()
                if message[0] == "shard":
                    kind, ticket, content = pickle.load(outbox)
                    heard = pickle.loads(content)
                    answered = kind == "answer"
                    event = Event(ticket, answer=heard) if answered else Event(ticket, error=heard)
                    self.events.put((self, event))
        except Exception:
            # The pipe is broken or ends in the middle of a message.
            self.events.put((self, Event(self.ticket, lost=self._obituary())))
        with contextlib.suppress(OSError):
            inbox.close()
        outbox.close()

    def _obituary(self) -> str:
        try:
            code = self.process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            return "a worker process closed its pipe"
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"a worker process {how}" + (" (out of memory?)" if code == -9 else "")


@dataclass
class _ProcessCrew:
    """The workers that run, each with at most one shard."""

    num_workers: int
    workers: list[_Worker] = field(default_factory=list[_Worker])
    events: queue.SimpleQueue[tuple[_Worker, Event]] = field(
        default_factory=queue.SimpleQueue[tuple[_Worker, Event]]
    )
    work: Pass | None = None
    wanted: int = 0
    failed_starts: int = 0
    _query: bytes = b""

    def prepare(self, work: Pass, num_workers: int) -> None:
        """Workers for the next pass; what they must know is sent with their first shard."""
        self.work, self.wanted = work, num_workers
        self._query = packed((work.query, work.block_rows), "the query with its model")
        self._fill_up()

    def num_free(self) -> int:
        return sum(w.ready and not w.late and w.ticket is None for w in self.workers)

    def send(self, ticket: int, shard: Shard) -> None:
        assert self.work is not None
        worker = next(w for w in self.workers if w.ready and not w.late and w.ticket is None)
        if worker.data is not self.work.data:
            worker.data = self.work.data
            worker.messages.put(("data", None, packed(worker.data, "the data")))
        if worker.query is not self.work:
            worker.query = self.work
            worker.messages.put(("query", None, self._query))
        worker.ticket = ticket
        worker.messages.put(("shard", ticket, tuple(shard)))

    def next_event(self, seconds: float | None) -> Event | None:
        try:
            worker, event = self.events.get(
                timeout=SECONDS_TO_START if seconds is None else seconds
            )
        except queue.Empty:
            if seconds is None:
                raise _do_not_start(f"nothing is heard of them in {SECONDS_TO_START:g} s") from None
            return None
        if worker not in self.workers:
            return None
        if event.lost is not None:
            self._remove(worker)
            self.failed_starts += not worker.ready
            if self.failed_starts >= MAX_FAILED_STARTS:
                raise _do_not_start(
                    f"{MAX_FAILED_STARTS} in a row ended before they were ready, the last since "
                    f"{event.lost}"
                )
            self._fill_up()
            return event
        if event.ticket is None:
            worker.ready, self.failed_starts = True, 0
            return None
        if worker.late:
            # It was replaced long ago.
            self._remove(worker)
        worker.ticket = None
        return event

    def give_up(self, ticket: int) -> None:
        for worker in self.workers:
            if worker.ticket == ticket:
                worker.late = True
        self._fill_up()

    def stop(self) -> None:
        for worker in list(self.workers):
            if worker.ticket is not None:
                self._remove(worker)
        self.work = None

    def _fill_up(self) -> None:
        running = sum(not worker.late for worker in self.workers)
        for _ in range(self.wanted - running):
            self.workers.append(_start(self.events))

    def _remove(self, worker: _Worker) -> None:
        if worker in self.workers:
            self.workers.remove(worker)
        _end(worker)


def _do_not_start(how: str) -> RuntimeError:
    return RuntimeError(
        f"worker processes do not start: {how}. What they print says why; "
        "leave out the executor to work in this process"
    )


def _start(events: queue.SimpleQueue[tuple[_Worker, Event]]) -> _Worker:
    if not sys.executable:
        raise RuntimeError("worker processes need a Python interpreter: sys.executable is empty")
    program = PROGRAM.format(caller=os.getpid(), path=sys.path)
    # A process group of its own: Ctrl-C is for the caller, who then ends the workers.
    own_group = 0 if os.name == "posix" else None
    process: subprocess.Popen[bytes] = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **ONE_THREAD},
        process_group=own_group,
    )
    worker = _Worker(process, events)
    threading.Thread(target=worker.talk, daemon=True).start()
    return worker


def _end(worker: _Worker) -> None:
    """At once, also when it is stopped: a worker has nothing to lose."""
    worker.process.kill()
    worker.process.wait()
    worker.messages.put(None)


def _end_all(workers: list[_Worker]) -> None:
    for worker in workers:
        _end(worker)
    workers.clear()
