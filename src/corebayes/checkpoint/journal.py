"""Checkpoints of a run: the answers of its passes, in order.

A construction is a deterministic function of its seed and of the answers to its passes, so these
answers are all there is to keep. A run that is taken up again starts from the beginning and is told
what was answered before instead of reading the rows; it comes by the same state, whatever the
construction, and then goes on. Of a pass under way the answer of the shards so far is kept.
"""

from __future__ import annotations

import itertools
import logging
import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NamedTuple, Self

from corebayes.checkpoint.encoding import NotEncodable, decode, encode
from corebayes.checkpoint.identity import Identity, check_same, pass_digest
from corebayes.checkpoint.store import CheckpointError, Segment, Store, is_disk_full
from corebayes.files.outputs import probe_folder
from corebayes.scan.passes import Pass, Shard

# Longer answers, which have a number for every row, are not kept: the pass is done again.
LARGEST_ANSWER = 1 << 22
# Records of this many bytes move to a file that is not written again.
SEGMENT_BYTES = 1 << 22
# Writing may take one part in so many of the time.
SHARE_OF_TIME = 20.0

logger = logging.getLogger("corebayes")


class _Under(NamedTuple):
    """The pass under way."""

    digest: str
    num_shards: int
    done: int = 0
    answer: Any = None
    noted: bool = False
    """Whether it is known that its answer is not kept."""


@dataclass(eq=False)
class Journal:
    """Remembers the answers of passes in a folder; `open_journal` makes one."""

    folder: str
    header: Identity
    store: Store | None
    """None when the disk was too full to begin."""
    segments: list[Segment] = field(default_factory=list[Segment])
    records: list[bytes] = field(default_factory=list[bytes])
    """Those after the segments: all finished passes but, as long as it is not taken up again, the
    last, which may be unfinished."""

    def __post_init__(self) -> None:
        self._asked = 0
        self._under: _Under | None = None
        self._sealed = sum(segment.num_records for segment in self.segments)
        self._segment: tuple[int, list[bytes]] = (-1, [])
        self._write_after = 0.0
        self._writing = self.store is not None

    @property
    def num_recorded(self) -> int:
        return self._sealed + len(self.records)

    def recall(self, work: Pass, shards: Sequence[Shard]) -> tuple[Any, int]:
        """The answer of the first shards of the next pass, and how many these are."""
        self._leave_behind()
        digest = pass_digest(work, shards)
        under = _Under(digest, len(shards))
        if self._asked < self.num_recorded:
            saved = self._recorded(self._asked)
            if saved is None or saved[0] != digest or saved[2] != len(shards):
                self._forget(saved)
            else:
                _, done, _, answer = saved
                if done == len(shards):
                    self._asked += 1
                    return answer, done
                if done == 0:
                    under = under._replace(noted=True)
                else:
                    # It is written again when there is more of it.
                    self.records.pop()
                    under = under._replace(done=done, answer=answer)
        self._under = under
        return under.answer, under.done

    def keep(self, answer: Any, done: int) -> None:
        """The answer of the first `done` shards of the pass under way."""
        assert self._under is not None
        self._under = self._under._replace(answer=answer, done=done)
        if done == self._under.num_shards:
            if not self._under.noted:
                self.records.append(self._record(self._under) or _not_kept(self._under))
            self._asked += 1
            self._under = None
        if time.monotonic() >= self._write_after:
            self.write()

    def write(self) -> None:
        """Now, whatever it costs. When it cannot be done, the run goes on without."""
        if self.store is None or not self._writing:
            return
        began = time.monotonic()
        try:
            while sum(map(len, self.records)) > SEGMENT_BYTES and self._asked == self.num_recorded:
                ends = itertools.accumulate(map(len, self.records))
                number = next(k for k, end in enumerate(ends, 1) if end > SEGMENT_BYTES)
                self.segments.append(self.store.seal(self.records[:number]))
                self._sealed += number
                self.records = self.records[number:]
            under = self._under and self._under.done and self._record(self._under)
            records = [*self.records, under] if under else self.records
            self.store.save(self.header, self.segments, records)
        except OSError as error:
            self._give_up(error)
        now = time.monotonic()
        self._write_after = now + SHARE_OF_TIME * (now - began)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.write()
        finally:
            if self.store is not None:
                self.store.close()

    def _leave_behind(self) -> None:
        """A pass that ended in an error, which the construction knew how to go on from."""
        if self._under is not None:
            if not self._under.noted:
                self.records.append(_not_kept(self._under))
            self._asked += 1
            self._under = None

    def _record(self, under: _Under) -> bytes | None:
        """None for an answer that is not kept."""
        try:
            record = encode((under.digest, under.done, under.num_shards, under.answer))
        except NotEncodable:
            return None
        return record if len(record) <= LARGEST_ANSWER else None

    def _recorded(self, number: int) -> Any:
        """(digest, shards done, shards, answer); None when the bytes are nothing of the kind."""
        try:
            saved = decode(self._bytes(number))
            digest, done, num_shards, _ = saved
            return saved if isinstance(digest, str) and 0 <= done <= num_shards else None
        except (TypeError, ValueError, OSError):
            return None

    def _bytes(self, number: int) -> bytes:
        if number >= self._sealed:
            return self.records[number - self._sealed]
        first = 0
        for place, segment in enumerate(self.segments):
            if number < first + segment.num_records:
                if self._segment[0] != place:
                    assert self.store is not None
                    self._segment = (place, self.store.read_segment(segment))
                return self._segment[1][number - first]
            first += segment.num_records
        raise IndexError(number)

    def _forget(self, saved: Any) -> None:
        """All records from the next on: they are answers to other questions."""
        what = "its record is damaged" if saved is None else "it is asked something else than then"
        warnings.warn(
            f"checkpoint {self.folder}: pass {self._asked + 1} is done again, with all after it, "
            f"since {what} (another machine, or another version of a library?)",
            UserWarning,
            stacklevel=6,
        )
        kept: list[bytes] = []
        while self.segments and self._sealed > self._asked:
            segment = self.segments.pop()
            self._sealed -= segment.num_records
            if self._sealed < self._asked and self.store is not None:
                kept = self.store.read_segment(segment)[: self._asked - self._sealed]
        self.records = kept or self.records[: max(0, self._asked - self._sealed)]
        self._segment = (-1, [])

    def _give_up(self, error: OSError) -> None:
        warnings.warn(
            f"checkpoint {self.folder} cannot be written ({error}): the last one stays as it is, "
            "and the run goes on without",
            UserWarning,
            stacklevel=5,
        )
        self._writing = False


def check_folder(folder: str | os.PathLike[str] | None) -> None:
    """Raise now what opening the journal would raise when the rows have been read."""
    if folder is None:
        return
    try:
        probe_folder(folder, 0)
    except OSError as error:
        # A full disk is no reason to do without the result.
        if not is_disk_full(error):
            raise CheckpointError(f"no checkpoint can be kept: {error}") from error


def open_journal(folder: str | os.PathLike[str], header: Identity) -> Journal:
    """The journal of a run in its folder, which is made if need be.

    `CheckpointError` when it is of another run, in use, or damaged beyond use.
    """
    name = os.fspath(folder)
    try:
        store = Store(folder)
    except OSError as error:
        if not is_disk_full(error):
            raise CheckpointError(f"cannot use the checkpoint {name}: {error}") from error
        warnings.warn(f"checkpoint {name}: the disk is full, so there is none", stacklevel=4)
        return Journal(name, header, None)
    try:
        saved = store.load()
        if saved is None:
            journal = Journal(name, header, store)
        else:
            check_same(name, header, saved.header)
            journal = Journal(name, header, store, saved.segments, saved.records)
            logger.info(
                "checkpoint %s: %d passes are recorded, going on from there",
                name,
                journal.num_recorded,
            )
        journal.write()
    except BaseException:
        store.close()
        raise
    return journal


def _not_kept(under: _Under) -> bytes:
    return encode((under.digest, 0, under.num_shards, None))
