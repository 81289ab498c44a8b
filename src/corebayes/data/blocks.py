"""Rows that come as a stream of blocks which can be started again.

The stream can only be read from its beginning, so a shard is reached by passing through those
before it. A pass asks for the shards in order, which costs one reading of the stream; the last few
shards are kept for the threads that lag behind. The first reading takes a hash of every shard, and
every later one must agree with it.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from corebayes.data.arrays import ArrayData, together
from corebayes.data.empty import NoRowsError
from corebayes.data.stored import chosen
from corebayes.data.table import Tally
from corebayes.data.watch import ChangedDataError
from corebayes.types import Block, Indices

# Blocks are joined until a shard has this many rows; a longer block is a shard of its own.
SHARD_ROWS = 16_384
# Shards kept after they were passed.
NUM_KEPT = 4

Enter = Callable[[Any], ArrayData]


class Reader:
    """Where the reading of the stream is, and the last shards it passed.

    Threads share it; a copy in another process starts a reading of its own.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.next_shard = 0
        self.stream: Iterator[Block] | None = None
        self.kept: OrderedDict[int, Block] = OrderedDict()

    def __reduce__(self) -> tuple[type[Reader], tuple[()]]:
        return Reader, ()


@dataclass(frozen=True, kw_only=True)
class BlockSource:
    """Joined blocks of a stream; made by `open_blocks`."""

    blocks: Any
    """An object whose `iter` starts again, or a function that returns an iterator."""
    enter: Enter
    """Makes named arrays of whatever a block is."""
    first: Block
    """The fields without a row."""
    lengths: tuple[int, ...] = ()
    digests: tuple[bytes, ...] = ()
    column_names: tuple[str, ...] = ()
    target_name: str = "y"
    sequential: bool = True
    scattered: bool = False
    _reader: Reader = field(default_factory=Reader, repr=False, compare=False)

    @property
    def template(self) -> Block:
        return self.first

    def parts(self, shard: int, positions: Indices | None, tally: Tally) -> Iterator[Block]:
        """All in one part. Cost: the stream up to this shard, from where it was left."""
        return chosen(iter([self._shard(shard, tally)]), positions)

    def fingerprint(self) -> str:
        """Of all values, as the first reading found them."""
        digest = hashlib.blake2b(digest_size=32)
        for length, found in zip(self.lengths, self.digests, strict=True):
            digest.update(length.to_bytes(8, "little") + found)
        return digest.hexdigest()

    def _shard(self, shard: int, tally: Tally) -> Block:
        reader = self._reader
        with reader.lock:
            if shard in reader.kept:
                return reader.kept[shard]
            if reader.stream is None or shard < reader.next_shard:
                reader.stream, reader.next_shard = self._read(), 0
            while reader.next_shard <= shard:
                try:
                    block = next(reader.stream, None)
                except BaseException:
                    reader.stream = None
                    raise
                self._check(block, reader.next_shard)
                assert block is not None
                count(block, tally)
                reader.kept[reader.next_shard] = block
                reader.next_shard += 1
                if len(reader.kept) > NUM_KEPT:
                    reader.kept.popitem(last=False)
            return reader.kept[shard]

    def _read(self) -> Iterator[Block]:
        return _joined(_entered(self.blocks, self.enter))

    def _check(self, block: Block | None, shard: int) -> None:
        """The reading must give what the first one gave."""
        if block is not None and _digest(block) == self.digests[shard]:
            return
        start = sum(self.lengths[:shard])
        found = "ended" if block is None else "gave other rows"
        self._reader.stream = None
        raise ChangedDataError(
            f"the blocks {found} when read again, at rows {start:,} to "
            f"{start + self.lengths[shard] - 1:,}: every reading must give the same rows in the "
            "same order (is there a random number, a shuffle, a query without an order or a "
            "used-up iterator in it?)"
        )

    def __repr__(self) -> str:
        return f"blocks of {getattr(self.blocks, '__name__', type(self.blocks).__name__)}"


def is_blocks(source: Any) -> bool:
    """A function, or something to iterate over that is neither an array, a table nor a list."""
    if callable(source):
        return True
    array_like = hasattr(source, "__array__") or hasattr(source, "shape")
    known = isinstance(source, str | bytes | list | tuple | Mapping | set | frozenset)
    return hasattr(source, "__iter__") and not array_like and not known


def count(block: Block, tally: Tally) -> None:
    """A block that came, as float64."""
    tally.rows += len(block)
    tally.num_bytes += block.num_bytes


def open_blocks(source: Any, enter: Enter, tally: Tally) -> BlockSource:
    """Read the stream once, for the lengths and hashes of its shards. Memory: one shard."""
    if not callable(source) and iter(source) is source:
        raise TypeError(
            f"a {type(source).__name__} can be read only once: pass a function that returns a "
            "fresh one, or an object whose __iter__ starts again"
        )
    first: ArrayData | None = None

    def remember(block: Any) -> ArrayData:
        nonlocal first
        entered = enter(block)
        first = first or entered
        return entered

    lengths: list[int] = []
    digests: list[bytes] = []
    template: Block | None = None
    for shard in _joined(_entered(source, remember)):
        count(shard, tally)
        template = template or shard.take(np.empty(0, dtype=np.int64))
        lengths.append(len(shard))
        digests.append(_digest(shard))
    if first is None or template is None:
        raise NoRowsError()
    return BlockSource(
        blocks=source,
        enter=enter,
        first=template,
        lengths=tuple(lengths),
        digests=tuple(digests),
        column_names=first.column_names,
        target_name=first.target_name,
    )


def _entered(blocks: Any, enter: Enter) -> Iterator[Block]:
    """The blocks of one reading as float64, alike in their fields and columns."""
    first: tuple[Any, ...] | None = None
    row = 0
    reading: Iterator[Any] = iter(cast(Any, blocks() if callable(blocks) else blocks))
    for number, given in enumerate(reading):
        data = enter(given)
        fields = {
            name: np.array(values, dtype=np.float64, order="C")
            for name, values in data.fields.items()
        }
        block = Block(fields, data.counts)
        lengths = {len(values) for values in fields.values()} | {
            len(block) if data.counts is None else data.counts.size
        }
        layout = (
            {name: values.shape[1:] for name, values in fields.items()},
            data.column_names,
            data.counts is not None,
        )
        first = first or layout
        if layout != first or len(lengths) > 1:
            raise ValueError(
                f"block {number} (from row {row:,}) has the fields, columns and counts "
                f"{layout} and lengths {sorted(lengths)}, the first block has {first}: "
                "all must be alike"
            )
        row += len(block)
        if len(block):
            yield block


def _joined(blocks: Iterator[Block]) -> Iterator[Block]:
    """Blocks put together until they are worth a task."""
    waiting: list[Block] = []
    for block in blocks:
        waiting.append(block)
        if sum(map(len, waiting)) >= SHARD_ROWS:
            yield together(waiting)
            waiting = []
    if waiting:
        yield together(waiting)


def _digest(block: Block) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for name, values in block.fields.items():
        digest.update(name.encode() + str(values.shape).encode())
        digest.update(values.data)
    if block.counts is not None:
        digest.update(np.ascontiguousarray(block.counts).data)
    return digest.digest()
