"""The compact protocol of Thrift, in which Parquet writes its footers and page headers.

Enough to look at the numbers of a structure before a reader that trusts them allocates for them:
texts are passed over, and bytes that are no such structure are a ValueError.
"""

from __future__ import annotations

from typing import Any

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
