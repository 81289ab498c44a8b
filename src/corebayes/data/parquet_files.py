"""Parquet files by path, pattern, folder, address or dataset: which rows and columns are read."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

from corebayes.data.columns import choose_roles, find
from corebayes.data.empty import NoRowsError
from corebayes.data.footer import check_data_pages
from corebayes.data.frames import arrow_column, check_arrow_type, check_names, import_pyarrow
from corebayes.data.limits import as_limit, check_unpacked
from corebayes.data.local_file import LocalFile, check_file
from corebayes.data.parquet import ParquetSource, Piece
from corebayes.data.stored import PART_ROWS
from corebayes.data.watch import WatchedFile, path_of
from corebayes.files.reading import first_line

SUFFIXES = (".parquet", ".pq")


class Address(NamedTuple):
    """Where files are that are not on this machine: `s3://bucket/key?endpoint_override=…`."""

    scheme: str
    path: str
    query: str

    @classmethod
    def of(cls, source: str) -> Address | None:
        # Options come after a "?" and a name with "="; any other "?" is part of a pattern.
        match = re.fullmatch(r"([a-z][a-z0-9+]+)://(.*?)(\?\w+=.*)?", source)
        return None if match is None else cls(match[1], match[2], match[3] or "")

    def at(self, path: str) -> str:
        return f"{self.scheme}://{path}{self.query}"


def is_address(source: Any) -> bool:
    return isinstance(source, str) and Address.of(source) is not None


def is_local(source: Any) -> bool:
    """Paths on this machine, no addresses and no dataset."""
    paths = cast(Sequence[Any], source if isinstance(source, list | tuple) else [source])
    return all(path_of(path) is not None and Address.of(str(path)) is None for path in paths)


def is_parquet(source: Any) -> bool:
    """A path, pattern, address or folder of Parquet files, a list of such, or a pyarrow dataset."""
    path = path_of(source)
    if path is not None:
        address = Address.of(path)
        if address is not None:
            return not address.path.endswith(".npy")
        return path.endswith(SUFFIXES) or os.path.isdir(path)
    if isinstance(source, list | tuple):
        paths = cast(Sequence[Any], source)
        return len(paths) > 0 and all(path_of(p) is not None and is_parquet(p) for p in paths)
    return type(source).__module__.startswith("pyarrow._dataset") and hasattr(
        source, "get_fragments"
    )


def open_parquet(
    source: Any,
    target: Any,
    features: Sequence[Any] | None,
    counts: Any,
    *,
    any_type: bool = False,
) -> ParquetSource:
    """Decide which rows and columns are read; with `any_type` these may hold more than numbers,
    and are read by `batches`. Cost: the footer of every file."""
    fragments, schema = _fragments(source)
    first = _first_names(fragments, schema)
    roles = choose_roles(first, target, features, counts)
    used = [*roles.features, *(n for n in (roles.target, roles.counts) if n is not None)]
    pieces: list[Piece] = []
    for fragment in fragments:
        _check_columns(fragment, first, used, named=features is not None)
        pieces.append(_piece(fragment, used, any_type))
    if not any(piece.groups for piece in pieces):
        raise NoRowsError()
    types = tuple(str(schema.field(name).type) for name in used)
    return ParquetSource(pieces=tuple(pieces), roles=roles, types=types)


def read_parquet(path: Any, needed: Callable[[tuple[str, ...]], set[Any]] | None = None) -> Any:
    """Columns of local files in memory, as an Arrow table: all, or those of their names that are
    `needed`. A bomb is refused beforehand."""
    dataset = _dataset(path)
    names: list[str] = list(dataset.schema.names)
    num_rows, packed = 0, 0
    with _reading(path):
        for fragment in dataset.get_fragments():
            check_data_pages(fragment.path, fragment.metadata, names)
            num_rows += fragment.metadata.num_rows
            packed += os.path.getsize(fragment.path)
    wanted = set(names) if needed is None else needed(tuple(names))
    names = [name for name in names if name in wanted]
    with _reading(path):
        check_unpacked(as_limit(), packed, 8 * num_rows * len(names))
        return dataset.to_table(columns=names)


@contextmanager
def _reading(path: Any) -> Generator[None]:
    """Errors that say which file it is."""
    try:
        yield
    except (import_pyarrow().ArrowException, OSError, ValueError) as error:
        raise type(error)(f"cannot read {path} as parquet: {first_line(error)}") from error


def parquet_batches(source: Any, names: Sequence[str], num_rows: int) -> Iterator[Any]:
    """The columns of these names, at most so many rows at a time, as Arrow tables."""
    dataset = source if hasattr(source, "get_fragments") else _dataset(source)
    for name in names:
        find(name, tuple(dataset.schema.names), "column")
    # One row group after the other: a scanner of the whole dataset reads far ahead.
    for fragment in dataset.get_fragments():
        for group in fragment.split_by_row_group():
            table = group.to_table(columns=list(names), use_threads=False)
            for first in range(0, table.num_rows, num_rows):
                yield table.slice(first, num_rows)


def parquet_shape(source: Any) -> tuple[int, int]:
    """How many rows and columns there are. Cost: the footer of every file."""
    dataset = source if hasattr(source, "get_fragments") else _dataset(source)
    return dataset.count_rows(), len(dataset.schema.names)


def parquet_names(source: Any) -> list[str]:
    """The names of the columns."""
    dataset = source if hasattr(source, "get_fragments") else _dataset(source)
    return list(dataset.schema.names)


def _fragments(source: Any) -> tuple[Sequence[Any], Any]:
    """The files, one after the other, and the columns of all.

    Of local files named one by one footers are enough: pyarrow's datasets import pandas, which
    takes a fifth of a second and 50 MB.
    """
    given: Any = source
    if hasattr(given, "get_fragments"):
        return list(given.get_fragments()), given.schema
    if is_local(given):
        several = cast(Sequence[Any], given if isinstance(given, list | tuple) else [given])
        paths: list[str] = [os.fspath(path) for path in several]
        found = [_local_files(path) for path in paths]
        if len(paths) > 1 or found[0].folder is None:
            files = [LocalFile.open(file) for some in found for file in some.files]
            return files, files[0].physical_schema
    dataset = _dataset(given)
    return list(dataset.get_fragments()), dataset.schema


def _dataset(source: Any) -> Any:
    """A pyarrow dataset of the files that paths, patterns and folders name, sorted."""
    import_pyarrow()
    datasets = import_pyarrow("pyarrow.dataset")
    given = cast(Sequence[Any], source if isinstance(source, list | tuple) else [source])
    paths: list[str] = [os.fspath(path) for path in given]
    remote = [address for path in paths if (address := Address.of(path)) is not None]
    if remote and (len(remote) < len(paths) or len({(a.scheme, a.query) for a in remote}) > 1):
        raise ValueError("addresses must be of one place: not of several, nor mixed with paths")
    found = [_remote_files(a) for a in remote] or [_local_files(path) for path in paths]
    files = [file for some in found for file in some.files]
    options: dict[str, Any] = {"format": "parquet", "filesystem": found[0].filesystem}
    if found[0].folder is not None and len(paths) == 1:
        # Folders called year=2024 are a column of their files.
        options |= {"partitioning": "hive", "partition_base_dir": found[0].folder}
    for file in files if found[0].filesystem is None else []:
        check_file(file)
    try:
        return datasets.dataset(files, **options)
    except (import_pyarrow().ArrowException, OSError) as error:
        raise ValueError(f"cannot read {files[0]} as parquet: {first_line(error)}") from error


class _Files(NamedTuple):
    files: list[str]
    folder: str | None = None
    """The folder they are all in, when that was what was named."""
    filesystem: Any = None


def _local_files(path: str) -> _Files:
    if os.path.isdir(path):
        inside = [str(file) for file in Path(path).rglob("*")]
        return _Files(_in_folder(path, map(os.path.abspath, inside)), os.path.abspath(path))
    if glob.has_magic(path) and not os.path.exists(path):
        matching = sorted(map(os.path.abspath, glob.glob(path, recursive=True)))
        if not matching:
            raise FileNotFoundError(f"no file matches {path}")
        return _Files(matching)
    if os.path.exists(path):
        return _Files([os.path.abspath(path)])
    raise FileNotFoundError(f"there is no file {path}")


def _remote_files(address: Address) -> _Files:
    """The files at an address, through pyarrow's own file systems."""
    if address.scheme == "file":
        from urllib.request import url2pathname

        return _local_files(url2pathname(address.path))
    # From where on there is something to look for.
    fixed = re.split(r"[*?\[]", address.path)[0]
    start = address.path if fixed == address.path else fixed.rpartition("/")[0]
    try:
        fs = import_pyarrow("pyarrow.fs")
        filesystem, path = fs.FileSystem.from_uri(address.at(start))
        info = filesystem.get_file_info(path)
        inside: list[str] = []
        if info.type == fs.FileType.Directory:
            listed = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
            inside = [entry.path for entry in listed if entry.type == fs.FileType.File]
    except (import_pyarrow().ArrowException, OSError) as error:
        raise OSError(
            f"cannot reach {address.scheme}://{address.path}: {first_line(error)}"
        ) from error
    if start != address.path:
        pattern = _pattern(path + address.path.removeprefix(start))
        matching = sorted(name for name in inside if pattern.fullmatch(name))
        if not matching:
            raise FileNotFoundError(f"no file matches {address.scheme}://{address.path}")
        return _Files(matching, None, filesystem)
    if info.type == fs.FileType.Directory:
        return _Files(_in_folder(address.path, inside), path, filesystem)
    if info.type != fs.FileType.File:
        raise FileNotFoundError(f"there is no file {address.scheme}://{address.path}")
    return _Files([path], None, filesystem)


def _pattern(path: str) -> re.Pattern[str]:
    """What a shell means: * and ? stay within a folder, ** does not."""
    kinds = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]]*\])", path)
    return re.compile(
        "".join(
            kinds.get(piece) or (piece if piece.startswith("[") else re.escape(piece))
            for piece in pieces
        )
    )


def _in_folder(folder: str, inside: Any) -> list[str]:
    files = sorted(
        file
        for file in inside
        if file.endswith(SUFFIXES) and not os.path.basename(file).startswith((".", "_"))
    )
    if not files:
        raise FileNotFoundError(f"the folder {folder} has no Parquet files (*.parquet)")
    return files


def _first_names(fragments: Sequence[Any], schema: Any) -> tuple[str, ...]:
    if not fragments:
        raise ValueError("the data is empty: there are no Parquet files")
    names = _physical_names(fragments[0])
    # Columns from the names of folders come last.
    return (*names, *(name for name in schema.names if name not in names))


def _physical_names(fragment: Any) -> tuple[str, ...]:
    try:
        names = tuple(fragment.physical_schema.names)
    except (import_pyarrow().ArrowException, OSError) as error:
        raise ValueError(f"cannot read {fragment.path} as parquet: {first_line(error)}") from error
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
    if isinstance(fragment, LocalFile):
        return {}
    datasets = import_pyarrow("pyarrow.dataset")
    return dict(datasets.get_partition_keys(fragment.partition_expression))


def _piece(fragment: Any, used: list[str], any_type: bool) -> Piece:
    schema = fragment.physical_schema
    for name in used:
        if name in schema.names and not any_type:
            check_arrow_type(schema.field(name).type, name)
    constants: dict[str, Any] = {}
    for name, value in _constants(fragment).items():
        if name in used and name not in schema.names:
            arrow = import_pyarrow().array([value])
            constants[name] = value if any_type else float(arrow_column(arrow)[0])
    groups = [(group.id, group.num_rows) for group in fragment.row_groups if group.num_rows]
    filesystem = fragment.filesystem
    local = filesystem is None or type(filesystem).__name__ == "LocalFileSystem"
    if local:
        try:
            check_data_pages(fragment.path, fragment.metadata, used)
        except ValueError as error:
            raise ValueError(f"cannot read {fragment.path} as parquet: {error}") from error
    file = WatchedFile.open(fragment.path, None if local else filesystem)
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
