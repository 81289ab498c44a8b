"""Rows in Parquet files: a row group, or several small ones, is a shard.

Columns are found by name in every file, and which columns are read in which order is decided once,
when the data is opened. Of a shard a few columns are decoded at a time; where it is too large for
memory all columns of a part of its rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from corebayes.data.columns import Roles
from corebayes.data.frames import arrow_column, import_pyarrow, side_by_side
from corebayes.data.stored import PART_ROWS
from corebayes.data.table import Tally
from corebayes.data.watch import ChangedDataError, WatchedFile
from corebayes.files.reading import first_line
from corebayes.types import Array, Block, Indices

# Column chunks are read through buffers of this size instead of whole.
BUFFER_BYTES = 1 << 18
# Columns that are decoded together: each takes a dictionary of up to a megabyte beside its values.
COLUMNS_AT_ONCE, DICTIONARY_BYTES = 4, 1 << 20
# Shards that are larger as float64 are decoded by parts of their rows.
WHOLE_BYTES = 1 << 26


class Piece(NamedTuple):
    """One file: its row groups that are used, those read together, how many rows that are, and
    columns that its path spells out."""

    file: WatchedFile
    groups: tuple[tuple[int, ...], ...]
    lengths: tuple[int, ...]
    constants: Mapping[str, Any]
    """Numbers, or texts where the columns may hold any."""


@dataclass(frozen=True, kw_only=True)
class ParquetSource:
    """Row groups of Parquet files, in the order of the files' names; made by `open_parquet`."""

    pieces: tuple[Piece, ...]
    roles: Roles
    types: tuple[str, ...]
    """Arrow types of the columns used, in the first file."""
    sequential: bool = False
    scattered: bool = False
    _metadata: dict[int, Any] = field(default_factory=dict[int, Any], repr=False, compare=False)
    _packed: dict[Any, int] = field(default_factory=dict[Any, int], repr=False, compare=False)

    @property
    def lengths(self) -> tuple[int, ...]:
        return self._lengths

    @cached_property
    def _lengths(self) -> tuple[int, ...]:
        return tuple(length for piece in self.pieces for length in piece.lengths)

    @property
    def column_names(self) -> tuple[str, ...]:
        return self.roles.features

    @property
    def target_name(self) -> str:
        return self.roles.target or "y"

    @property
    def template(self) -> Block:
        return self._block({name: np.empty(0) for name in self._columns})

    @property
    def part_bytes(self) -> int:
        """Memory for the largest part: its matrix, and what Arrow holds while it is decoded."""
        largest, width = max(self.lengths), 8 * len(self._columns)
        if largest * width <= WHOLE_BYTES:
            together = COLUMNS_AT_ONCE * (2 * 8 * largest + DICTIONARY_BYTES)
            return largest * width + together
        return 3 * PART_ROWS * width + len(self._columns) * (DICTIONARY_BYTES + BUFFER_BYTES)

    def parts(self, shard: int, positions: Indices | None, tally: Tally) -> Iterator[Block]:
        """All in one part, or by parts up to the last row asked for."""
        whole = self.lengths[shard] * 8 * len(self._columns) <= WHOLE_BYTES
        read = self._whole if whole else self._by_parts
        return self._decoded(shard, read, positions, tally, complete=whole or positions is None)

    @property
    def packed_bytes(self) -> int:
        """What the files take where they are."""
        return sum(piece.file.size for piece in self.pieces)

    def check(self, shard: int) -> None:
        """An error when the shard's file has changed."""
        self.pieces[self._groups[shard][0]].file.check()

    def batches(
        self, shard: int, positions: Indices | None, tally: Tally
    ) -> Iterator[tuple[Indices | slice, Any]]:
        """The columns as they are stored, whatever they hold: parts of the shard as Arrow tables,
        and which of their rows are asked for."""
        return self._decoded(shard, self._stored_parts, positions, tally, positions is None)

    def _decoded(
        self,
        shard: int,
        read: Callable[..., Iterator[Any]],
        positions: Indices | None,
        tally: Tally,
        complete: bool,
    ) -> Iterator[Any]:
        """What `read` makes of a shard, with errors that name the file."""
        position, groups = self._groups[shard]
        piece, length = self.pieces[position], self.lengths[shard]
        piece.file.check()
        before = tally.rows
        try:
            with self._opened(position) as file:
                yield from read(file, piece, groups, positions, tally)
        except (import_pyarrow().ArrowException, OSError) as error:
            piece.file.check()
            raise OSError(
                f"cannot read {_named(groups)} of {piece.file.path}: {first_line(error)}"
            ) from error
        finally:
            share = (tally.rows - before) / length
            tally.num_bytes += round(share * self._bytes(position, groups))
        found = tally.rows - before
        if found != length and complete:
            raise ChangedDataError(
                f"{_named(groups)} of {piece.file.path} has {found:,} rows, "
                f"but had {length:,} when the data was opened"
            )

    def _whole(
        self, file: Any, piece: Piece, groups: Any, positions: Indices | None, tally: Tally
    ) -> Iterator[Block]:
        """A few columns at a time, so that Arrow holds little."""
        names, picked = self._stored(piece), slice(None) if positions is None else positions
        features = {name: place for place, name in enumerate(self.roles.features)}
        # A column is a row here: copied in one go, and summed in one go by every pass.
        matrix, others, length = np.empty((0, 0)), dict[str, Array](), 0
        for first in range(0, len(names), COLUMNS_AT_ONCE):
            some = names[first : first + COLUMNS_AT_ONCE]
            table = file.read_row_groups(groups, columns=some, use_threads=False)
            columns = [arrow_column(table.column(name))[picked] for name in some]
            if first == 0:
                length = table.num_rows
                matrix = np.empty((len(features), len(columns[0])))
            for name, column in zip(some, columns, strict=True):
                if name in features:
                    matrix[features[name]] = column
                else:
                    others[name] = column.copy()
        for name, value in piece.constants.items():
            if name in features:
                matrix[features[name]] = value
            else:
                others[name] = np.full(matrix.shape[1], value)
        tally.rows += length
        yield self._labelled(matrix.T, others)

    def _by_parts(
        self, file: Any, piece: Piece, groups: Any, positions: Indices | None, tally: Tally
    ) -> Iterator[Block]:
        """All columns of some rows at a time."""
        names, columns = self._stored(piece), dict[str, Array]()
        for picked, batch in self._batches(file, piece, groups, positions, tally):
            columns = {
                name: arrow_column(batch.column(batch.schema.get_field_index(name)))[picked]
                for name in names
            }
            length = len(columns[names[0]])
            constants = {n: np.full(length, value) for n, value in piece.constants.items()}
            yield self._block(columns | constants)

    def _stored_parts(
        self, file: Any, piece: Piece, groups: Any, positions: Indices | None, tally: Tally
    ) -> Iterator[tuple[Indices | slice, Any]]:
        arrow = import_pyarrow()
        for picked, batch in self._batches(file, piece, groups, positions, tally):
            table = arrow.Table.from_batches([batch])
            for name, value in piece.constants.items():
                table = table.append_column(name, arrow.array([value] * batch.num_rows))
            yield picked, table

    def _batches(
        self, file: Any, piece: Piece, groups: Any, positions: Indices | None, tally: Tally
    ) -> Iterator[tuple[Indices | slice, Any]]:
        """Some rows at a time, and which are picked; nothing is read beyond the last of these."""
        first, passed, names = 0, 0, self._stored(piece)
        batch: Any
        for batch in file.iter_batches(
            batch_size=PART_ROWS, row_groups=groups, columns=names, use_threads=False
        ):
            picked: Indices | slice = slice(None)
            if positions is not None:
                last = int(np.searchsorted(positions, passed + int(batch.num_rows)))
                picked, first = positions[first:last] - passed, last
            passed += batch.num_rows
            tally.rows += batch.num_rows
            if isinstance(picked, slice) or picked.size:
                yield picked, batch
            if positions is not None and first == positions.size:
                return

    def fingerprint(self) -> str:
        """Of names, sizes, row groups, types of the columns, and a sample of each file's content.

        A file is known by its name alone, so that a moved folder is the same data.
        """
        layout: list[Any] = [list(self._columns), list(self.types)]
        for piece in self.pieces:
            file, groups = piece.file, [group for some in piece.groups for group in some]
            name = PurePosixPath(file.path).name
            layout.append([name, file.size, file.digest, groups, sorted(piece.constants)])
        return hashlib.blake2b(json.dumps(layout).encode(), digest_size=32).hexdigest()

    @cached_property
    def _groups(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """The file and the row groups of every shard."""
        return tuple((k, groups) for k, piece in enumerate(self.pieces) for groups in piece.groups)

    @cached_property
    def _columns(self) -> tuple[str, ...]:
        extra = (self.roles.target, self.roles.counts)
        return (*self.roles.features, *(name for name in extra if name is not None))

    def _stored(self, piece: Piece) -> list[str]:
        """The columns that are in the file and not in its path."""
        return [name for name in self._columns if name not in piece.constants]

    def _bytes(self, position: int, groups: tuple[int, ...]) -> int:
        """Compressed bytes of the columns' chunks; of many small row groups they take as long to
        add up as to read, so that is done once."""
        metadata, known = self._metadata.get(position), (position, groups)
        if metadata is None:
            return 0
        if known not in self._packed:
            names, total = set(self._stored(self.pieces[position])), 0
            for group in groups:
                described = metadata.row_group(group)
                columns = map(described.column, range(described.num_columns))
                total += sum(c.total_compressed_size for c in columns if c.path_in_schema in names)
            self._packed[known] = total
        return self._packed[known]

    def _opened(self, position: int) -> AbstractContextManager[Any]:
        file = self.pieces[position].file
        opened = import_pyarrow("pyarrow.parquet").ParquetFile(
            file.path,
            filesystem=file.filesystem,
            # The footer of a file of many row groups is long: parse it once.
            metadata=self._metadata.get(position),
            buffer_size=BUFFER_BYTES,
            pre_buffer=False,
        )
        self._metadata.setdefault(position, opened.metadata)
        return opened

    def _block(self, columns: Mapping[str, Array]) -> Block:
        """Of columns by name, all of them copied."""
        X = side_by_side([columns[name] for name in self.roles.features])
        extra = (self.roles.target, self.roles.counts)
        return self._labelled(X, {n: columns[n].copy() for n in extra if n is not None})

    def _labelled(self, X: Array, others: Mapping[str, Array]) -> Block:
        fields = {"X": X}
        if self.roles.target is not None:
            fields["y"] = others[self.roles.target]
        return Block(fields, None if self.roles.counts is None else others[self.roles.counts])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_metadata": {}, "_packed": {}}

    def __repr__(self) -> str:
        return f"{len(self.pieces):,} Parquet files, {len(self.roles.features)} features"


def _named(groups: tuple[int, ...]) -> str:
    if len(groups) == 1:
        return f"row group {groups[0]}"
    return f"row groups {groups[0]} to {groups[-1]}"
