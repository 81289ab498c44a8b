"""The header of a .npy file or of a member of a .npz, checked against the bytes that there are."""

from __future__ import annotations

import io
import math
import os
import zipfile
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np

from corebayes.data.limits import check_unpacked

# NumPy itself trusts no header above 10,000 bytes, but reads it first.
HEADER_BYTES = 1 << 14
MEMBERS_BYTES = 1 << 17


class Header(NamedTuple):
    """The type, shape and order of an array, and where its numbers begin."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    offset: int


def read_header(file: BinaryIO, num_bytes: int) -> Header:
    """The header of an array in `num_bytes` bytes. ValueError for what they cannot hold."""
    start = io.BytesIO(file.read(HEADER_BYTES))
    version = np.lib.format.read_magic(start)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read is None:
        raise ValueError(f"its format {version} is not known")
    shape, fortran, dtype = read(start)
    header = Header(shape, fortran, dtype, start.tell())
    if dtype.hasobject:
        raise ValueError("it holds Python objects, not numbers")
    if dtype.subdtype is not None or not 0 < dtype.itemsize <= 64:
        raise ValueError(f"it holds {dtype.itemsize:,} bytes for each number")
    if min(shape, default=0) < 0 or len(shape) > 32:
        raise ValueError(f"its shape is {shape!s:.60}")
    needed = header.offset + math.prod(shape) * dtype.itemsize
    if num_bytes < needed:
        raise ValueError(f"it was cut short: it says {needed:,} bytes and has {num_bytes:,}")
    return header


def check_archive(file: BinaryIO, limit: int) -> None:
    """Refuse a .npz whose arrays say more than their members hold, or that is a bomb."""
    size = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(cast(BinaryIO, _ShortReads(file))) as archive:
        members = archive.infolist()
        # Members may overlap, so what they say together is no measure of what is there.
        packed = min(size, sum(member.compress_size for member in members))
        check_unpacked(limit, packed, sum(member.file_size for member in members))
        for member in members:
            if member.filename.endswith(".npy"):
                with archive.open(member) as stream:
                    read_header(cast(BinaryIO, stream), member.file_size)
    file.seek(0)


class _ShortReads:
    """A file of which only short pieces are read: a list of members is no longer."""

    def __init__(self, file: BinaryIO) -> None:
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable
        self._file, self._size = file, file.seek(0, os.SEEK_END)

    def read(self, length: int = -1) -> bytes:
        left = self._size - self._file.tell()
        length = min(left, length) if length >= 0 else left
        if length > MEMBERS_BYTES:
            raise ValueError(f"its list of members has {length:,} bytes")
        return self._file.read(length)
