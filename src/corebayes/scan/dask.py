"""The pass on a Dask cluster, by plain submission of tasks.

A task carries its shards and what it takes to answer them, so that no worker waits for another: a
hung one would hold up all that fetch from it. Data too large for that, which is data in memory, is
scattered to the workers instead. Where there are many shards a task has several: to submit one and
to fetch its answer takes the cluster some fifteen milliseconds of work.
"""

from __future__ import annotations

import importlib
import os
import pickle
import queue
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from corebayes.extras import import_extra
from corebayes.scan.dispatch import Event, checked_deadline, dispatch
from corebayes.scan.inline import one_blas_thread
from corebayes.scan.passes import Pass, Shard
from corebayes.scan.shipping import packed

# Longer parcels are scattered once instead of sent with every task.
LARGEST_PARCEL = 1 << 20
# Tasks at the cluster for each of its threads: one that runs and one that waits.
TASKS_A_THREAD = 2
# Shards of a task at most, and tasks for each thread at least, so that all end at about one time.
MOST_SHARDS, LEAST_TASKS = 4, 8
# How long a number of workers is believed, in seconds.
SECONDS_BELIEVED = 1.0
# Unpacked queries and data that a worker keeps.
NUM_KEPT = 8


class Dask:
    """Shards on the workers of a `distributed.Client`; see `dask`."""

    def __init__(self, client: Any, *, deadline: float | None = None, security: Any = None) -> None:
        distributed = _distributed()
        if isinstance(client, str):
            client = _connected(client, security)
        elif security is not None:
            raise ValueError("security is for the address of a scheduler; a client has its own")
        if not isinstance(client, distributed.Client):
            raise TypeError(
                "dask() takes a distributed.Client or the address of a scheduler, "
                f"got {type(client).__name__}"
            )
        self.client = client
        self.deadline = checked_deadline(deadline)
        self._suspects: set[str] = set()
        self._data: _Parcel | None = None

    def map(self, work: Pass, shards: Sequence[Shard]) -> Generator[Any]:
        if not shards:
            return
        if self._data is None or self._data.content is not work.data:
            self._data = _Parcel(work.data, "the data")
        query = _Parcel((work.query, work.block_rows), "the query with its model")
        crew = _DaskCrew(self.client, query, self._data, self._suspects)
        tasks = _tasks(shards, crew.num_threads())
        size = len(tasks[0].shards)
        deadline = None if self.deadline is None else size * self.deadline
        name = "shard" if size == 1 else f"group of {size} shards"
        for answers in dispatch(crew, tasks, deadline, name):
            yield from answers

    def __repr__(self) -> str:
        return f"dask({self.client.scheduler.address!r})"


def dask(client: Any, *, deadline: float | None = None, security: Any = None) -> Dask:
    """Passes on a Dask cluster: a `distributed.Client`, or the address of its scheduler.

    Files must be there under the same paths on every machine. `deadline` is how many seconds a
    shard may take before it is sent to another worker as well (default: 30, or 20 times the
    median of the shards so far). The answers have the same bits as those of one process. The
    cluster stays the caller's: nothing is started or closed. With an address as tls://host:8786,
    `security` is a `distributed.Security` with the certificates, else that of Dask's configuration.
    """
    return Dask(client, deadline=deadline, security=security)


def certificates(folder: str | os.PathLike[str]) -> Any:
    """The `distributed.Security` of a folder with ca.pem, cert.pem and key.pem, which lets nothing
    pass unencrypted."""
    paths = [Path(folder, name) for name in ("ca.pem", "cert.pem", "key.pem")]
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"there is no {path}: --tls names a folder that has it")
    authority, certificate, key = map(str, paths)
    return _distributed().Security(
        tls_ca_file=authority,
        tls_client_cert=certificate,
        tls_client_key=key,
        require_encryption=True,
    )


def _connected(address: str, security: Any) -> Any:
    distributed = _distributed()
    # Without arguments it is what Dask's configuration says.
    security = distributed.Security() if security is None else security
    if not isinstance(security, distributed.Security):
        raise TypeError(f"security must be a distributed.Security, got {type(security).__name__}")
    secured = security.tls_ca_file is not None
    if address.startswith("tls://") and not secured:
        raise ValueError(
            f"{address} asks for certificates: dask(address, security=distributed.Security(...)), "
            "or --tls FOLDER on the command line"
        )
    if security.require_encryption and not address.startswith("tls://"):
        raise ValueError(f"{address} is not encrypted: with certificates give tls://host:port")
    try:
        return distributed.Client(address, security=security)
    except (OSError, ValueError) as error:
        hint = "are the certificates those of the cluster?" if secured else "does it want tls://?"
        raise ConnectionError(
            f"no Dask scheduler answers at {address} ({error}); {hint}"
        ) from error


def _distributed() -> Any:
    return import_extra("distributed", "a Dask cluster needs", "cluster")


class _Task(NamedTuple):
    """Shards that follow each other, answered one by one."""

    shards: tuple[Shard, ...]

    def __str__(self) -> str:
        return str(Shard(self.shards[0].start, self.shards[-1].stop))


def _tasks(shards: Sequence[Shard], num_threads: int) -> list[_Task]:
    size = min(max(len(shards) // (LEAST_TASKS * num_threads), 1), MOST_SHARDS)
    return [_Task(tuple(shards[k : k + size])) for k in range(0, len(shards), size)]


@dataclass(eq=False)
class _Parcel:
    """Something packed once, and known to workers by its token."""

    content: Any
    what: str
    token: str = field(default_factory=lambda: secrets.token_hex(8))

    def __post_init__(self) -> None:
        self._bytes = packed(self.content, self.what)
        self._scattered: Any = None

    def argument(self, client: Any, workers: list[str] | None, *, again: bool = False) -> Any:
        """What a task takes: the bytes, or the future of them."""
        if len(self._bytes) <= LARGEST_PARCEL:
            return self._bytes
        if self._scattered is None or again:
            self._scattered = client.scatter(
                self._bytes, broadcast=True, hash=False, workers=workers
            )
        return self._scattered


@dataclass
class _DaskCrew:
    """Tasks at the cluster, a few for each thread so that deadlines mean something."""

    client: Any
    query: _Parcel
    data: _Parcel
    suspects: set[str]
    """Workers that have left a shard unanswered; nothing is sent to them while there are others."""

    def __post_init__(self) -> None:
        self._futures: dict[int, Any] = {}
        self._late: set[int] = set()
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._threads: dict[str, int] = {}
        self._counted = -SECONDS_BELIEVED
        self._renew = False
        # Dask blames a death on every task that the worker had, so those are tried one at a time.
        self._blamed: set[int] = set()
        self._starts: dict[int, int] = {}

    def num_free(self) -> int:
        under_way = len(self._futures.keys() - self._late)
        if self._blamed:
            return 1 - under_way
        return TASKS_A_THREAD * self.num_threads() - under_way

    def num_threads(self) -> int:
        """Threads of the workers that can be counted on, or one to come."""
        if time.monotonic() - self._counted > SECONDS_BELIEVED:
            self._threads = dict(self.client.nthreads())
            self._counted = time.monotonic()
        trusted = self._trusted() or list(self._threads)
        # Without a worker the first tasks wait for one to come, as long as their deadline is.
        return sum(self._threads[worker] for worker in trusted) or 1

    def send(self, ticket: int, shard: _Task) -> None:
        workers = self._trusted() if self.suspects else None
        data = self.data.argument(self.client, workers, again=self._renew)
        query = self.query.argument(self.client, workers, again=self._renew)
        self._renew = False
        future = self.client.submit(
            _answer,
            (self.query.token, query),
            (self.data.token, data),
            [tuple(part) for part in shard.shards],
            key=f"corebayes-{self.query.token}-{ticket}",
            workers=workers or None,
            pure=False,
        )
        self._futures[ticket] = future
        self._starts[ticket] = shard.shards[0].start
        future.add_done_callback(partial(self._hear, ticket))

    def _hear(self, ticket: int, future: Any) -> None:
        """Called on the client's one thread for such calls, which must not wait: an answer may lie
        with a worker that has hung since."""
        threading.Thread(target=self._fetch, args=(ticket, future), daemon=True).start()

    def _fetch(self, ticket: int, future: Any) -> None:
        self._events.put(_heard(ticket, future))

    def next_event(self, seconds: float | None) -> Event | None:
        try:
            event = self._events.get(timeout=seconds)
        except queue.Empty:
            return None
        if event.ticket is None or event.ticket not in self._futures:
            return None
        del self._futures[event.ticket]
        self._late.discard(event.ticket)
        start = self._starts[event.ticket]
        if event.final and start not in self._blamed:
            self._blamed.add(start)
            event = event._replace(final=False)
        elif event.lost is None:
            self._blamed.discard(start)
        # What was scattered may have gone with a worker.
        self._renew = self._renew or event.lost is not None
        return event

    def give_up(self, ticket: int) -> None:
        self._late.add(ticket)
        key = self._futures[ticket].key
        for worker, keys in self.client.processing().items():
            if key in keys:
                self.suspects.add(worker)
        self._renew = True

    def stop(self) -> None:
        for future in self._futures.values():
            future.cancel()
        self._futures.clear()

    def _trusted(self) -> list[str]:
        return [worker for worker in self._threads if worker not in self.suspects]


def _heard(ticket: int, future: Any) -> Event:
    """What became of a task."""
    distributed: Any = importlib.import_module("distributed")
    try:
        if future.status == "finished":
            return Event(ticket, answer=future.result())
        error = future.exception() if future.status == "error" else None
    except Exception as failure:
        return Event(ticket, lost=f"its answer was lost ({failure})")
    if error is None:
        return Event(ticket, lost=f"the cluster dropped its task ({future.status})")
    if isinstance(error, distributed.KilledWorker):
        return Event(ticket, lost="every Dask worker that took it died", final=True)
    return Event(ticket, error=error)


def _answer(
    query: tuple[str, Any], data: tuple[str, Any], shards: list[tuple[Any, ...]]
) -> list[Any]:
    """The task: runs on a worker. Answers are not merged here: sums would have other bits."""
    _keep_to_one_thread()
    asked, block_rows = _unpacked(*query)
    work = Pass(asked, _unpacked(*data), block_rows)
    return [work(Shard(*shard)) for shard in shards]


_kept: OrderedDict[str, Any] = OrderedDict()
_lock = threading.Lock()


def _unpacked(token: str, content: bytes) -> Any:
    with _lock:
        if token not in _kept:
            _kept[token] = pickle.loads(content)
            if len(_kept) > NUM_KEPT:
                _kept.popitem(last=False)
        _kept.move_to_end(token)
        return _kept[token]


@cache
def _keep_to_one_thread() -> None:
    """For the life of the worker: to undo it after a task would disturb those beside it."""
    one_blas_thread().__enter__()
