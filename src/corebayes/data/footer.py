"""What a Parquet file says of itself, looked at before anything is allocated for it.

Readers trust footers and page headers: a column of zeros packs a hundred million rows into nothing,
and a page of a kilobyte may say that it unpacks to a gigabyte.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import Any, BinaryIO, NoReturn

from corebayes.data.limits import FileLimitError, as_limit, check_unpacked, written

# pyarrow takes about twenty times a footer's length to hold it.
FOOTER_SHARE = 20
# Footers of data are long when there are many row groups, but rows do not have this many columns.
DATA_FOOTER_BYTES, DATA_COLUMNS = 1 << 25, 20_000
# A page header is some 50 bytes; dictionary, levels and values of a column are two numbers a row.
HEADER_BYTES, PAGE_BYTES_OF_A_ROW, PAGE_SLACK, MAX_PAGES = 1 << 13, 16, 1 << 20, 100_000
UNCOMPRESSED = 0
# How many times its bytes a chunk can unpack to; packed in another way, any number of times.
MOST_TIMES = {"UNCOMPRESSED": 1, "SNAPPY": 24, "LZ4": 256}
# What a chunk may unpack to without a look at its pages.
LITTLE_BYTES = 1 << 25


def footer_bytes(file: BinaryIO) -> int:
    """The length of the footer as the file says; ValueError when it cannot be one."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 8))
    end = file.read(8)
    length = int.from_bytes(end[:4], "little")
    if size < 12 or end[4:] != b"PAR1" or length > size - 12:
        raise ValueError("it has no footer: it was cut short, or is no Parquet file")
    return length


def check_data_footer(path: str) -> None:
    """Refuse the footer of a file of rows that is too long, or has too many columns, to parse."""
    with open(path, "rb") as file:
        if file.read(4) != b"PAR1":
            return  # The reader says what it is instead.
        length = footer_bytes(file)
        if length > DATA_FOOTER_BYTES:
            raise FileLimitError(
                f"its footer has {written(length)}, above the limit of "
                f"{written(DATA_FOOTER_BYTES)}: write it with fewer columns or larger row groups, "
                "or as several files"
            )
        file.seek(-8 - length, os.SEEK_END)
        start = Compact(file.read(min(length, 64)))
    # version, then the list of columns, in the order in which everyone writes them
    if start.field(0) == (1, I32):
        start.value(I32)
        if start.field(1) == (2, LIST):
            columns = start.list_header()[0] - 1
            if columns > DATA_COLUMNS:
                raise FileLimitError(
                    f"it has {columns:,} columns, above the limit of {DATA_COLUMNS:,}: "
                    "write the columns that the model needs"
                )
            return
    raise ValueError("its footer does not begin with a schema")


def check_pages(file: BinaryIO) -> None:
    """Refuse column chunks whose pages lie outside the file or unpack to more than their rows.

    Cost: a walk over the footer, and a small read for every compressed page.
    """
    length = footer_bytes(file)
    start = file.seek(-8 - length, os.SEEK_END)
    num_pages = 0
    for group in Compact(file.read(length)).structure().get(4, ()):
        num_rows = group[3]
        if num_rows < 1:
            raise ValueError("it has no rows")
        for chunk in (column[3] for column in group[1]):
            codec, size, place = (chunk.get(number, -1) for number in (4, 7, 9))
            if 0 < chunk.get(11, 0) < place:
                place = chunk[11]
            if not 4 <= place <= place + size <= start:
                raise ValueError("a column chunk is said to lie outside of the file")
            unpacked = size
            if codec != UNCOMPRESSED:
                unpacked = 0
                for page in _page_sizes(file, place, size):
                    unpacked, num_pages = unpacked + page, num_pages + 1
                    if num_pages > MAX_PAGES:
                        raise ValueError(f"it has more than {MAX_PAGES:,} pages")
            if unpacked > PAGE_SLACK + PAGE_BYTES_OF_A_ROW * num_rows:
                _refuse(num_rows, unpacked)


def check_data_pages(path: str, metadata: Any, names: Collection[str]) -> None:
    """Refuse columns of numbers whose pages unpack to more than their rows, and texts that unpack
    from next to nothing. Cost: a small read for every page of the chunks that could be such."""
    with open(path, "rb") as file:
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            fair = PAGE_SLACK + PAGE_BYTES_OF_A_ROW * group.num_rows
            for chunk in map(group.column, range(group.num_columns)):
                size = chunk.total_compressed_size
                times = MOST_TIMES.get(chunk.compression, 1 << 15)
                if chunk.path_in_schema not in names or size * times <= max(fair, LITTLE_BYTES):
                    continue
                place = chunk.dictionary_page_offset or chunk.data_page_offset
                unpacked = sum(_page_sizes(file, place, size))
                if chunk.physical_type.endswith("BYTE_ARRAY"):
                    check_unpacked(as_limit(), size, unpacked)
                elif unpacked > fair:
                    _refuse(group.num_rows, unpacked)


def _refuse(num_rows: int, unpacked: int) -> NoReturn:
    raise ValueError(f"a column of {num_rows:,} rows is said to unpack to {written(unpacked)}")


def _page_sizes(file: BinaryIO, start: int, length: int) -> Iterator[int]:
    """What each page of a column chunk says it unpacks to."""
    place = start
    while place < start + length:
        file.seek(place)
        header = Compact(file.read(HEADER_BYTES))
        sizes = header.structure()
        unpacked, packed = sizes.get(2, -1), sizes.get(3, -1)
        if unpacked < 0 or packed < 0:
            raise ValueError(f"there is no page at byte {place:,}")
        yield unpacked
        place += header.place + packed


TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
MAX_DEPTH, MAX_ENTRIES = 20, 500_000


class Compact:
    """Reads bytes from the first on; `place` is where it is."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.place = 0
        self._num_entries = 0

    def structure(self, depth: int = 0) -> dict[int, Any]:
        """The fields of a structure by their numbers: whole numbers, lists and structures."""
        fields: dict[int, Any] = {}
        number = 0
        while (found := self.field(number)) is not None:
            number, kind = found
            fields[number] = kind == TRUE if kind in (TRUE, FALSE) else self.value(kind, depth + 1)
        return fields

    def field(self, last: int) -> tuple[int, int] | None:
        """The number and kind of the next field of a structure; None at its end."""
        byte = self._byte()
        if byte == 0:
            return None
        return (last + (byte >> 4) if byte >> 4 else self._signed()), byte & 15

    def list_header(self) -> tuple[int, int]:
        """How many entries follow, and of which kind."""
        byte = self._byte()
        return (self._varint() if byte >> 4 == 15 else byte >> 4), byte & 15

    def value(self, kind: int, depth: int = 0) -> Any:
        """The next value; None for a text or a fraction, which is passed over."""
        self._num_entries += 1
        if depth > MAX_DEPTH or self._num_entries > MAX_ENTRIES:
            raise ValueError("its footer has too many entries, or too many within each other")
        if kind in (TRUE, FALSE, BYTE):
            return self._byte()
        if kind in (I16, I32, I64):
            return self._signed()
        if kind in (DOUBLE, BINARY):
            length = 8 if kind == DOUBLE else self._varint()
            self.place += length
            return None
        if kind in (LIST, SET):
            number, inner = self.list_header()
            return [self.value(inner, depth + 1) for _ in range(number)]
        if kind == STRUCT:
            return self.structure(depth)
        raise ValueError(f"there is no kind {kind} of value in a Parquet file")

    def _signed(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a number has more than 64 bits")

    def _byte(self) -> int:
        if self.place >= len(self.content):
            raise ValueError("a structure ends after the last byte")
        self.place += 1
        return self.content[self.place - 1]
