"""Shards that stay in memory when they are decoded again and again, as far as a few hundred
megabytes go.

A build reads its rows twice as a rule, once to check them and once to add them up. Fresh memory for
all of them costs as much as decoding does, so they stay from the third reading on.

Passes run from the first shard to the last, so the first ones stay: those used last would be gone
before their turn comes again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

from corebayes.types import Block

# For all rows that a process has open, where no `memory` says what it may take: 3e6 rows of ten
# features and a target.
MOST_BYTES = 2**28
# Readings after which a shard is not kept yet.
PASSING = 2


class _Room:
    """Bytes that are kept by all tables of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.taken = 0

    def take(self, num_bytes: int) -> bool:
        with self.lock:
            fits = self.taken + num_bytes <= MOST_BYTES
            self.taken += num_bytes if fits else 0
            return fits

    def give_back(self, num_bytes: int) -> None:
        with self.lock:
            self.taken -= num_bytes


_room = _Room()


class Decoded:
    """The shards of one source by their numbers; a copy in another process keeps none."""

    def __init__(self) -> None:
        self._shards: dict[int, list[Block]] = {}
        self._readings: dict[int, int] = {}
        self._room = _room

    def __reduce__(self) -> tuple[type[Decoded], tuple[()]]:
        return Decoded, ()

    def get(self, shard: int) -> list[Block] | None:
        return self._shards.get(shard)

    def keeping(self, shard: int, parts: Iterator[Block]) -> Iterator[Block]:
        """The parts as they come, kept if they all fit and are read often."""
        readings = self._readings[shard] = self._readings.get(shard, 0) + 1
        if readings <= PASSING:
            yield from parts
            return
        kept: list[Block] = []
        fits = True
        try:
            for part in parts:
                yield part
                fits = fits and self._room.take(part.num_bytes)
                kept += [part] if fits else []
        except BaseException:
            # A pass that ends early leaves the shard unread.
            fits = False
            raise
        finally:
            if fits:
                self._shards[shard] = kept
            else:
                self._room.give_back(_size(kept))

    def forget(self) -> None:
        shards, self._shards = self._shards, {}
        self._room.give_back(sum(map(_size, shards.values())))

    def __del__(self) -> None:
        self.forget()


def _size(parts: list[Block]) -> int:
    return sum(part.num_bytes for part in parts)
