"""What was really read: rows decoded, bytes and seconds, stage by stage."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from corebayes.data.table import Tally


@dataclass
class Stage:
    """Of one stage: rows that were decoded, whether they were wanted or not."""

    rows_decoded: int = 0
    bytes_read: int = 0
    seconds: float = 0.0


@dataclass
class Meter:
    """Counts for everything that goes through one door."""

    stages: dict[str, Stage] = field(default_factory=dict[str, Stage])
    parent: Meter | None = None
    """Counts as well."""
    rows_asked: int = 0
    """Rows that passes went over, by this run or by the one that it goes on from."""
    _under_way: list[str] = field(default_factory=list[str])
    _since: float = 0.0

    def add(self, tally: Tally) -> None:
        """To the stage under way."""
        stage = self._stage(self._under_way[-1] if self._under_way else "elsewhere")
        stage.rows_decoded += tally.rows
        stage.bytes_read += tally.num_bytes
        if self.parent is not None:
            self.parent.add(tally)

    def ask(self, num_rows: int) -> None:
        """A pass over so many rows."""
        self.rows_asked += num_rows
        if self.parent is not None:
            self.parent.ask(num_rows)

    @contextmanager
    def stage(self, name: str) -> Generator[None]:
        """What is read and the time that passes are this stage's, less those of stages within."""
        self._clock()
        self._under_way.append(name)
        try:
            yield
        finally:
            self._clock()
            self._under_way.pop()

    @property
    def rows_decoded(self) -> int:
        return sum(stage.rows_decoded for stage in self.stages.values())

    @property
    def bytes_read(self) -> int:
        return sum(stage.bytes_read for stage in self.stages.values())

    def to_dict(self) -> dict[str, Any]:
        """For the provenance of a coreset."""
        self._clock()
        return {
            "rows_decoded": self.rows_decoded,
            "bytes_read": self.bytes_read,
            "stages": {name: asdict(stage) for name, stage in self.stages.items()},
        }

    def _stage(self, name: str) -> Stage:
        return self.stages.setdefault(name, Stage())

    def _clock(self) -> None:
        now = time.perf_counter()
        if self._under_way:
            self._stage(self._under_way[-1]).seconds += now - self._since
        self._since = now
