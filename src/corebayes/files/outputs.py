"""Where results go: tried before the work, and when writing fails after it, kept elsewhere."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path

from corebayes.files.atomic import destination, naming, temporary_name

# More than a coreset, a page or a figure takes.
ROOM = 1 << 20

Name = str | os.PathLike[str]


class OutputError(OSError):
    """A result could not be written where it should be; the sentence says where it is."""


def probe_output(path: Name, *suffixes: str, num_bytes: int = ROOM) -> None:
    """Raise now what writing a file there would raise after the work.

    A file is really made and removed: permissions do not tell of read-only disks, nor bind root.
    """
    if suffixes and Path(path).suffix not in suffixes:
        raise ValueError(f"--out must end in {suffixes[0]}, got {path}")
    _try(path, destination(path), num_bytes)


def probe_folder(folder: Name, num_bytes: int = ROOM) -> None:
    """The same for files in a folder, which need not be there yet."""
    place = Path(folder)
    nearest = next((each for each in (place, *place.parents) if os.path.lexists(each)), Path())
    with naming(folder):
        if not nearest.is_dir():
            raise NotADirectoryError(f"{nearest} is no folder")
    _try(folder, nearest / "new", num_bytes)


def write_or_keep(
    write: Callable[[Path], object], path: Name, what: str, *, beside: Name | None = None
) -> None:
    """Write to `path`; when that fails, `beside` or in the cache folder of the user.

    Then an `OutputError` says why, and where `what` is now: it is lost only when there is no place
    for it at all.
    """
    try:
        write(Path(path))
        return
    except Exception as error:
        failure = error
    why = f"{failure}" if isinstance(failure, OSError) else f"cannot write {path}: {failure}"
    place = _written_elsewhere(write, Path(path), beside)
    where = f"is in {place}" if place else "could be written nowhere else and is lost"
    raise OutputError(f"{why}; {what} {where}") from failure


def _written_elsewhere(
    write: Callable[[Path], object], wanted: Path, beside: Name | None
) -> Path | None:
    for folder in _refuges(beside):
        place = folder / f"{wanted.stem}-{secrets.token_hex(4)}{wanted.suffix}"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write(place)
        except Exception:
            # Whatever is wrong there, the next place may do; an empty folder is of no use.
            with contextlib.suppress(OSError):
                folder.rmdir()
        else:
            return place
    return None


def _refuges(beside: Name | None) -> Generator[Path]:
    if beside is not None:
        yield Path(beside)
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # Nobody's home is an error; the variable counts only when it is absolute.
    with contextlib.suppress(RuntimeError):
        yield (cache if cache.is_absolute() else Path.home() / ".cache") / "corebayes"
    with contextlib.suppress(OSError):
        yield Path(tempfile.mkdtemp(prefix="corebayes-"))


def _try(path: Name, file: Path, num_bytes: int) -> None:
    with naming(path):
        temporary = temporary_name(file)
        with open(temporary, "xb") as made:
            try:
                # A name is free where there is no room for content.
                made.write(bytes(4096))
                made.flush()
            finally:
                temporary.unlink()
        disk = shutil.disk_usage(file.parent)
        # Some network disks do not know how large they are.
        if disk.total and disk.free < num_bytes:
            full = OSError(f"{disk.free / 1e6:.1f} of about {num_bytes / 1e6:.1f} MB are free")
            full.errno = errno.ENOSPC
            raise full
