"""Rows in Parquet files: one row group is a shard, read in parts.

Columns are found by name in every file, and which columns are read in which order is decided once,
when the data is opened. A part of a row group is decoded at a time: the whole of a row group, let
alone of a file, is never in memory.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from corebayes.data.columns import Roles, choose_roles, find
from corebayes.data.frames import arrow_column, check_arrow_type, check_names, import_pyarrow
from corebayes.data.stored import PART_ROWS
from corebayes.data.table import Tally
from corebayes.data.watch import ChangedDataError, WatchedFile, path_of
from corebayes.types import Array, Block, Indices

# Column chunks are read through buffers of this size instead of whole.
BUFFER_BYTES = 1 << 18
# Row groups after which Arrow gives back the memory that it holds.
RELEASE_EVERY = 2


class Piece(NamedTuple):
    """One file: its row groups that are used, those read together, how many rows that are, and
    columns that its path spells out."""

    file: WatchedFile
    groups: tuple[tuple[int, ...], ...]
    lengths: tuple[int, ...]
    constants: Mapping[str, float]


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
        fields = {"X": np.empty((0, len(self.roles.features)))}
        if self.roles.target is not None:
            fields["y"] = np.empty(0)
        return Block(fields, None if self.roles.counts is None else np.empty(0))

    def parts(self, shard: int, positions: Indices | None, tally: Tally) -> Iterator[Block]:
        """Decodes a row group once, up to the last row asked for."""
        position, groups = self._groups[shard]
        piece = self.pieces[position]
        piece.file.check()
        wanted = [name for name in self._columns if name not in piece.constants]
        first, passed, arrow = 0, 0, import_pyarrow()
        try:
            for batch in self._batches(position, groups, wanted):
                picked: Indices | slice = slice(None)
                length: int = batch.num_rows
                tally.rows += length
                if positions is not None:
                    last = int(np.searchsorted(positions, passed + length))
                    picked, first = positions[first:last] - passed, last
                passed += length
                if isinstance(picked, slice) or picked.size:
                    yield self._block(batch, piece, picked)
                if positions is not None and first == positions.size:
                    return
        except (arrow.ArrowException, OSError) as error:
            piece.file.check()
            raise OSError(
                f"cannot read {_named(groups)} of {piece.file.path}: {_reason(error)}"
            ) from error
        finally:
            # What was decoded leaves holes in the heap, and they add up. Giving them back takes as
            # long as decoding a row group, so that is not done after each.
            if shard % RELEASE_EVERY == 0 or shard == len(self.lengths) - 1:
                arrow.default_memory_pool().release_unused()
            tally.num_bytes += passed * self._bytes(position, groups, wanted) // self.lengths[shard]
        if passed != self.lengths[shard]:
            raise ChangedDataError(
                f"{_named(groups)} of {piece.file.path} has {passed:,} rows, "
                f"but had {self.lengths[shard]:,} when the data was opened"
            )

    def fingerprint(self) -> str:
        """Of names, sizes, row groups, types of the columns, and a sample of each file's content.

        A file is known by its name alone, so that a moved folder is the same data.
        """
        layout: list[Any] = [list(self._columns), list(self.types)]
        layout += [
            [Path(p.file.path).name, p.file.size, p.file.digest, p.groups, sorted(p.constants)]
            for p in self.pieces
        ]
        return hashlib.blake2b(json.dumps(layout).encode(), digest_size=32).hexdigest()

    @cached_property
    def _groups(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """The file and the row groups of every shard."""
        return tuple((k, groups) for k, piece in enumerate(self.pieces) for groups in piece.groups)

    def _bytes(self, position: int, groups: tuple[int, ...], names: list[str]) -> int:
        """Compressed bytes of the columns' chunks."""
        metadata, total = self._metadata.get(position), 0
        if metadata is None:
            return 0
        for group in groups:
            described = metadata.row_group(group)
            columns = map(described.column, range(described.num_columns))
            total += sum(c.total_compressed_size for c in columns if c.path_in_schema in names)
        return total

    @property
    def _columns(self) -> tuple[str, ...]:
        extra = (self.roles.target, self.roles.counts)
        return (*self.roles.features, *(name for name in extra if name is not None))

    def _batches(self, position: int, groups: tuple[int, ...], names: list[str]) -> Iterator[Any]:
        file = self.pieces[position].file
        parquet = import_pyarrow("pyarrow.parquet")
        with parquet.ParquetFile(
            file.path,
            filesystem=file.filesystem,
            metadata=self._metadata.get(position),
            buffer_size=BUFFER_BYTES,
            pre_buffer=False,
        ) as opened:
            # The footer of a file of many row groups is long: parse it once.
            self._metadata.setdefault(position, opened.metadata)
            yield from opened.iter_batches(
                batch_size=PART_ROWS, row_groups=groups, columns=names, use_threads=False
            )

    def _block(self, batch: Any, piece: Piece, picked: Indices | slice) -> Block:
        def column(name: str) -> Array | float:
            if name in piece.constants:
                return piece.constants[name]
            return arrow_column(batch.column(batch.schema.get_field_index(name)), name)[picked]

        num_rows = batch.num_rows if isinstance(picked, slice) else picked.size
        X = np.empty((num_rows, len(self.roles.features)))
        for place, name in enumerate(self.roles.features):
            X[:, place] = column(name)
        fields = {"X": X}
        if self.roles.target is not None:
            fields["y"] = np.array(np.broadcast_to(column(self.roles.target), num_rows))
        if self.roles.counts is None:
            return Block(fields)
        return Block(fields, np.array(np.broadcast_to(column(self.roles.counts), num_rows)))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_metadata": {}}

    def __repr__(self) -> str:
        return f"{len(self.pieces):,} Parquet files, {len(self.roles.features)} features"


def is_parquet(source: Any) -> bool:
    """A path, pattern or folder of Parquet files, a list of such paths, or a pyarrow dataset."""
    path = path_of(source)
    if path is not None:
        return path.endswith((".parquet", ".pq")) or os.path.isdir(path)
    if isinstance(source, list | tuple):
        paths = cast(Sequence[Any], source)
        return len(paths) > 0 and all(path_of(p) is not None and is_parquet(p) for p in paths)
    return type(source).__module__.startswith("pyarrow._dataset") and hasattr(
        source, "get_fragments"
    )


def open_parquet(
    source: Any, target: Any, features: Sequence[Any] | None, counts: Any
) -> ParquetSource:
    """Decide which rows and columns are read. Cost: the footer of every file."""
    dataset = source if hasattr(source, "get_fragments") else _dataset(source)
    fragments = list(dataset.get_fragments())
    first = _first_names(fragments, dataset)
    roles = choose_roles(first, target, features, counts)
    used = [*roles.features, *(n for n in (roles.target, roles.counts) if n is not None)]
    pieces: list[Piece] = []
    for fragment in fragments:
        _check_columns(fragment, first, used, named=features is not None)
        pieces.append(_piece(fragment, used))
    if not any(piece.groups for piece in pieces):
        raise ValueError("the data is empty: it has no rows")
    schema = dataset.schema
    types = tuple(str(schema.field(name).type) for name in used)
    return ParquetSource(pieces=tuple(pieces), roles=roles, types=types)


def _dataset(source: Any) -> Any:
    """A pyarrow dataset of the files that paths, patterns and folders name, sorted."""
    import_pyarrow()
    datasets = import_pyarrow("pyarrow.dataset")
    paths: list[Any] = [source]
    if isinstance(source, list | tuple):
        paths = list(cast(Sequence[Any], source))
    files: list[str] = []
    folder: str | None = None
    for path in map(os.fspath, paths):
        if os.path.isdir(path):
            folder = path
            files += _files_in(path)
        elif glob.has_magic(path) and not os.path.exists(path):
            found = sorted(glob.glob(path, recursive=True))
            if not found:
                raise FileNotFoundError(f"no file matches {path}")
            files += found
        elif os.path.exists(path):
            files.append(path)
        else:
            raise FileNotFoundError(f"there is no file {path}")
    options: dict[str, Any] = {"format": "parquet"}
    if folder is not None and len(paths) == 1:
        # Folders called year=2024 are a column of their files.
        options |= {"partitioning": "hive", "partition_base_dir": os.path.abspath(folder)}
    try:
        return datasets.dataset([os.path.abspath(file) for file in files], **options)
    except (import_pyarrow().ArrowException, OSError) as error:
        raise ValueError(f"cannot read {files[0]} as parquet: {_reason(error)}") from error


def _files_in(folder: str) -> list[str]:
    files = sorted(
        str(path)
        for path in Path(folder).rglob("*")
        if path.suffix in (".parquet", ".pq") and not path.name.startswith((".", "_"))
    )
    if not files:
        raise FileNotFoundError(f"the folder {folder} has no Parquet files (*.parquet)")
    return files


def _first_names(fragments: list[Any], dataset: Any) -> tuple[str, ...]:
    if not fragments:
        raise ValueError("the data is empty: there are no Parquet files")
    names = _physical_names(fragments[0])
    # Columns from the names of folders come last.
    return (*names, *(name for name in dataset.schema.names if name not in names))


def _physical_names(fragment: Any) -> tuple[str, ...]:
    try:
        names = tuple(fragment.physical_schema.names)
    except (import_pyarrow().ArrowException, OSError) as error:
        raise ValueError(f"cannot read {fragment.path} as parquet: {_reason(error)}") from error
    check_names(names)
    return names


def _check_columns(fragment: Any, first: tuple[str, ...], used: list[str], *, named: bool) -> None:
    """Every file must have the columns; others than the first file's make the default unclear."""
    names = (*_physical_names(fragment), *_constants(fragment))
    for name in used:
        if name not in names:
            find(name, names, str(fragment.path))
    extra = [name for name in names if name not in first]
    if extra and not named:
        raise ValueError(
            f"{fragment.path} has the columns {extra}, which the first file has not: "
            "name the features to read"
        )


def _constants(fragment: Any) -> dict[str, Any]:
    datasets = import_pyarrow("pyarrow.dataset")
    return dict(datasets.get_partition_keys(fragment.partition_expression))


def _piece(fragment: Any, used: list[str]) -> Piece:
    schema = fragment.physical_schema
    for name in used:
        if name in schema.names:
            check_arrow_type(schema.field(name).type, name)
    constants: dict[str, float] = {}
    for name, value in _constants(fragment).items():
        if name in used and name not in schema.names:
            arrow = import_pyarrow().array([value])
            constants[name] = float(arrow_column(arrow, name)[0])
    groups = [(group.id, group.num_rows) for group in fragment.row_groups if group.num_rows]
    local = type(fragment.filesystem).__name__ == "LocalFileSystem"
    file = WatchedFile.open(fragment.path, None if local else fragment.filesystem)
    together = _together(groups)
    return Piece(
        file,
        tuple(tuple(group for group, _ in some) for some in together),
        tuple(sum(length for _, length in some) for some in together),
        constants,
    )


def _together(groups: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Small row groups that follow each other are one task: to begin one costs as much as to
    decode some thousand rows."""
    together: list[list[tuple[int, int]]] = []
    for group in groups:
        if together and sum(n for _, n in together[-1]) + group[1] <= PART_ROWS:
            together[-1].append(group)
        else:
            together.append([group])
    return together


def _named(groups: tuple[int, ...]) -> str:
    if len(groups) == 1:
        return f"row group {groups[0]}"
    return f"row groups {groups[0]} to {groups[-1]}"


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
