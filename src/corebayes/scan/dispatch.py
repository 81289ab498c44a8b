"""Shards sent to workers that may die, hang or be slow: every answer kept once, in order.

A shard whose worker died is sent again. One that is not answered within its deadline is sent to
another worker as well, and the first answer counts; since an answer is a pure function of its
shard, it does not matter whose it is. After three tries there is an error that names the rows.
What the computation itself raises is raised here, at once and unchanged.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, NamedTuple, Protocol

from corebayes.deadline import check_time, current_deadline

MAX_TRIES = 3
# Without a deadline of the caller's: a shard may take this many seconds, and this many times as
# long as half of the shards took.
MIN_SECONDS, TIMES_MEDIAN = 30.0, 20.0


class Event(NamedTuple):
    """What became of one sending: an answer, an exception, or a lost worker; None without one."""

    ticket: int | None
    answer: Any = None
    error: Exception | None = None
    lost: str | None = None
    final: bool = False
    """Whether trying again is of no use."""


class Crew(Protocol):
    """Workers, wherever they are. A ticket is one sending of one shard."""

    def num_free(self) -> int:
        """Sendings that a worker would take up now."""
        ...

    def send(self, ticket: int, shard: Any) -> None:
        """`shard` is one of those given to `dispatch`, or several in one."""
        ...

    def next_event(self, seconds: float | None) -> Event | None:
        """Wait for what happens next; None when nothing did in time."""
        ...

    def give_up(self, ticket: int) -> None:
        """Count on this sending's worker no more, though it may yet answer."""
        ...

    def stop(self) -> None:
        """Forget every sending that has not been answered."""
        ...


class ShardError(RuntimeError):
    """A shard that no worker could answer."""


@dataclass
class _Sending:
    number: int
    began: float
    late: bool = False


@dataclass
class _Progress:
    """How often a shard was tried, and why that was in vain."""

    tries: int = 0
    troubles: list[str] = field(default_factory=list[str])
    error: Exception | None = None


def dispatch(
    crew: Crew, shards: Sequence[Any], deadline: float | None, name: str = "shard"
) -> Generator[Any]:
    """The answers of all shards, in their order; `name` is what an error calls one of them."""
    book = _Book(crew, shards, deadline, name)
    try:
        for number in range(len(shards)):
            while number not in book.answers:
                check_time()
                book.send_waiting()
                event = crew.next_event(book.seconds_left())
                if event is not None and event.ticket in book.sendings:
                    book.enter(event)
                book.find_late()
            yield book.answers.pop(number)
            book.answered += 1
    finally:
        crew.stop()


@dataclass
class _Book:
    """What was sent, when, and what came back."""

    crew: Crew
    shards: Sequence[Any]
    deadline: float | None
    name: str = "shard"
    answers: dict[int, Any] = field(default_factory=dict[int, Any])
    sendings: dict[int | None, _Sending] = field(default_factory=dict[int | None, _Sending])
    answered: int = 0
    """Shards that were handed over: all before this one."""

    def __post_init__(self) -> None:
        self._waiting = deque(range(len(self.shards)))
        self._progress = [_Progress() for _ in self.shards]
        self._times: list[float] = []
        self._next_ticket = 0

    def send_waiting(self) -> None:
        while self._waiting and self.crew.num_free() > 0:
            number = self._waiting.popleft()
            if self._is_answered(number):
                continue
            self._progress[number].tries += 1
            self.sendings[self._next_ticket] = _Sending(number, time.monotonic())
            self.crew.send(self._next_ticket, self.shards[number])
            self._next_ticket += 1

    def enter(self, event: Event) -> None:
        sending = self.sendings.pop(event.ticket)
        number = sending.number
        if self._is_answered(number):
            return
        progress = self._progress[number]
        if event.lost is None and event.error is None:
            self.answers[number] = event.answer
            self._times.append(time.monotonic() - sending.began)
            return
        # Disks and networks have bad moments; anything else would only fail again.
        if event.error is not None and not isinstance(event.error, OSError):
            raise event.error
        progress.error = event.error or progress.error
        trouble = f"{event.error}" if event.lost is None else event.lost
        self._fail(number, trouble, again=not sending.late, final=event.final)

    def find_late(self) -> None:
        """Send again what is not answered in time."""
        now = time.monotonic()
        for ticket, sending in list(self.sendings.items()):
            limit = self._limit(sending)
            if ticket is None or sending.late or now - sending.began < limit:
                continue
            sending.late = True
            self.crew.give_up(ticket)
            if not self._is_answered(sending.number):
                self._fail(sending.number, f"no answer within {limit:.3g} s", again=True)

    def seconds_left(self) -> float | None:
        """Until the next sending is late, or the time of the whole run is over."""
        now, run = time.monotonic(), current_deadline().seconds_left()
        left = [s.began + self._limit(s) - now for s in self.sendings.values() if not s.late]
        soonest = min([*left, run])
        return max(0.0, soonest) if math.isfinite(soonest) else None

    def _limit(self, sending: _Sending) -> float:
        """Twice as long with every try: a slow shard must not be mistaken for a hung worker."""
        seconds = self.deadline
        if seconds is None:
            median = statistics.median(self._times) if self._times else 0.0
            seconds = max(MIN_SECONDS, TIMES_MEDIAN * median)
        return seconds * 2.0 ** (self._progress[sending.number].tries - 1)

    def _fail(self, number: int, trouble: str, *, again: bool, final: bool = False) -> None:
        progress = self._progress[number]
        progress.troubles.append(trouble)
        if progress.tries < MAX_TRIES and not final:
            if again:
                self._waiting.appendleft(number)
            return
        if not final and any(s.number == number and not s.late for s in self.sendings.values()):
            return
        raise ShardError(
            f"{self.name} {number + 1} of {len(self.shards)} ({self.shards[number]}) failed "
            f"{progress.tries} times: {'; '.join(progress.troubles)}. If a shard honestly takes "
            "long, give the executor a longer deadline"
        ) from progress.error

    def _is_answered(self, number: int) -> bool:
        return number < self.answered or number in self.answers


def checked_deadline(deadline: Any) -> float | None:
    """Seconds that a shard may take, or None for the default."""
    if deadline is None:
        return None
    if isinstance(deadline, bool) or not isinstance(deadline, Real) or not float(deadline) > 0:
        raise ValueError(f"deadline must be a positive number of seconds, got {deadline!r}")
    return float(deadline)
