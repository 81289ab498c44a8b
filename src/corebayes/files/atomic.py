"""Files that are written whole or not at all, and never through a link that somebody else laid."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from collections.abc import Generator
from pathlib import Path

# As many links in a row as systems follow.
MOST_LINKS = 40


def write_atomically(path: str | os.PathLike[str], payload: bytes | memoryview) -> None:
    """Replace the file's content; whatever fails, the old content stays and nothing else does.

    The new content is written beside it under an unpredictable name that must not be there yet.
    For what becomes of a link see `destination`.
    """
    final = destination(path)
    with naming(path):
        temporary = temporary_name(final)
        file = open(temporary, "xb")  # noqa: SIM115 - only what was made here is removed below
        try:
            with file:
                file.write(payload)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, final)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    _sync_folder(final.parent)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Generator[Path]:
    """As `write_atomically`, for libraries that write to a path: one in a folder that nobody else
    may enter, and what is there at the end of the context replaces the file."""
    final = destination(path)
    with (
        naming(path),
        tempfile.TemporaryDirectory(
            prefix=".corebayes-", suffix=".tmp", dir=final.parent, ignore_cleanup_errors=True
        ) as folder,
    ):
        written = Path(folder, final.name)
        yield written
        with open(written, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(written, final)
    _sync_folder(final.parent)


def destination(path: str | os.PathLike[str]) -> Path:
    """The file that a write to `path` replaces, or an error that says why there can be none.

    A link that belongs to this user or to root stays a link: what it points to is replaced, or made
    if it is not there. The links of others are refused, and folders, devices and pipes are.
    """
    final = Path(path)
    with naming(path):
        for _ in range(MOST_LINKS):
            if not final.is_symlink():
                break
            if final.lstat().st_uid not in (0, _user()):
                raise PermissionError(f"{final} is a link that belongs to another user")
            final = final.parent / final.readlink()
        else:
            raise OSError("it is a link that leads nowhere")
        if not final.parent.is_dir():
            raise FileNotFoundError(f"the folder {final.parent} is not there")
        if final.is_dir():
            raise IsADirectoryError("it is a folder; name a file in it")
        if final.exists() and not final.is_file():
            raise FileExistsError("it is a device or a pipe, and no file")
    return final


def temporary_name(final: Path) -> Path:
    """Beside the file, and not to be guessed."""
    return final.with_name(f".{final.name}.{secrets.token_hex(8)}.tmp")


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Generator[None]:
    """Errors of the system as a sentence about this path; their number stays."""
    try:
        yield
    except OSError as error:
        # An error of ours has a sentence, one of the system a number and a name of no interest.
        why = str(error) if error.strerror is None else error.strerror
        told = OSError(f"cannot write {path}: {why}")
        with contextlib.suppress(TypeError):
            told = type(error)(*told.args)
        told.errno = error.errno
        raise told from error


def _user() -> int:
    # Where there are no users all files belong to number 0.
    return os.geteuid() if hasattr(os, "geteuid") else 0


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut.

    Not every system can sync a folder. The file is complete and in place by then, so an error
    here is ignored.
    """
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
