"""The files of a checkpoint: written whole or not at all, checksummed, the last two kept.

    checkpoint-00000007.cb   what the run is, and the newest records
    answers-<hash>.cb        older records, written once, which the former names by their hash
    lock                     held while a run uses the folder

Every file is a line that says what it is, a hash of the rest, and frames (8 bytes of length and the
content). A file that does not have its hash counts as damaged, and then the one before it is used.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import struct
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from corebayes.data.limits import written
from corebayes.files.atomic import write_atomically
from corebayes.files.reading import check_regular, first_line

MAGIC = b"corebayes checkpoint 1\n"
HASH_BYTES = 32
# Records have four megabytes at most and go to a new file when they have as many together.
MAX_BYTES = 1 << 25
# Lists within lists take thirty times their JSON in memory.
MAX_HEADER_BYTES = 1 << 21
NUM_KEPT = 2
LENGTH = struct.Struct("<Q")
GENERATION = re.compile(r"checkpoint-(\d{8,})\.cb")
OURS = re.compile(r"(checkpoint-\d+|answers-[0-9a-f]+)\.cb")
UNFINISHED = re.compile(r"\.(checkpoint-\d+|answers-[0-9a-f]+)\.cb\.[0-9a-f]+\.tmp")


class CheckpointError(ValueError):
    """The checkpoint is damaged, in use, or of another run."""


class Segment(NamedTuple):
    """A file of older records."""

    name: str
    num_records: int


class Saved(NamedTuple):
    """What a checkpoint holds."""

    header: dict[str, Any]
    segments: list[Segment]
    records: list[bytes]
    """Those after the segments."""


class Store:
    """One folder, used by one run at a time."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise CheckpointError(f"checkpoint={str(folder)!r} is a file: name a folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(self.folder / "lock", self.folder)
        self._number = max(self._generations(), default=0)
        self._in_use: list[set[str]] = []
        for file in self.folder.iterdir():
            if UNFINISHED.fullmatch(file.name):
                # Left by a run that was killed while it wrote.
                file.unlink(missing_ok=True)

    def load(self) -> Saved | None:
        """The newest undamaged checkpoint; None when there is none yet."""
        numbers = sorted(self._generations(), reverse=True)
        for number in numbers:
            path = self._path(number)
            try:
                saved = self._read(path)
            except (CheckpointError, OSError) as error:
                warnings.warn(f"{error}; trying the one before it", UserWarning, stacklevel=5)
                continue
            return self._without_damage(path, saved)
        if numbers:
            raise CheckpointError(
                f"{self.folder} has no undamaged checkpoint ({len(numbers)} damaged): delete the "
                "folder to start again, or name another"
            )
        return None

    def save(self, header: dict[str, Any], segments: list[Segment], records: list[bytes]) -> None:
        """A new generation; then the oldest goes."""
        named = {**header, "segments": [list(segment) for segment in segments]}
        path = self._path(self._number + 1)
        write_atomically(path, _file([json.dumps(named).encode(), *records]))
        self._number += 1
        names = {path.name, *(segment.name for segment in segments)}
        self._in_use = [*self._in_use, names][-NUM_KEPT:]
        if len(self._in_use) == NUM_KEPT:
            self._remove_all_but({name for names in self._in_use for name in names})

    def seal(self, records: list[bytes]) -> Segment:
        """Write records once and for all."""
        content = _file(records)
        name = f"answers-{hashlib.blake2b(content, digest_size=16).hexdigest()}.cb"
        write_atomically(self.folder / name, content)
        return Segment(name, len(records))

    def read_segment(self, segment: Segment) -> list[bytes]:
        records = _frames(self.folder / segment.name)
        if len(records) != segment.num_records:
            raise CheckpointError(f"{self.folder / segment.name} is not what was written")
        return records

    def close(self) -> None:
        """Let another run use the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _read(self, path: Path) -> Saved:
        first, *records = _frames(path) or [b""]
        try:
            if len(first) > MAX_HEADER_BYTES:
                raise ValueError(f"its header has {written(len(first))}")
            header = json.loads(first)
            segments = [Segment(str(name), int(count)) for name, count in header.pop("segments")]
            if not all(OURS.fullmatch(segment.name) for segment in segments):
                raise ValueError("it names files that are none of a checkpoint's")
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise CheckpointError(f"{path} is damaged: {first_line(error)}") from error
        return Saved(header, segments, records)

    def _without_damage(self, path: Path, saved: Saved) -> Saved:
        """All records up to the first file of older ones that is damaged."""
        for place, segment in enumerate(saved.segments):
            try:
                self.read_segment(segment)
            except (CheckpointError, OSError) as error:
                warnings.warn(
                    f"{error}; {path.name} is used up to there", UserWarning, stacklevel=6
                )
                return Saved(saved.header, saved.segments[:place], [])
        return saved

    def _generations(self) -> list[int]:
        matches = [GENERATION.fullmatch(file.name) for file in self.folder.iterdir()]
        return [int(match[1]) for match in matches if match]

    def _path(self, number: int) -> Path:
        return self.folder / f"checkpoint-{number:08}.cb"

    def _remove_all_but(self, names: set[str]) -> None:
        for file in self.folder.iterdir():
            if OURS.fullmatch(file.name) and file.name not in names:
                with contextlib.suppress(OSError):
                    file.unlink()


def is_disk_full(error: OSError) -> bool:
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def _file(frames: list[bytes]) -> bytes:
    parts: list[bytes] = []
    for frame in frames:
        parts += [LENGTH.pack(len(frame)), frame]
    body = b"".join(parts)
    return MAGIC + hashlib.blake2b(body, digest_size=HASH_BYTES).digest() + body


def _frames(path: Path) -> list[bytes]:
    """The frames of a file that has its hash."""
    try:
        check_regular(path)
    except ValueError as error:
        raise CheckpointError(str(error)) from error
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise CheckpointError(f"{path} is no checkpoint that corebayes wrote, or damaged")
        size = file.seek(0, os.SEEK_END)
        if size > MAX_BYTES:
            raise CheckpointError(f"{path} is damaged: it has {written(size)}, as none has")
        file.seek(0)
        content = file.read()
    body = memoryview(content)[len(MAGIC) + HASH_BYTES :]
    expected = content[len(MAGIC) : len(MAGIC) + HASH_BYTES]
    if hashlib.blake2b(body, digest_size=HASH_BYTES).digest() != expected:
        raise CheckpointError(f"{path} is damaged: its content does not match its hash")
    frames: list[bytes] = []
    place = 0
    while place < len(body):
        if place + LENGTH.size > len(body):
            raise CheckpointError(f"{path} is damaged: it ends inside a record")
        (length,) = LENGTH.unpack_from(body, place)
        place += LENGTH.size
        if place + length > len(body):
            raise CheckpointError(f"{path} is damaged: it ends inside a record")
        frames.append(bytes(body[place : place + length]))
        place += length
    return frames


def _locked(path: Path, folder: Path) -> int | None:
    """A lock that ends with the process, however that ends; None where there are no such locks."""
    try:
        import fcntl
    except ImportError:
        return None
    # A link of that name would make a file wherever it points to.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise CheckpointError(
            f"another run is using the checkpoint {folder}: wait for it, or name another folder"
        ) from None
    except OSError:
        # Some network file systems have no locks.
        os.close(descriptor)
        return None
    return descriptor
