"""The pass in this process, on threads: NumPy releases the interpreter while it computes."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from typing import Any

from corebayes.deadline import current_deadline
from corebayes.scan.passes import Pass, Shard

# Shards that are waiting for each thread: a data set may have millions, and a task takes longer to
# submit than a small one to refuse when the time is over.
AHEAD = 16
# Seconds until a waiting caller looks whether it was interrupted.
LOOK = 0.1


@dataclass(frozen=True)
class Inline:
    """Shards on `threads` threads, one BLAS thread each; answers do not depend on their number."""

    threads: int | None = None

    def map(self, work: Pass, shards: Sequence[Shard]) -> Generator[Any]:
        if not shards:
            return
        threads = min(self.threads or os.cpu_count() or 1, len(shards))
        stop, deadline = threading.Event(), current_deadline()

        def stopped() -> bool:
            return stop.is_set() or deadline.passed()

        pool = ThreadPoolExecutor(threads)
        with one_blas_thread():
            try:
                rest = iter(shards)
                task = partial(work, stopped=stopped)
                ahead = deque(pool.submit(task, shard) for shard in islice(rest, AHEAD * threads))
                while ahead:
                    yield _answer(ahead.popleft())
                    ahead.extend(pool.submit(task, shard) for shard in islice(rest, 1))
            finally:
                # After an error or Ctrl-C nobody waits for the blocks that are left, nor for those
                # under way: the first of them may be compiling.
                stop.set()
                pool.shutdown(wait=False, cancel_futures=True)


def _answer(future: Future[Any]) -> Any:
    """What it gives. A signal may reach another thread than the one that waits here, and nothing
    would wake it before the shard is done."""
    while not future.done():
        wait([future], timeout=LOOK)
    return future.result()


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Block-sized products are too small to share: BLAS threads would only wait on each other,
    and sums would depend on their number."""
    return _blas().limit(limits=1, user_api="blas")
