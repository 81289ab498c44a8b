"""How long a run may take: one clock that everything slow looks at, wherever it is called from.

The deadline belongs to the context of the thread and is handed to nobody, so it holds as well in
samplers, geometries and constructions that have never heard of it, as long as they fit, draw or
pass over rows with what is here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

# A step that is under way when `max_time` ends may go on until 1.15 times `max_time`; then it is
# abandoned, and the state before it is the answer. Before there is an answer the run may go on for
# at least 2 seconds more.
OVERTIME, FIRST_SECONDS = 1.15, 2.0


class OutOfTimeError(TimeoutError):
    """The deadline has passed; whoever set it ends there."""


@dataclass
class Deadline:
    """When, by `time.perf_counter`, to give up what is under way."""

    at: float = math.inf
    doing: str = ""
    """What is under way, for the message."""

    @property
    def is_set(self) -> bool:
        return math.isfinite(self.at)

    def seconds_left(self) -> float:
        return self.at - time.perf_counter()

    def passed(self) -> bool:
        return self.seconds_left() < 0.0

    def check(self) -> None:
        if self.passed():
            raise OutOfTimeError(f"the time ended while {self.doing}")


_current: ContextVar[Deadline] = ContextVar("deadline")
_NEVER = Deadline()


def current_deadline() -> Deadline:
    """For threads, which have a context of their own: ask here, look there."""
    return _current.get(_NEVER)


def check_time() -> None:
    """Raise when the deadline has passed; asked in every loop that may take long."""
    current_deadline().check()


@contextmanager
def deadline_at(at: float) -> Generator[Deadline]:
    """A deadline until the block ends; its owner may move it."""
    limit = Deadline(at)
    token = _current.set(limit)
    try:
        yield limit
    finally:
        _current.reset(token)


@contextmanager
def part_of_time(share: float) -> Generator[None]:
    """A share of the time that is left, for what may be left undone: `OutOfTimeError` after it."""
    whole = current_deadline()
    if not whole.is_set:
        yield
        return
    with deadline_at(time.perf_counter() + share * max(whole.seconds_left(), 0.0)):
        yield


@dataclass
class TimeLimit:
    """What `max_time` asks for, from when on, and the deadline that follows."""

    seconds: float | None
    deadline: Deadline
    began: float = field(default_factory=time.perf_counter)

    @property
    def reason(self) -> str:
        return f"time limit of {self.seconds:g} s"

    def is_over(self) -> bool:
        return self.seconds is not None and time.perf_counter() - self.began >= self.seconds

    def allow_rows(self) -> None:
        """Time for a few rows, where nothing else was ready in time."""
        self.deadline.at = time.perf_counter() + FIRST_SECONDS

    def early(self, method: str) -> str:
        return (
            f"max_time of {self.seconds:g} s ended before {method} had taken its first step: the "
            "coreset is random rows, which stand for all; give it more time or fewer rows (a model "
            "of one's own is quicker with a gradient, or with functions of JAX), and certify "
            "measures how far they are"
        )

    def has_answer(self) -> None:
        """From now on there is something to return."""
        if self.seconds is not None:
            self.deadline.at = self.began + OVERTIME * self.seconds


@contextmanager
def time_limit(max_time: float | None) -> Generator[TimeLimit]:
    """Everything in the block keeps to `max_time`; one sentence when it ends without an answer."""
    if max_time is None:
        # Whoever called may have a deadline, which then holds here too.
        yield TimeLimit(None, Deadline())
        return
    late = max((OVERTIME - 1.0) * max_time, FIRST_SECONDS)
    with deadline_at(time.perf_counter() + max_time + late) as deadline:
        deadline.doing = "reading and checking the rows"
        try:
            yield TimeLimit(max_time, deadline)
        except OutOfTimeError:
            raise OutOfTimeError(
                f"max_time of {max_time:g} s ended before there was a first coreset, while "
                f"{deadline.doing}: give it more time or fewer rows; a model of one's own is "
                "quicker with a gradient, or with functions of JAX"
            ) from None
