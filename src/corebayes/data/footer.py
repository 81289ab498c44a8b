"""What a Parquet file says of itself, looked at before anything is allocated for it.

Readers trust footers and page headers: a column of zeros packs a hundred million rows into nothing,
and a page of a kilobyte may say that it unpacks to a gigabyte.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import Any, BinaryIO, NoReturn

from corebayes.data.limits import FileLimitError, as_limit, check_unpacked
from corebayes.data.sizes import written
from corebayes.data.thrift import I32, LIST, Compact

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
