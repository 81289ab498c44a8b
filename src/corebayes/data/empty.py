"""Tables without a row: an error where something is to be learned, a night like any other where
rows are added to those that were there."""

from __future__ import annotations


class NoRowsError(ValueError):
    """There is no row, or none that counts."""

    def __init__(self, message: str = "the data is empty: it has no rows") -> None:
        super().__init__(message)
