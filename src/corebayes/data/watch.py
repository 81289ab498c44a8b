"""Files that must stay as they were when they were opened."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from typing import Any, Self, cast

# Read of every file for its fingerprint: the end, where Parquet keeps its statistics, and pieces
# spread evenly over the rest.
TAIL_BYTES, PIECE_BYTES, NUM_PIECES = 1 << 16, 1 << 12, 32


def path_of(source: Any) -> str | None:
    """The path, when the source is one."""
    if isinstance(source, str | os.PathLike):
        return os.fsdecode(cast(Any, source))
    return None


class ChangedDataError(ValueError):
    """A file is not what it was when the data was opened."""


@dataclass(frozen=True, kw_only=True)
class WatchedFile:
    """A file by its path, size and a sample of its content.

    Where it was opened any later write is noticed by its time. Another process, perhaps on another
    machine with another copy, compares size and sample the first time and then the time.
    """

    path: str
    size: int
    digest: str
    """Hash of the sample of its content."""
    filesystem: Any = field(default=None, repr=False, compare=False)
    """A pyarrow file system; None for the files of this machine."""
    _written: list[int] = field(default_factory=list[int], repr=False, compare=False)
    """When it was last written, as first seen by this process."""

    @classmethod
    def open(cls, path: str, filesystem: Any = None) -> Self:
        size, written = _size_and_time(path, filesystem)
        digest = _sample(path, size, filesystem)
        return cls(path=path, size=size, digest=digest, filesystem=filesystem, _written=[written])

    def check(self) -> None:
        """An error when the file has changed. Cost: one look at the folder entry."""
        try:
            size, written = _size_and_time(self.path, self.filesystem)
        except FileNotFoundError as error:
            raise ChangedDataError(f"{self.path} is gone since the data was opened") from error
        if size != self.size:
            raise self._changed(f"it had {self.size:,} bytes and has {size:,}")
        if not self._written:
            if _sample(self.path, size, self.filesystem) != self.digest:
                raise self._changed("its content is another")
            self._written.append(written)
        if written != self._written[0]:
            raise self._changed("it was written to")

    def _changed(self, how: str) -> ChangedDataError:
        return ChangedDataError(
            f"{self.path} changed since the data was opened: {how}; "
            "results would mix two data sets, so open the data and build again"
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_written": []}


def _size_and_time(path: str, filesystem: Any) -> tuple[int, int]:
    if filesystem is None:
        status = os.stat(path)
        return status.st_size, status.st_mtime_ns
    info = filesystem.get_file_info(path)
    if info.size is None:
        raise FileNotFoundError(f"there is no file {path}")
    return int(info.size), int(info.mtime_ns or 0)


def _sample(path: str, size: int, filesystem: Any) -> str:
    step = max(PIECE_BYTES, size // NUM_PIECES)
    places = [(start, PIECE_BYTES) for start in range(0, size, step)]
    places.append((max(0, size - TAIL_BYTES), TAIL_BYTES))
    digest = hashlib.blake2b(str(size).encode(), digest_size=32)
    with _opened(path, filesystem) as file:
        for start, length in places:
            file.seek(start)
            digest.update(file.read(length))
    return digest.hexdigest()


def _opened(path: str, filesystem: Any) -> Any:
    return open(path, "rb") if filesystem is None else filesystem.open_input_file(path)
